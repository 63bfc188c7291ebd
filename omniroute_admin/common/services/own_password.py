"""Somebody who is signed in says their password again: an open session alone must not be enough for what follows."""

from datetime import datetime
from typing import Any

from omniroute_admin.common.errors import BadRequest, field
from omniroute_admin.common.services.second_factors import factor_of, refuse_unreadable, takes_code
from omniroute_admin.common.services.sign_in_counts import (
    Try,
    begin_try,
    end_tries,
    keys_of_session,
    note_failure,
)


def require_password(*, user: Any, password: str, address: str, now: datetime) -> None:
    """Check the password of an open session; failures are counted and lock, as at the sign-in.

    Raises:
        BadRequest: it is another one.
        TooManyTries: there were too many.
    """
    taken = begin_try(keys=keys_of_session(user_id=user.pk), now=now)
    if not user.check_password(password):
        raise _refused(taken, user, "password", "This is not the password.", address=address, now=now)
    end_tries(taken=taken, now=now)


def require_both(*, user: Any, password: str, code: str, address: str, now: datetime) -> None:
    """Check the password, and a code of the second factor where there is one.

    Raises:
        BadRequest: one is wrong, or the second factor cannot be read, which counts as no failure.
        TooManyTries: there were too many.
    """
    refuse_unreadable(user=user, code=code)
    taken = begin_try(keys=keys_of_session(user_id=user.pk), now=now)
    if not user.check_password(password):
        raise _refused(taken, user, "password", "This is not the password.", address=address, now=now)
    if factor_of(user) is not None and not takes_code(user=user, code=code, now=now):
        words = "This code is wrong or was used before. The app shows a new one every 30 seconds."
        raise _refused(taken, user, "code", words, address=address, now=now)
    end_tries(taken=taken, now=now)


def _refused(taken: Try, user: Any, name: str, words: str, *, address: str, now: datetime) -> BadRequest:
    note_failure(taken=taken, account=user.get_username(), address=address, now=now)
    return BadRequest("Nothing was changed.", errors=[field(name, words)])
