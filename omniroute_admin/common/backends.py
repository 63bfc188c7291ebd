"""Accounts of people, read together with the token of what screens show (SPEC 3).

A live page asks every few seconds; who asks and whether anything changed is then one query beside the session's.
"""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.db.models import Subquery

from omniroute_admin.common.models import Revision


class TokenBackend(ModelBackend):
    """Django's own backend; a user that a session names carries `revision_read` and `shown_read`."""

    def get_user(self, user_id: Any) -> User | None:
        """Return the active user of that key with the revision as this reading saw it, None where there is none."""
        rows = Revision.objects.filter(pk=1)
        users = User.objects.order_by().annotate(
            revision_read=Subquery(rows.values("value")), shown_read=Subquery(rows.values("shown"))
        )
        user: User | None = users.filter(pk=user_id).first()
        return user if user is not None and self.user_can_authenticate(user) else None


def token_read_with(user: Any) -> tuple[int, int] | None:
    """Return (revision, shown) as they were when the user was read; None where somebody else read the user."""
    try:
        return int(user.revision_read), int(user.shown_read)
    except AttributeError:
        return None
