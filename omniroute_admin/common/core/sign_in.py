"""Signing in, as far as it is pure: how many tries there are, what a provider's claims say, what a code looks like."""

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from omniroute_admin.common.core.roles import ROLES

ACCOUNT, ADDRESS, BROWSER, OWN = "account", "address", "browser", "own"
"""What tries are counted for: a name, where they come from, a browser that is known to an account, an open session."""

PASSWORD, SECOND_FACTOR, SINGLE_SIGN_ON = "password", "second factor", "single sign-on"
"""The ways in, as a session remembers its own."""

_ADDRESS_FACTOR = 4
"""Several people may share an address: it has that many times the tries of an account."""

_STEP_SECONDS = 30
_STEPS_BESIDE = (0, -1, 1)
_CODE_DIGITS = 6
_LONGEST_NAME = 150


class Limits(msgspec.Struct, frozen=True):
    """How many tries there are until a lock, and for how long it holds and tries are remembered."""

    failures: int
    lock: timedelta

    def of(self, kind: str) -> int:
        """Return the tries of a kind."""
        return self.failures * _ADDRESS_FACTOR if kind == ADDRESS else self.failures


class Count(msgspec.Struct, frozen=True):
    """The tries counted for one name, address or browser: since when, and until when none is taken (None: they are)."""

    tries: int
    began_at: datetime
    locked_until: datetime | None = None

    def is_locked(self, *, now: datetime) -> bool:
        """Tell whether no try is taken at `now`."""
        return self.locked_until is not None and now < self.locked_until


def next_count(count: Count, *, limits: Limits, kind: str, now: datetime) -> Count:
    """Return the count with one more try at `now`; old tries are forgotten, and the last one there is locks."""
    is_over = count.locked_until is not None or now - count.began_at >= limits.lock
    begun = Count(tries=0, began_at=now) if is_over else count
    tries = begun.tries + 1
    locks = tries >= limits.of(kind)
    return Count(tries=tries, began_at=begun.began_at, locked_until=now + limits.lock if locks else None)


def given_back(count: Count, *, limits: Limits, kind: str) -> Count:
    """Return the count without its last try, which was no failure; the lock that it set is off."""
    tries = max(0, count.tries - 1)
    until = count.locked_until if tries >= limits.of(kind) else None
    return Count(tries=tries, began_at=count.began_at, locked_until=until)


def wait_words(*, until: datetime, now: datetime) -> str:
    """Return how long a lock holds, in whole minutes upwards: `1 minute`, `15 minutes`."""
    minutes = max(1, math.ceil((until - now).total_seconds() / 60))
    return f"{minutes} minute{'s' if minutes > 1 else ''}"


def account_key(name: str) -> str:
    """Return a typed user name as tries are counted for it: one way of writing it, large or small letters alike."""
    return unicodedata.normalize("NFKC", name).casefold()


# --- codes -----------------------------------------------------------------------------------------------------------
def steps_at(*, now: datetime) -> tuple[int, ...]:
    """Return the numbers of the time steps whose codes are taken at `now`: this one and its neighbours (RFC 6238)."""
    step = int(now.timestamp()) // _STEP_SECONDS
    return tuple(step + beside for beside in _STEPS_BESIDE)


def plain_code(text: str) -> str:
    """Return a code as typed, without blanks and hyphens, in small letters."""
    return "".join(text.replace("-", "").split()).lower()


def is_app_code(code: str) -> bool:
    """Tell whether a plain code is one of an app: six digits."""
    return len(code) == _CODE_DIGITS and code.isascii() and code.isdigit()


def hash_code(code: str) -> str:
    """Return what is kept of a recovery code, as typed. It is random and has 80 bits, so no slow hash is needed."""
    return hashlib.sha256(plain_code(code).encode()).hexdigest()


# --- what a provider says of a person --------------------------------------------------------------------------------
def roles_of_claims(claims: Mapping[str, Any], *, claim: str, mapping: Mapping[str, str]) -> tuple[str, ...]:
    """Return the roles that the values of a claim stand for, the one that may least first.

    The claim is named by its whole name or by a path with dots; its value is a text or a list of them. What is neither,
    and values that nobody mapped, stand for nothing.
    """
    named = {mapping[value] for value in _texts(_at(claims, claim)) if value in mapping}
    return tuple(role for role in ROLES if role in named)


def _at(claims: Mapping[str, Any], claim: str) -> Any:
    if claim in claims:
        return claims[claim]
    found: Any = claims
    for step in claim.split("."):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        return (value,)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def name_of_claims(claims: Mapping[str, Any], *, issuer: str) -> str:
    """Return the user name for somebody new: the one they go by, else their mail address, else their number there.

    Characters that user names do not have are left out. It tells nothing of who somebody is: that is issuer and
    subject alone.
    """
    for claim in ("preferred_username", "email"):
        value = claims.get(claim)
        name = _clean(value) if isinstance(value, str) else ""
        if name:
            return name
    number = hashlib.sha256(f"{issuer} {claims.get('sub')}".encode()).hexdigest()[:12]
    return f"sso-{number}"


def _clean(text: str) -> str:
    kept = "".join(sign for sign in unicodedata.normalize("NFKC", text) if sign.isalnum() or sign in "@.+-_")
    return kept[: _LONGEST_NAME - 10]


def numbered(name: str, number: int) -> str:
    """Return a user name that another account has, with a number behind: `mira`, `mira-2`, `mira-3`."""
    return name if number == 1 else f"{name}-{number}"
