"""Where sessions are kept: in the database, each with its user, and ended when nobody used it for long.

A cookie is kept as a hash: whoever reads the table, or a copy of it, is signed in nowhere. One reading tells all of a
session, as Django's own does: a poll of a live page costs no query more.
"""

import hashlib
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db.models import Q

from omniroute_admin.common import clock
from omniroute_admin.common.core.sign_in import PASSWORD

SIGNED_IN = "signed_in"
"""What a session says of its own beginning: `at`, `way`, `address`, `agent`."""

_COLUMN = 40


def stored_name(session_key: str | None) -> str:
    """Return under what a session's key, the text of its cookie, stands in the table."""
    return hashlib.sha256((session_key or "").encode()).hexdigest()[:_COLUMN]


class SessionStore(DatabaseStore):
    """Sessions of `common.models.Session`. One that was left alone too long, or came in too lightly, is as none."""

    row: Any = None

    @classmethod
    def get_model_class(cls) -> Any:
        """Return the table."""
        from omniroute_admin.common.models_sign_in import Session

        return Session

    def _get_session_from_db(self) -> Any:
        name = stored_name(self.session_key)
        found = self.model.objects.filter(session_key=name, expire_date__gt=clock.now()).first()
        self.row = found if found is not None and is_live(found) else None
        if self.row is None:
            self._session_key = None
        return self.row

    def exists(self, session_key: str) -> bool:
        """Tell whether there is a session of that key."""
        return super().exists(stored_name(session_key))

    def delete(self, session_key: str | None = None) -> None:
        """Delete a session, the present one where none is named."""
        key = self.session_key if session_key is None else session_key
        if key is not None:
            super().delete(stored_name(key))

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        """Return the row with what tells whose it is, beside Django's own columns."""
        made: Any = super().create_model_instance(data)
        made.session_key = stored_name(made.session_key)
        user, said = data.get(SESSION_KEY), data.get(SIGNED_IN)
        if user is not None:
            made.user_id = int(user)
            made.seen_at = clock.now()
        if user is not None and said is not None:
            made.signed_in_at, made.way = said["at"], said["way"]
            made.address, made.agent = said["address"], said["agent"]
        return made


def is_live(row: Any) -> bool:
    """Tell whether a session still counts: used lately, and by both factors where both are needed."""
    if row.user_id is None:
        return True
    return not _is_idle(row) and not (settings.REQUIRE_TOTP and row.way in {"", PASSWORD})


def live_sessions(*, user_id: int) -> Any:
    """Return the query of the sessions of an account that still count, the newest first."""
    now = clock.now()
    found = SessionStore.get_model_class().objects.filter(user_id=user_id, expire_date__gt=now)
    if settings.SESSION_IDLE_MINUTES:
        found = found.filter(seen_at__gt=now - timedelta(minutes=settings.SESSION_IDLE_MINUTES))
    if settings.REQUIRE_TOTP:
        found = found.exclude(Q(way="") | Q(way=PASSWORD))
    return found.order_by("-signed_in_at")


def _is_idle(row: Any) -> bool:
    minutes = settings.SESSION_IDLE_MINUTES
    return bool(minutes) and (row.seen_at is None or clock.now() - row.seen_at >= timedelta(minutes=minutes))
