"""What pages ask beside the decision."""

from datetime import datetime

import msgspec
from django.db.models import F, Q

from ladder.models import Connection, Cooldown


def find_stored_connection(*, provider: str, connection_id: str) -> int | None:
    """Return the key of the live connection of that name, None where none is stored."""
    found = Connection.objects.live().filter(provider=provider, connection_id=connection_id)
    return found.values_list("pk", flat=True).first()


class ActingCooldown(msgspec.Struct, frozen=True):
    """The longest cooldown of a connection that lasts (C2, C3); an instant of None is "until cleared"."""

    cause: str
    asked_until: datetime | None
    effective_until: datetime | None
    set_by: str


def read_labels() -> dict[tuple[str, str], str]:
    """Return what operators call the live connections, by provider and id; one query."""
    rows = Connection.objects.live().exclude(label="").values_list("provider", "connection_id", "label")
    return {(provider, name): label for provider, name, label in rows}


def read_acting_cooldowns(*, now: datetime) -> dict[tuple[str, str], ActingCooldown]:
    """Return the longest lasting cooldown of every live connection that has one, by provider and id; one query."""
    lasting = Q(effective_until__isnull=True) | Q(effective_until__gt=now)
    rows = Cooldown.objects.filter(lasting, connection__deleted_at__isnull=True).order_by(
        F("effective_until").asc(nulls_last=True), "id"
    )
    fields = ("connection__provider", "connection__connection_id", "cause", "asked_until", "effective_until", "set_by")
    return {(provider, name): ActingCooldown(*rest) for provider, name, *rest in rows.values_list(*fields)}
