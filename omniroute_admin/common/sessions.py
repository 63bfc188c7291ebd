"""Sessions whose cookie is kept as a hash: whoever reads the table, or a copy of it, is signed in nowhere."""

import hashlib
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.utils import timezone

_COLUMN = 40


def stored_name(session_key: str | None) -> str:
    """Return under what a session's key, the text of its cookie, stands in the table."""
    return hashlib.sha256((session_key or "").encode()).hexdigest()[:_COLUMN]


class SessionStore(DatabaseStore):
    """Django's sessions in the database, found by the hash of their key."""

    def _get_session_from_db(self) -> Any:
        name, now = stored_name(self.session_key), timezone.now()
        found = self.model.objects.filter(session_key=name, expire_date__gt=now).first()
        if found is None:
            self._session_key = None
        return found

    def exists(self, session_key: str) -> bool:
        """Tell whether there is a session of that key."""
        return super().exists(stored_name(session_key))

    def create_model_instance(self, data: Any) -> Any:
        """Return the row of the present session."""
        row = super().create_model_instance(data)
        row.session_key = stored_name(row.session_key)
        return row

    def delete(self, session_key: str | None = None) -> None:
        """Delete a session, the present one where none is named."""
        key = self.session_key if session_key is None else session_key
        if key is not None:
            super().delete(stored_name(key))
