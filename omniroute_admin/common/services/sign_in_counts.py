"""Counting failed sign-ins, in the database, so that a lock holds in every process.

A try is counted before its password is looked at: of many that come at once no more are taken than there are. From a
browser that is known to the account (it signed in there before) tries are counted on their own, and nobody else's
failures lock it: who keeps an account locked by failing on purpose does not keep its owner out.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils.crypto import salted_hmac

from omniroute_admin.common.core.sign_in import (
    ACCOUNT,
    ADDRESS,
    BROWSER,
    OWN,
    Count,
    Limits,
    account_key,
    given_back,
    next_count,
    wait_words,
)
from omniroute_admin.common.errors import TooManyTries
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models_sign_in import SignInCount
from omniroute_admin.common.services.users import note_user

_KEPT = timedelta(days=1)
_log = logging.getLogger("omniroute_admin.security")


class Try(msgspec.Struct, frozen=True):
    """One try that was taken: what it counts for, and until when it locks should it fail (None: it locks nothing)."""

    keys: tuple[tuple[str, str], ...]
    locks_until: datetime | None = None


def keys_of_sign_in(*, account: str, address: str, browser: str | None) -> tuple[tuple[str, str], ...]:
    """Return what a try to sign in counts for; `browser` is the mark of one that is known to the account."""
    if browser is not None:
        return ((BROWSER, _hashed(browser)),)
    return ((ACCOUNT, _hashed(account_key(account))), (ADDRESS, _hashed(address)))


def keys_of_session(*, user_id: int) -> tuple[tuple[str, str], ...]:
    """Return what a try counts for that somebody makes who is signed in (their own password, asked for again)."""
    return ((OWN, _hashed(str(user_id))),)


def begin_try(*, keys: Sequence[tuple[str, str]], now: datetime) -> Try:
    """Count a try that is about to be made.

    Raises:
        TooManyTries: it is not taken, and says in words for how long none is; it is not counted either.
    """
    limits = limits_of_sign_in()
    _forget_old(now)
    with transaction.atomic():
        rows = _locked(keys, now=now)
        until = _latest(count.locked_until for row in rows if (count := _count(row)).is_locked(now=now))
        if until is None:
            _store(rows, [next_count(_count(row), limits=limits, kind=row.kind, now=now) for row in rows])
    if until is not None:
        words = wait_words(until=until, now=now)
        raise TooManyTries(f"Too many failed tries. The next one is taken in {words}.", until=until)
    return Try(keys=tuple(keys), locks_until=_latest(row.locked_until for row in rows))


def give_back(*, taken: Try, now: datetime) -> None:
    """Take a try back that did not fail, with the lock that it set."""
    limits = limits_of_sign_in()
    with transaction.atomic():
        rows = _locked(taken.keys, now=now)
        _store(rows, [given_back(_count(row), limits=limits, kind=row.kind) for row in rows])


def end_tries(*, taken: Try, now: datetime) -> None:
    """Forget the failures of an account whose owner is in; an address only gets this one try back."""
    give_back(taken=taken, now=now)
    for kind, name in taken.keys:
        if kind != ADDRESS:
            SignInCount.objects.filter(kind=kind, name=name).delete()


def note_failure(*, taken: Try, account: str, address: str, now: datetime) -> None:
    """Write a failed try to the log, and the lock that it set.

    A name that no account has is not repeated: passwords are typed there by mistake.
    """
    known = get_user_model()._default_manager.filter(username=account).exists()
    name = account if known else "of no such name"
    _log.warning("sign-in failed: account %s, from %s", name, address or "an unknown address")
    if taken.locks_until is not None:
        until = f"{taken.locks_until:%Y-%m-%d %H:%M:%S} UTC"
        kinds = " and ".join(kind for kind, _ in taken.keys)
        _log.error("sign-in locked until %s (%s): account %s, from %s", until, kinds, name, address)


def locked_until(*, account: str, now: datetime) -> datetime | None:
    """Return until when an account's name is locked for browsers that it does not know; None where it is not."""
    row = SignInCount.objects.filter(kind=ACCOUNT, name=_hashed(account_key(account))).first()
    return row.locked_until if row is not None and _count(row).is_locked(now=now) else None


def unlock(*, user: Any, actor: Actor, reason: str, now: datetime) -> bool:
    """Forget the failures of an account; tell whether there were any. It goes to the history."""
    found, _ = SignInCount.objects.filter(kind=ACCOUNT, name=_hashed(account_key(user.get_username()))).delete()
    SignInCount.objects.filter(kind=OWN, name=_hashed(str(user.pk))).delete()
    note_user(user=user, actor=actor, reason=reason, now=now, act="sign-in unlocked")
    _log.warning("sign-in unlocked: account %s, by %s", user.get_username(), actor.name)
    return bool(found)


def unlock_all() -> int:
    """Forget every failure, those of addresses and browsers too, and return how many counts there were."""
    count, _ = SignInCount.objects.all().delete()
    _log.warning("every lock of the sign-in was removed")
    return count


def limits_of_sign_in() -> Limits:
    """Return how many tries there are, as this installation has it."""
    return Limits(failures=settings.LOGIN_FAILURES, lock=timedelta(minutes=settings.LOGIN_LOCK_MINUTES))


def _hashed(name: str) -> str:
    return salted_hmac("sign-in", name, algorithm="sha256").hexdigest()


def _locked(keys: Iterable[tuple[str, str]], *, now: datetime) -> list[SignInCount]:
    """Return the rows of the counts, made where they are missing, locked to the end of the transaction."""
    return [_locked_row(kind, name, now=now) for kind, name in sorted(keys)]


def _locked_row(kind: str, name: str, *, now: datetime) -> SignInCount:
    while True:
        SignInCount.objects.bulk_create([SignInCount(kind=kind, name=name, began_at=now)], ignore_conflicts=True)
        row = SignInCount.objects.select_for_update().filter(kind=kind, name=name).first()
        # One that a success deleted while its lock was waited for is made anew.
        if row is not None:
            return row


def _count(row: SignInCount) -> Count:
    return Count(tries=row.tries, began_at=row.began_at, locked_until=row.locked_until)


def _latest(instants: Iterable[datetime | None]) -> datetime | None:
    return max(filter(None, instants), default=None)


def _store(rows: Iterable[SignInCount], counts: Iterable[Count]) -> None:
    for row, count in zip(rows, counts, strict=True):
        row.tries, row.began_at, row.locked_until = count.tries, count.began_at, count.locked_until
        row.save(update_fields=["tries", "began_at", "locked_until"])


def _forget_old(now: datetime) -> None:
    kept = max(_KEPT, limits_of_sign_in().lock * 2)
    SignInCount.objects.filter(began_at__lt=now - kept).delete()
