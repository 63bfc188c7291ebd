"""What pages ask beside the decision."""

from datetime import datetime

import msgspec
from django.db.models import F, Q

from ladder.models import Connection, Cooldown


class ActingCooldown(msgspec.Struct, frozen=True):
    """The longest cooldown that lasts of a connection, or of one model of it (C2, C3).

    An instant of None is "until cleared", a model of None every model.
    """

    cause: str
    asked_until: datetime | None
    effective_until: datetime | None
    set_by: str
    model: str | None = None


def read_labels() -> dict[tuple[str, str], str]:
    """Return what operators call the live connections, by provider and id; one query."""
    rows = Connection.objects.live().exclude(label="").values_list("provider", "connection_id", "label")
    return {(provider, name): label for provider, name, label in rows}


def read_acting_cooldowns(*, now: datetime) -> dict[tuple[str, str], tuple[ActingCooldown, ...]]:
    """Return the cooldowns that last of every live connection that has one, by provider and id; one query.

    Of several causes the longest counts. That of every model comes first, then those of one model each by name.
    """
    lasting = Q(effective_until__isnull=True) | Q(effective_until__gt=now)
    rows = Cooldown.objects.filter(lasting, connection__deleted_at__isnull=True).order_by(
        F("effective_until").asc(nulls_last=True), "id"
    )
    fields = ("cause", "asked_until", "effective_until", "set_by", "model")
    found: dict[tuple[str, str], dict[str, ActingCooldown]] = {}
    for provider, name, *rest in rows.values_list("connection__provider", "connection__connection_id", *fields):
        one = ActingCooldown(*rest)
        found.setdefault((provider, name), {})[one.model or ""] = one
    return {key: tuple(one for _, one in sorted(models.items())) for key, models in found.items()}
