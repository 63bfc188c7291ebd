"""The words and values of the ladder (SPEC 1 and 2): frozen, in and out of every core function.

Percent is remaining percent, exact. Money is USD. Instants are aware UTC.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import IntEnum, StrEnum

import msgspec

from billing_catalog.core.values import CatalogRow, Overage, Price, Thresholds, Tier, TierRule


class Rung(IntEnum):
    """A rung of the ladder, in order of escalation."""

    SUBSCRIPTION = 0
    KEYLESS = 1
    FREE = 2
    CHEAP = 3
    PREMIUM = 4

    @property
    def word(self) -> str:
        """Return the rung's word, as in `subscription`."""
        return self.name.lower()


PAID_RUNGS = (Rung.CHEAP, Rung.PREMIUM)


class Grouping(StrEnum):
    """How a pool is made: fails closed, fails open and escalates, or never bills."""

    SUBSCRIPTION = "subscription"
    THRIFTY = "thrifty"
    FREE = "free"


class MixedRungs(StrEnum):
    """What becomes of a candidate whose pairs sit on several rungs (P5)."""

    SPLIT = "split"
    MERGE = "merge"


class ReadingStatus(StrEnum):
    """What the reporter said beside the number."""

    SAFE = "safe"
    EXHAUSTED = "exhausted"
    UNKNOWN = "unknown"


class Combine(StrEnum):
    """How a window joins the others of its connection (Q6)."""

    LIMIT = "limit"
    POOL = "pool"


class CooldownCause(StrEnum):
    """Why a connection rests (C3)."""

    QUOTA = "quota"
    RATE_LIMIT = "rate_limit"
    AUTH = "auth"
    BAN = "ban"
    OPERATOR = "operator"


class Period(StrEnum):
    """Length of a budget window (M3)."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


class Weekday(StrEnum):
    """First day of a weekly budget window (M3)."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


class Accounting(StrEnum):
    """How well the spend of a budget window is known: partly estimated, or without any event."""

    COMPLETE = "complete"
    PARTIAL = "partial"
    NONE = "none"


class MoneyKind(StrEnum):
    """What kind of money an event of the ledger is (M5): a paid rung's, billed past a plan, or a plan's list price."""

    BUDGET = "budget"
    OVERAGE = "overage"
    PLAN = "plan"


class QuotaVerdict(StrEnum):
    """Verdict of one window, or of all counting windows together (Q1 to Q8)."""

    USABLE = "usable"
    HELD = "held"
    EXHAUSTED = "exhausted"
    UNVERIFIED = "unverified"


class LadderSettings(msgspec.Struct, frozen=True):
    """The settings of the decision (SPEC 2, Settings)."""

    exit_cutoff_percent: Decimal = Decimal(2)
    reentry_min_remaining_percent: Decimal = Decimal(5)
    max_reading_age_seconds: int = 180


class Window(msgspec.Struct, frozen=True, gc=False):
    """A quota window with its current reading; `observed_at` None is "no reading".

    `observed_at` is what the age counts from: the earlier of observed and received. `held` says that the connection
    dropped out on this window and was not seen above the re-entry floor since (Q5). `is_reported` False is "no longer
    reported": such a window does not count (Q6).
    """

    window: str
    observed_at: datetime | None = None
    remaining_percent: Decimal | None = None
    unlimited: bool = False
    status: ReadingStatus = ReadingStatus.SAFE
    reset_at: datetime | None = None
    held: bool = False
    combine: Combine = Combine.LIMIT
    model: str | None = None
    is_muted: bool = False
    is_reported: bool = True
    exit_cutoff_percent: Decimal | None = None


class Cooldown(msgspec.Struct, frozen=True, gc=False):
    """A cooldown of a connection; `model` None means every model, `effective_until` None "until cleared"."""

    cause: CooldownCause
    effective_until: datetime | None
    model: str | None = None


class Connection(msgspec.Struct, frozen=True, gc=False):
    """One account at one provider, with all that the decision asks of it.

    `is_implied`: a keyless path that nobody stored, of which only a report speaks; it is known, but in no stored pool.
    """

    connection_id: str
    provider: str
    auth_type: str | None = None
    is_enabled: bool = True
    is_implied: bool = False
    overage_override: Overage | None = None
    excluded_models: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()


class Hold(msgspec.Struct, frozen=True, gc=False):
    """Money reserved until an instant (M2)."""

    amount_usd: Decimal
    expires_at: datetime


class Budget(msgspec.Struct, frozen=True):
    """State of a paid rung's budget in its present window (M1, M2).

    `amount_usd` None is no limit, zero is off. `spent_usd` None is "no accounting": ordered, never gated.
    """

    amount_usd: Decimal | None = None
    spent_usd: Decimal | None = Decimal(0)
    holds: tuple[Hold, ...] = ()
    window_end: datetime | None = None
    window_start: datetime | None = None
    zone: str = "UTC"
    accounting: Accounting = Accounting.NONE


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a decision stands on, at one revision. Names are canonical.

    `tiers` and `capabilities` are what the caller of evaluate says of single (provider, model) pairs; they win.
    `seat_sellers` are the providers whose price of 0 is no price (T). `breakers` maps a provider to its open-until.
    `aliases` are for the edge, which resolves names on the way in (SPEC 1); no rule looks at them.
    """

    revision: str = ""
    settings: LadderSettings = LadderSettings()
    connections: tuple[Connection, ...] = ()
    catalog: tuple[CatalogRow, ...] = ()
    prices: tuple[Price, ...] = ()
    tier_rules: tuple[TierRule, ...] = ()
    free_providers: frozenset[str] = frozenset()
    seat_sellers: frozenset[str] = frozenset()
    thresholds: Thresholds = Thresholds()
    breakers: Mapping[str, datetime] = {}
    budgets: Mapping[Rung, Budget] = {}
    tiers: Mapping[tuple[str, str], Tier] = {}
    capabilities: Mapping[tuple[str, str], frozenset[str]] = {}
    aliases: Mapping[str, str] = {}


class Candidate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """(provider, model) plus either one connection or a list of them; `ref` is echoed."""

    provider: str
    model: str
    connection_id: str | None = None
    allowed_connection_ids: tuple[str, ...] | None = None
    ref: str | None = None


class PoolOptions(msgspec.Struct, frozen=True):
    """How the caller wants the answer (P5, P6)."""

    mixed_rungs: MixedRungs = MixedRungs.SPLIT
    lowest_rung_only: bool = False
    explain: bool = False


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One line of a pool; it has the form of its request: one connection, or the list of survivors."""

    provider: str
    model: str
    rung: str
    rung_index: int
    connection_id: str | None
    allowed_connection_ids: tuple[str, ...] | None
    ref: str | None
    may_bill_past_plan: bool


class Exclusion(msgspec.Struct, frozen=True, gc=False):
    """A pair left out, with its one code (P8); `window` is the binding one."""

    provider: str
    model: str | None
    connection_id: str | None
    ref: str | None
    rung: str | None
    code: str
    family: str
    window: str | None
    detail: str
    returns_at: datetime | None


class Empty(msgspec.Struct, frozen=True):
    """Why a pool is empty and when it may not be."""

    code: str
    detail: str
    returns_at: datetime | None


class Pool(msgspec.Struct, frozen=True):
    """The ordered answer to a router (SPEC 4)."""

    id: str
    grouping: Grouping
    category: str | None
    revision: str
    evaluated_at: datetime
    valid_until: datetime | None
    candidates: list[Entry]
    excluded_counts: dict[str, int]
    excluded: list[Exclusion] | msgspec.UnsetType
    empty: Empty | None
