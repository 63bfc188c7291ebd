"""What the tuning page shows and sends: the settings as texts, field by field, and how often readings arrive."""

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal

from django.db.models import OuterRef, Subquery

from billing_catalog.core.values import Thresholds
from ladder.core.moves import Edits
from ladder.core.readings.gaps import usual_gap
from ladder.core.values import PAID_RUNGS, LadderSettings, Period, Rung, Weekday
from ladder.models import QuotaReading, QuotaWindow
from ladder.selectors.settings import BudgetSettings, StoredSettings
from omniroute_admin.common.core.numbers import decimal_text

OFF, NO_LIMIT = "off", "none"
"""The two budgets that are no amount, as texts (M1)."""

_SAMPLED_WINDOWS = 24
_NEWEST = tuple(f"newest_{number}" for number in range(6))
"""Annotations that hold the instants of a window's newest readings, one each."""

Texts = Mapping[str, str]
"""Settings by the name of their field, each as the shortest text that says the same."""


def texts_of(stored: StoredSettings) -> dict[str, str]:
    """Return every setting as text, in the order of the page."""
    ladder = stored.ladder
    texts = {
        "exit_cutoff_percent": decimal_text(ladder.exit_cutoff_percent),
        "reentry_min_remaining_percent": decimal_text(ladder.reentry_min_remaining_percent),
        "max_reading_age_seconds": str(ladder.max_reading_age_seconds),
    }
    for rung, budget in stored.budgets.items():
        texts |= {
            f"{rung}_amount": amount_text(budget.amount_usd),
            f"{rung}_period": budget.period.value,
            f"{rung}_week_starts_on": budget.week_starts_on.value,
            f"{rung}_zone": budget.zone,
        }
    thresholds = stored.thresholds
    return texts | {"tier_free": decimal_text(thresholds.free), "tier_cheap": decimal_text(thresholds.cheap)}


def amount_text(amount: Decimal | None) -> str:
    """Return a budget's amount as text: `none` is no limit, `off` is zero (M1)."""
    if amount is None:
        return NO_LIMIT
    return decimal_text(amount) if amount else OFF


def amount_of(text: str) -> Decimal | None:
    """Return the amount that a text says."""
    if text == NO_LIMIT:
        return None
    return Decimal(0) if text == OFF else Decimal(text)


def settings_with(*, stored: StoredSettings, changes: Texts) -> StoredSettings:
    """Return the settings with some of them changed, given as texts that a form has checked."""
    texts = {**texts_of(stored), **changes}
    return StoredSettings(
        ladder=LadderSettings(
            Decimal(texts["exit_cutoff_percent"]),
            Decimal(texts["reentry_min_remaining_percent"]),
            int(texts["max_reading_age_seconds"]),
        ),
        thresholds=Thresholds(Decimal(texts["tier_free"]), Decimal(texts["tier_cheap"])),
        budgets={rung: _budget(texts, rung) for rung in stored.budgets},
    )


def _budget(texts: Texts, rung: str) -> BudgetSettings:
    return BudgetSettings(
        amount_of(texts[f"{rung}_amount"]),
        Period(texts[f"{rung}_period"]),
        Weekday(texts[f"{rung}_week_starts_on"]),
        texts[f"{rung}_zone"],
    )


def edits_between(*, stored: StoredSettings, wanted: StoredSettings) -> tuple[Edits, dict[Rung, BudgetSettings]]:
    """Return the edits, and the budgets, that lead from the stored settings to the wanted ones."""
    edits = Edits(
        settings=wanted.ladder if wanted.ladder != stored.ladder else None,
        thresholds=wanted.thresholds if wanted.thresholds != stored.thresholds else None,
    )
    budgets = {
        rung: wanted.budgets[rung.word] for rung in PAID_RUNGS if wanted.budgets[rung.word] != stored.budgets[rung.word]
    }
    return edits, budgets


def read_usual_gap() -> timedelta | None:
    """Return the usual gap between readings, from the newest ones of the windows read last; one query.

    It walks the index on (window, observed_at) a few steps back for a few windows, however long the history is.
    """
    readings = QuotaReading.objects.filter(window=OuterRef("pk")).order_by("-observed_at").values("observed_at")
    newest = {name: Subquery(readings[number : number + 1]) for number, name in enumerate(_NEWEST)}
    windows = QuotaWindow.objects.filter(
        connection__deleted_at__isnull=True, is_reported=True, is_muted=False, observed_at__isnull=False
    ).order_by("-observed_at", "pk")
    rows = windows.annotate(**newest).values_list(*_NEWEST)[:_SAMPLED_WINDOWS]
    return usual_gap([[at for at in row if at is not None] for row in rows])
