"""Sessions: what is kept of their beginning, when one was last used, and ending all of an account."""

import logging
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import Error

from omniroute_admin.common.history import Actor
from omniroute_admin.common.models_sign_in import Session
from omniroute_admin.common.services.key_use import impatient
from omniroute_admin.common.services.users import note_user
from omniroute_admin.common.sessions import SIGNED_IN, stored_name

_SEEN_EVERY = timedelta(minutes=1)
_LONGEST_AGENT = 200
_log = logging.getLogger("omniroute_admin.security")


def note_sign_in(*, session: Any, way: str, address: str, agent: str, now: datetime) -> None:
    """Write into a session how it began, and set its end: at that instant, however much it is used until then."""
    said = {"at": now.isoformat(), "way": way, "address": address, "agent": agent[:_LONGEST_AGENT]}
    session[SIGNED_IN] = said
    session.set_expiry(now + timedelta(seconds=settings.SESSION_COOKIE_AGE))


def note_seen(*, row: Session, now: datetime) -> None:
    """Note that somebody used a session, at most once a minute; a busy database is not waited for."""
    if row.seen_at is None or now - row.seen_at < _SEEN_EVERY:
        return
    try:
        with impatient():
            Session.objects.filter(pk=row.pk).update(seen_at=now)
    except Error:
        return


def end_sessions(*, user_id: int, but: str | None = None) -> int:
    """End every session of an account, at once and everywhere, and return how many; `but` is the key of one to keep."""
    found = Session.objects.filter(user_id=user_id)
    count, _ = (found if but is None else found.exclude(pk=stored_name(but))).delete()
    return count


def sign_out(*, user: Any, actor: Actor, reason: str, now: datetime) -> int:
    """End every session of somebody else's account and return how many; it goes to the history."""
    count = end_sessions(user_id=user.pk)
    note_user(user=user, actor=actor, reason=reason, now=now, act="signed out everywhere")
    _log.warning("signed out everywhere: account %s, by %s", user.get_username(), actor.name)
    return count


def forget_ended_sessions(*, now: datetime) -> None:
    """Delete the rows of sessions whose time is over."""
    Session.objects.filter(expire_date__lt=now).delete()
