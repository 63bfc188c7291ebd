"""What people and commands did that can move the ladder, kind by kind, from the one history (SPEC 3)."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from django.db.models import CharField, Expression, F, Q, QuerySet, Value
from django.db.models.functions import Coalesce, Concat

from billing_catalog.models import (
    BillingEntry,
    FreeProvider,
    ModelPrice,
    PriceSource,
    ProviderAlias,
    TierOverride,
    TierThresholds,
)
from ladder.core.timeline.marks import Lane
from ladder.models import Breaker, Connection, Cooldown, LadderSettings, QuotaWindow, RungBudget

_TEXT = CharField()
Text = Expression | F


def _pair(first: str, second: str) -> Expression:
    return Concat(F(first), Value("/"), Coalesce(F(second), Value("*")), output_field=_TEXT)


class Act(msgspec.Struct, frozen=True):
    """One kind of history: its name in addresses, the lane it stands in, and where its rows say what they are of.

    `connection` is the field that holds the key of a connection's row, `rung` that of a rung's word, `what` tells the
    row apart from others of its kind.
    """

    kind: str
    model: Any
    lane: Lane
    what: Text = Value("", output_field=_TEXT)
    connection: str = ""
    rung: str = ""


ACTS = (
    Act("settings", LadderSettings, Lane.SETTING),
    Act("budget", RungBudget, Lane.SETTING, rung="rung"),
    Act("thresholds", TierThresholds, Lane.SETTING),
    Act("billing", BillingEntry, Lane.CATALOGUE, _pair("provider", "auth_type")),
    Act("price", ModelPrice, Lane.CATALOGUE, _pair("provider", "model")),
    Act("tier-override", TierOverride, Lane.CATALOGUE, _pair("provider", "model_pattern")),
    Act("free-provider", FreeProvider, Lane.CATALOGUE, F("provider")),
    Act("alias", ProviderAlias, Lane.CATALOGUE, F("alias")),
    Act("price-source", PriceSource, Lane.CATALOGUE, F("provider")),
    Act("connection", Connection, Lane.OPERATOR, connection="id"),
    Act("window", QuotaWindow, Lane.OPERATOR, F("window"), connection="connection_id"),
    Act("cooldown", Cooldown, Lane.OPERATOR, F("cause"), connection="connection_id"),
    Act("breaker", Breaker, Lane.OPERATOR, F("provider")),
)
"""Every kind of act that the timeline tells of; keys and people move no rung."""


def acts_between(*, start: datetime, end: datetime) -> Iterator[tuple[str, QuerySet[Any, Any]]]:
    """Yield each kind with its rows of history in [start, end)."""
    for act in ACTS:
        inside = Q(history_date__gte=start, history_date__lt=end)
        yield act.kind, act.model.history.filter(inside).order_by()
