"""Every denial is logged once, without the secret (SPEC 4): who was refused what, from where.

A flood of them costs a bounded number of lines: so many a minute for an address and a code, so many in all, and then
one line that says how many more there were.
"""

import ipaddress
import logging
import threading
from collections import Counter
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.db import Error
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from omniroute_admin.common import clock
from omniroute_admin.common.core.keys import blotted, hash_secret, is_secret
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.selectors.key_list import state_of_key

DENIED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS})
LINES_A_MINUTE = 20
"""Lines of one address and code in one process."""
MOST_LINES = 300
"""Lines of all of them together: whoever has many addresses fills no disk either."""
_UNSAFE = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_MOST_COUNTED = 5_000
_LONGEST = 200
_SHOWN = 8
_OTHERS = "other addresses"
_log = logging.getLogger("omniroute_admin.security")


class _Minute:
    """What was denied in the present minute, by address and code."""

    def __init__(self) -> None:
        self.number = 0
        self.seen: Counter[tuple[str, str]] = Counter()
        self.untold: Counter[tuple[str, str]] = Counter()
        self.lines = 0
        self.lock = threading.Lock()


_minute = _Minute()


def note_response(request: HttpRequest, response: HttpResponseBase) -> None:
    """Log a response that denies something; `denied` on it is the code where whoever made it knew one."""
    code = getattr(response, "denied", None) or HTTPStatus(response.status_code).phrase.lower().replace(" ", "_")
    note_denial(request, code=code)


def is_turned_away(request: HttpRequest, response: HttpResponseBase) -> bool:
    """Tell whether a stranger sent a form and was led to the login page instead."""
    if request.method not in _UNSAFE or not hasattr(response, "url"):
        return False
    page, _, query = response.url.partition("?")
    return page.rstrip("/").endswith("/login") and query.startswith("next=")


def note_denial(request: HttpRequest, *, code: str) -> None:
    """Log that a request was denied, or count it where its address has had its lines of this minute."""
    now = clock.now()
    address = client_address(request)
    if not _is_told(address, code, now=now):
        return
    said = {
        "code": code,
        "who": _plain(_who(request, now=now)),
        "method": _plain(request.method or ""),
        "path": _plain(request.path_info),
        "address": address,
    }
    _log.warning("denied %(code)s: %(who)s, %(method)s %(path)s from %(address)s", said, extra={"denial": said})


def flush_denials() -> None:
    """Say how many more were denied than there are lines, and begin anew."""
    with _minute.lock:
        told = _begin(_minute.number + 1)
    _tell(told)


def forget_denials() -> None:
    """Drop what this process counted; tests need it."""
    with _minute.lock:
        _begin(0)


def client_address(request: HttpRequest) -> str:
    """Return the address that calls: the one the trusted proxy names last, where there is one."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    if not settings.TRUST_PROXY:
        return address
    named = str(request.META.get("HTTP_X_FORWARDED_FOR", "")).rpartition(",")[2].strip()
    try:
        return str(ipaddress.ip_address(named))
    except ValueError:
        return address


def _is_told(address: str, code: str, *, now: datetime) -> bool:
    number = int(now.timestamp()) // 60
    with _minute.lock:
        told = _begin(number) if number != _minute.number else []
        key = (address, code)
        if key not in _minute.seen and len(_minute.seen) >= _MOST_COUNTED:
            key = (_OTHERS, code)
        _minute.seen[key] += 1
        is_told = _minute.seen[key] <= LINES_A_MINUTE and _minute.lines < MOST_LINES
        _minute.lines += is_told
        if not is_told:
            if not _minute.untold:
                _flush_later()
            _minute.untold[key] += 1
    _tell(told)
    return is_told


def _begin(number: int) -> list[tuple[tuple[str, str], int]]:
    """Begin a minute; return what of the last one was not told."""
    untold = _minute.untold.most_common(LINES_A_MINUTE)
    rest = _minute.untold.total() - sum(count for _, count in untold)
    _minute.number, _minute.lines, _minute.seen, _minute.untold = number, 0, Counter(), Counter()
    return [*untold, *([((_OTHERS, "any code"), rest)] if rest else [])]


def _tell(untold: list[tuple[tuple[str, str], int]]) -> None:
    for (address, code), count in untold:
        said = {"code": code, "more": count, "address": address}
        _log.warning("denied %(code)s: and %(more)d more from %(address)s", said, extra={"denial": said})


def _flush_later() -> None:
    """See that the count is told although nothing more is denied."""
    timer = threading.Timer(60, flush_denials)
    timer.daemon = True
    timer.start()


def _who(request: HttpRequest, *, now: datetime) -> str:
    known = getattr(request, "called_by", None)
    if known is not None:
        return str(known)
    try:
        header = request.META.get("HTTP_AUTHORIZATION")
        return _of_user(request) if header is None else _of_header(header, now=now)
    except Error:
        return "somebody who cannot be looked up now"


def _of_header(header: str, *, now: datetime) -> str:
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not is_secret(secret):
        return "no key of ours"
    key = ApiKey.objects.filter(secret_hash=hash_secret(secret)).first()
    if key is None:
        return f"unknown key {secret[:_SHOWN]}..."
    return f"key {key.name} ({key.prefix}), {state_of_key(key=key, now=now)}"


def _of_user(request: HttpRequest) -> str:
    user: Any = getattr(request, "user", None)
    return f"user {user.get_username()}" if user is not None and user.is_authenticated else "nobody signed in"


def _plain(text: str) -> str:
    """Return a text as it may stand in a log: one line, not endless, no key in it."""
    line = "".join(sign if sign.isprintable() else "?" for sign in blotted(text))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
