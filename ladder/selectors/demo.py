"""Which connections are the demo fleet's."""

from datetime import datetime

import msgspec
from django.db.models import Exists, Max, OuterRef

from ladder.models import Connection, ConnectionQuerySet, QuotaWindow
from omniroute_admin.common.history import Actor

DEMO = Actor(name="manage.py demo")
"""Makes the demo fleet. No user and no key can bear this name: a user's has no blank, a key's begins with `key`."""


class DemoState(msgspec.Struct, frozen=True):
    """The demo fleet as it stands: its connections as provider/id, and the newest reading of any of them."""

    connections: tuple[str, ...]
    read_at: datetime | None


def demo_connections() -> ConnectionQuerySet:
    """Return the live connections of the demo fleet: those that the demo itself made, by the history (SPEC 3).

    Neither an id nor a label makes a connection the demo's, and editing one does not take it away.
    """
    made = Connection.history.filter(
        id=OuterRef("pk"), history_type="+", history_actor=DEMO.name, history_user__isnull=True
    )
    return Connection.objects.live().filter(Exists(made))


def read_demo_state() -> DemoState:
    """Return what there is of the demo fleet now."""
    rows = list(demo_connections())
    newest = QuotaWindow.objects.filter(connection__in=[row.pk for row in rows]).aggregate(at=Max("observed_at"))
    return DemoState(tuple(map(str, rows)), newest["at"])
