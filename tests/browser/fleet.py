"""A small fleet with every state in it, told relative to an instant: what pictures and page tests look at."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from billing_catalog.models import BillingEntry, ModelPrice
from ladder.models import Connection, Cooldown, QuotaReading, QuotaWindow, RungBudget

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
PLANS = (("claude", "hard-stop"), ("codex", "hard-stop"), ("cursor", "unknown"), ("devin-desktop", "meters-to-paid"))
MODELS = (
    ("claude", "claude-sonnet-4-5", "3", ("vision", "reasoning")),
    ("claude", "claude-haiku-4-5", "1", ("vision",)),
    ("codex", "gpt-5-codex", "1.25", ("reasoning",)),
    ("cursor", "composer-1", "1.25", ()),
    ("devin-desktop", "swe-1.5", "1", ()),
    ("opencode", "big-pickle", "0", ()),
    ("kiro", "claude-sonnet-4-5", "0", ("vision",)),
    ("deepseek", "deepseek-chat", "0.28", ()),
    ("openrouter", "qwen/qwen3-coder", "0.22", ()),
    ("openrouter", "anthropic/claude-opus-4-5", "5", ("vision", "reasoning")),
)


@dataclass(frozen=True)
class Window:
    """A window of the fleet: percent left (None: unlimited), minutes to its reset, seconds since it was read."""

    name: str
    left: str | None
    reset_in: float | None
    read_ago: int


FLEET: tuple[tuple[str, str, str, tuple[Window, ...]], ...] = (
    ("claude", "claude-main", "oauth", (Window("weekly", "41", 5567, 22), Window("5h", "63", 87, 22))),
    ("claude", "claude-team", "oauth", (Window("5h", "4", 87, 22), Window("weekly", "58", 4000, 22))),
    ("claude", "claude-alt", "oauth", (Window("5h", "0", 17, 48),)),
    ("codex", "codex-plus", "oauth", (Window("weekly", "22", 3347, 35), Window("5h", "88", 120, 35))),
    ("codex", "codex-ops", "oauth", (Window("5h", "35", 112, 2460),)),
    ("cursor", "cursor-seat", "oauth", (Window("billing_cycle", "3", -12, 900),)),
    ("devin-desktop", "devin-core", "oauth", (Window("acu", None, None, 65),)),
    ("opencode", "noauth", "none", ()),
    ("kiro", "kiro-1", "oauth", (Window("monthly", "71", 6707, 130),)),
    ("deepseek", "ds-api", "apikey", ()),
    ("openrouter", "or-main", "apikey", ()),
)


def make_fleet(*, now: datetime) -> None:
    """Store the fleet as it stands at `now`: a budget on cheap, premium off, one cooldown, one connection held."""
    make_catalogue()
    for provider, connection_id, auth_type, windows in FLEET:
        make_connection(provider, connection_id, auth_type, windows, now=now)
    team = QuotaWindow.objects.get(connection__connection_id="claude-team", window="5h")
    add_reading(team, left="1", observed_at=now - timedelta(hours=1))
    Cooldown.objects.create(
        connection=Connection.objects.get(connection_id="claude-alt"),
        cause="quota",
        asked_until=now + timedelta(hours=3),
        effective_until=now + timedelta(minutes=17),
        set_by="router-1",
        reported_at=now - timedelta(minutes=5),
    )
    budgets = RungBudget.objects.update_or_create
    weekly = {"amount_usd": Decimal(5), "period": "weekly", "zone": "Europe/Berlin"}
    budgets(rung="cheap", defaults=weekly)
    budgets(rung="premium", defaults={"amount_usd": Decimal(0)})


def make_catalogue() -> None:
    """Store how the fleet's providers bill and what their models cost."""
    for provider, overage in PLANS:
        BillingEntry.objects.create(
            provider=provider,
            auth_type="oauth",
            billing="subscription",
            overage=overage,
            created_at=LONG_AGO,
            updated_at=LONG_AGO,
        )
    for rank, (provider, model, price, capabilities) in enumerate(MODELS):
        ModelPrice.objects.create(
            provider=provider,
            model=model,
            input_usd_per_million=Decimal(price),
            output_usd_per_million=Decimal(price) * 4,
            capabilities=list(capabilities),
            rank=rank,
            effective_from=LONG_AGO,
        )


def make_connection(
    provider: str, connection_id: str, auth_type: str, windows: tuple[Window, ...] = (), *, now: datetime
) -> Connection:
    """Store one connection with its windows and the readings they come from."""
    made = Connection.objects.create(
        provider=provider, connection_id=connection_id, auth_type=auth_type, created_at=LONG_AGO, updated_at=LONG_AGO
    )
    for each in windows:
        observed_at = now - timedelta(seconds=each.read_ago)
        window = QuotaWindow.objects.create(
            connection=made,
            window=each.name,
            remaining_percent=None if each.left is None else Decimal(each.left),
            unlimited=each.left is None,
            reset_at=None if each.reset_in is None else now + timedelta(minutes=each.reset_in),
            observed_at=observed_at,
            received_at=observed_at,
        )
        add_reading(window, left=each.left, observed_at=observed_at)
    return made


def add_reading(window: QuotaWindow, *, left: str | None, observed_at: datetime) -> None:
    """Add a reading to a window's history."""
    QuotaReading.objects.create(
        window=window,
        observed_at=observed_at,
        received_at=observed_at,
        remaining_percent=None if left is None else Decimal(left),
        unlimited=left is None,
    )
