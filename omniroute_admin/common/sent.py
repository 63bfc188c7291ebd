"""Forms that act once: each has a name of its own, and a session remembers which were sent (a double click, back)."""

import secrets

from django.http import HttpRequest

from omniroute_admin.common.errors import Conflict
from omniroute_admin.common.models_sign_in import Session
from omniroute_admin.common.sessions import stored_name

SENT_FORMS = "sent_key_forms"
"""Of which forms a session has made its keys; names of forms, nothing of the keys."""

LONGEST_FORM_NAME = 64
_FORMS_KEPT = 50


def new_form_name() -> str:
    """Return a name for a form that is opened now."""
    return secrets.token_urlsafe(16)


def note_sent(request: HttpRequest, *, form_name: str) -> None:
    """Remember that a form was sent; to be called inside the transaction of what it does.

    The session's row is locked to the end of it: of two that come at once, the second finds the first one's name.

    Raises:
        Conflict: it was sent before.
    """
    key = request.session.session_key
    Session.objects.select_for_update().filter(pk=stored_name(key)).first()
    # As it is stored now: what this request has read of it may be older.
    sent: list[str] = type(request.session)(key).get(SENT_FORMS, [])
    if form_name in sent:
        raise Conflict(
            "This form was sent before; its key was made and shown then. Fill in a new form for another key."
        )
    request.session[SENT_FORMS] = [*sent, form_name][-_FORMS_KEPT:]
    request.session.save()
