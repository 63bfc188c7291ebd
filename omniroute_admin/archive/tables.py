"""Which tables an archive holds: all of the installed models' but those that are left out, each with the reason."""

from collections.abc import Iterable
from typing import Any

import msgspec
from django.apps import apps

KEPT = {
    "admin": ["LogEntry"],
    "auth": ["Group", "Group_permissions", "User", "User_groups", "User_user_permissions"],
    "billing_catalog": [
        "BillingEntry",
        "FreeProvider",
        "LoadedFact",
        "ModelPrice",
        "PriceSource",
        "ProviderAlias",
        "TierOverride",
        "TierThresholds",
    ],
    "common": ["ApiKey", "Horizon", "OidcIdentity", "RecoveryCode", "Revision", "SecondFactor", "UserVersion"],
    "ladder": [
        "Alert",
        "AlertDelivery",
        "AlertLook",
        "AlertRule",
        "Breaker",
        "Connection",
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
    ],
}
"""By app, what comes back; the history of it does so with it."""

MATCHED = ("contenttypes.ContentType", "auth.Permission")
"""Rows that migrations make in every database: a restore finds them by name, and what refers to them follows."""


class LeftOut(msgspec.Struct, frozen=True):
    """Why a table is not in an archive, and whether a restore empties it."""

    reason: str
    is_emptied: bool


LEFT_OUT = {
    "sessions.Session": LeftOut("whoever was signed in signs in again", is_emptied=True),
    "common.Session": LeftOut("whoever was signed in signs in again", is_emptied=True),
    "common.SignInCount": LeftOut("failed tries to sign in of minutes that are over", is_emptied=True),
    "common.KeyAllowance": LeftOut("calls of a minute that is over", is_emptied=True),
    "common.RevisionStep": LeftOut("steps of a revision that a restore leaves behind", is_emptied=True),
    "common.Heartbeat": LeftOut("a sign of life of processes that run, not of those of then", is_emptied=False),
    "common.TaskRun": LeftOut("how the tasks of these processes ended, not of those of then", is_emptied=False),
}

MADE_BY_MIGRATIONS = frozenset(
    {
        *MATCHED,
        "auth.Group",
        "common.Revision",
        "ladder.LadderSettings",
        "ladder.HistoricalLadderSettings",
        "ladder.RungBudget",
        "ladder.HistoricalRungBudget",
        "billing_catalog.TierThresholds",
        "billing_catalog.HistoricalTierThresholds",
    }
)
"""Where a database holds rows of no other table, and nothing was ever decided in it, nobody has used it yet."""


def kept_models() -> list[Any]:
    """Return the models whose rows an archive holds, those first that others are matched with."""
    kept = [model for model in _all_models() if model._meta.label not in LEFT_OUT]
    order = {label: place for place, label in enumerate(MATCHED)}
    return sorted(kept, key=lambda model: (order.get(model._meta.label, len(order)), model._meta.label))


def emptied_models() -> list[Any]:
    """Return the models that are in no archive and that a restore empties."""
    return [model for model in _all_models() if (out := LEFT_OUT.get(model._meta.label)) is not None and out.is_emptied]


def undecided_models() -> list[str]:
    """Return the models that nobody decided upon: they are kept, and a test asks for the decision."""
    decided = {*LEFT_OUT, *MATCHED, *(f"{app}.{name}" for app, names in KEPT.items() for name in names)}
    labels = (model._meta.label for model in _all_models())
    return [label for label in labels if label.replace(".Historical", ".") not in decided]


def columns_of(model: Any) -> list[Any]:
    """Return the columns of a model's table, as fields, in the order of the archive."""
    return list(model._meta.local_concrete_fields)


def is_matched(model: Any) -> bool:
    """Tell whether a restore finds the rows of a model by name instead of writing them."""
    return model._meta.label in MATCHED


def _all_models() -> Iterable[Any]:
    found = apps.get_models(include_auto_created=True)
    return (model for model in found if model._meta.managed and not model._meta.proxy)
