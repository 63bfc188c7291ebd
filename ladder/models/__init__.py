"""The live state of SPEC 3: connections, quota windows, readings, cooldowns, settings, budgets, the ledger, alerts."""

from ladder.models.alerts import Alert, AlertDelivery, AlertLook, AlertRule
from ladder.models.connections import Connection, ConnectionQuerySet
from ladder.models.ledger import SpendHold, UsageEvent, UsageEventQuerySet
from ladder.models.quota import QuotaReading, QuotaWindow
from ladder.models.refusals import RefusalReport
from ladder.models.resting import Breaker, Cooldown
from ladder.models.settings import LadderSettings, RungBudget
from ladder.models.sums import LedgerSum
from ladder.models.timeline import RungFlip, RungSample, TimelineCursor, TimelineTrace

__all__ = [
    "Alert",
    "AlertDelivery",
    "AlertLook",
    "AlertRule",
    "Breaker",
    "Connection",
    "ConnectionQuerySet",
    "Cooldown",
    "LadderSettings",
    "LedgerSum",
    "QuotaReading",
    "QuotaWindow",
    "RefusalReport",
    "RungBudget",
    "RungFlip",
    "RungSample",
    "SpendHold",
    "TimelineCursor",
    "TimelineTrace",
    "UsageEvent",
    "UsageEventQuerySet",
]
