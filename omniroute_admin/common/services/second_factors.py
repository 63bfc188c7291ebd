"""Second factors of local accounts: codes of an app (TOTP, RFC 6238), and recovery codes for when it is lost."""

import hmac
import logging
import secrets
from base64 import b32encode
from datetime import datetime
from typing import Any

import pyotp
from django.db import transaction

from omniroute_admin.common.core.sign_in import hash_code, is_app_code, plain_code, steps_at
from omniroute_admin.common.errors import BadRequest, Conflict, field
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models_sign_in import RecoveryCode, SecondFactor
from omniroute_admin.common.sealing import Unreadable, seal, unseal
from omniroute_admin.common.services.sessions import end_sessions
from omniroute_admin.common.services.users import note_user

ISSUER = "Subscription first"
RECOVERY_CODES = 10
_CODE_BYTES = 10
_CANNOT_BE_READ = (
    "Your second factor cannot be read on this installation, so no code of the app can be checked. "
    "A recovery code works; without one, ask an administrator."
)
_log = logging.getLogger("omniroute_admin.security")


def factor_of(user: Any) -> SecondFactor | None:
    """Return the second factor that an account is asked for; None where it has none."""
    return SecondFactor.objects.filter(user=user, confirmed_at__isnull=False).first()


def start_second_factor(*, user: Any, now: datetime) -> SecondFactor:
    """Begin to set one up, with a new secret; nothing is asked for until it is confirmed.

    Raises:
        Conflict: there is one already.
    """
    with transaction.atomic():
        kept = SecondFactor.objects.select_for_update().filter(user=user).first()
        if kept is not None and kept.confirmed_at is not None:
            raise Conflict("This account has a second factor already. Remove it before another is set up.")
        values = {"secret_box": seal(pyotp.random_base32()), "made_at": now, "last_step": 0}
        return SecondFactor.objects.update_or_create(user=user, defaults=values)[0]


def started_factor(*, user: Any) -> SecondFactor | None:
    """Return the one that is being set up; None where there is none that can be read."""
    found = SecondFactor.objects.filter(user=user, confirmed_at__isnull=True).first()
    return found if found is not None and secret_of(found) is not None else None


def secret_of(factor: SecondFactor) -> str | None:
    """Return the secret, in base 32; None where it was encrypted under a key that is gone."""
    try:
        return unseal(factor.secret_box)
    except Unreadable:
        _log.error("the second factor of account %s cannot be read: the key is another one now", factor.user_id)
        return None


def app_address(*, factor: SecondFactor, name: str) -> str:
    """Return what an app reads from the square picture; it holds the secret."""
    return pyotp.TOTP(secret_of(factor) or "").provisioning_uri(name=name, issuer_name=ISSUER)


def confirm_second_factor(*, user: Any, code: str, actor: Actor, now: datetime) -> list[str]:
    """Take the first code of the app: from now on one is asked for. Return the recovery codes, told this once.

    Raises:
        BadRequest: the code is not the app's, or nothing was begun.
    """
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user=user, confirmed_at__isnull=True).first()
        if factor is None or not _takes_app_code(factor, code=plain_code(code), now=now):
            raise BadRequest("Nothing was set up.", errors=[field("code", "This is not the code that the app shows.")])
        factor.confirmed_at = now
        factor.save(update_fields=["confirmed_at"])
        note_user(user=user, actor=actor, reason="", now=now, act="second factor set up")
        codes = _new_codes(factor)
    _log.warning("second factor set up: account %s", user.get_username())
    return codes


def takes_code(*, user: Any, code: str, now: datetime) -> bool:
    """Tell whether a code is right: of the app, or a recovery code. Each is taken once."""
    plain = plain_code(code)
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user=user, confirmed_at__isnull=False).first()
        if factor is None:
            return False
        if is_app_code(plain):
            return _takes_app_code(factor, code=plain, now=now)
        return _takes_recovery_code(factor, code=plain, now=now)


def refuse_unreadable(*, user: Any, code: str) -> None:
    """Refuse a code of the app that there is nothing to compare with; it is no failed try, whoever made it.

    Raises:
        BadRequest: it is a code of the app, and the second factor was encrypted under a key that is gone.
    """
    factor = factor_of(user)
    if factor is not None and is_app_code(plain_code(code)) and secret_of(factor) is None:
        raise BadRequest("The code cannot be checked.", errors=[field("code", _CANNOT_BE_READ)])


def renew_recovery_codes(*, user: Any, actor: Actor, now: datetime) -> list[str]:
    """Make new recovery codes, which end the old ones, and return them, this once.

    Raises:
        Conflict: the account has no second factor.
    """
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user=user, confirmed_at__isnull=False).first()
        if factor is None:
            raise Conflict("This account has no second factor.")
        note_user(user=user, actor=actor, reason="", now=now, act="recovery codes renewed")
        return _new_codes(factor)


def remove_second_factor(*, user: Any, actor: Actor, reason: str, now: datetime) -> bool:
    """Remove it, and tell whether there was one. It goes to the history; somebody else's sessions end with it."""
    with transaction.atomic():
        found, _ = SecondFactor.objects.filter(user=user).delete()
        if found and actor.user_id != user.pk:
            end_sessions(user_id=user.pk)
        if found:
            note_user(user=user, actor=actor, reason=reason, now=now, act="second factor removed")
    if found:
        _log.warning("second factor removed: account %s, by %s", user.get_username(), actor.name)
    return bool(found)


def codes_left(factor: SecondFactor) -> int:
    """Return how many recovery codes are still unused."""
    return factor.recovery_codes.filter(used_at=None).count()


def _takes_app_code(factor: SecondFactor, *, code: str, now: datetime) -> bool:
    """Tell whether it is the code of a time step after the last one taken, and remember the step."""
    secret = secret_of(factor)
    if secret is None or not is_app_code(code):
        return False
    made = pyotp.HOTP(secret)
    steps = [step for step in steps_at(now=now) if step > factor.last_step]
    step = next((step for step in steps if hmac.compare_digest(made.at(step), code)), None)
    if step is None:
        return False
    factor.last_step = step
    factor.save(update_fields=["last_step"])
    return True


def _takes_recovery_code(factor: SecondFactor, *, code: str, now: datetime) -> bool:
    found = factor.recovery_codes.filter(code_hash=hash_code(code), used_at=None)
    is_right = found.update(used_at=now) == 1
    if is_right:
        _log.warning("a recovery code was used: account %s", factor.user_id)
    return is_right


def _new_codes(factor: SecondFactor) -> list[str]:
    factor.recovery_codes.all().delete()
    codes = [_new_code() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.bulk_create(RecoveryCode(factor=factor, code_hash=hash_code(code)) for code in codes)
    return codes


def _new_code() -> str:
    text = b32encode(secrets.token_bytes(_CODE_BYTES)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))
