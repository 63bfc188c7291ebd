"""Who changed what, when and why: one history for pages, API, commands and admin (SPEC 3)."""

from datetime import datetime
from typing import Any

import msgspec
from django.db import models
from simple_history.models import HistoricalRecords

from omniroute_admin.common.core.keys import blotted

LONGEST_REASON = 10_000
"""Most characters of a reason that the history keeps: the edge refuses more, and `stamp` cuts what it is given."""


class Actor(msgspec.Struct, frozen=True):
    """Who acts: a user (`user_id`) or a key or command, named in words; never a secret."""

    name: str
    user_id: int | None = None


class HistoryBase(models.Model):
    """Adds to a history row the actor in words, for acts of keys and commands that no user row names."""

    history_actor = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        abstract = True


def history(**options: Any) -> HistoricalRecords:
    """Return the history tracker that every editable model uses."""
    return HistoricalRecords(bases=[HistoryBase], **options)


def stamp(*, instance: Any, actor: Actor, reason: str, now: datetime) -> None:
    """Put who, why and when on an instance, for the history row that its next save or delete writes.

    A key that somebody wrote into a reason is blotted out: the history never holds one.
    """
    instance._history_user_id = actor.user_id
    instance._history_actor = actor.name
    instance._change_reason = blotted(reason)[:LONGEST_REASON] or None
    instance._history_date = now
