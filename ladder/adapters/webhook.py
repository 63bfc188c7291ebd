"""The signed webhook: our own POST of JSON (docs/operations.md, Alerts, has the form and how a receiver checks it).

The address is the operator's, from the environment, and is trusted: no page and no call can set one, so that nobody
can make this product ask an address of their own. Redirects are not followed, and nothing of an answer but its status
is looked at.
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

import msgspec
import requests

from ladder.adapters.deadline import OutOfTime, within
from ladder.adapters.quiet_logs import quieten
from ladder.core.alerts.channels import Outcome, outcome_of_status

CONNECT_SECONDS, ANSWER_SECONDS, ALL_SECONDS = 5, 10, 20
_PROBLEMS: tuple[tuple[type[Exception], str], ...] = (
    (requests.exceptions.SSLError, "its certificate was not accepted"),
    (requests.exceptions.ConnectTimeout, "could not be reached"),
    (requests.exceptions.Timeout, f"did not answer within {ANSWER_SECONDS} s"),
    (OutOfTime, f"did not end its answer within {ALL_SECONDS} s"),
    (requests.exceptions.ConnectionError, "could not be reached"),
)

quieten()


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The body: `id` of the delivery, the same on a retry; `alert` the same in both of a pair; instants in UTC."""

    id: str
    kind: str
    rule: str
    alert: str | None
    condition: str | None
    subject: str | None
    title: str
    text: str
    raised_at: datetime | None
    resolved_at: datetime | None
    revision: str | None
    page: str


def signature(*, secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature of a body sent at `timestamp` (seconds since 1970, as text)."""
    signed = timestamp.encode() + b"." + body
    return f"v1={hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()}"


def send(*, address: str, secret: str, message: Message, now: datetime) -> Outcome:
    """Send a message once, signed as of `now`."""
    body = msgspec.json.encode(message)
    headers = _headers(message, secret, body, str(int(now.timestamp())))
    try:
        status = within(ALL_SECONDS, lambda: _post(address, body, headers))
    except Exception as error:  # noqa: BLE001 - its words may hold the address, so that none of them go further
        return Outcome(next((words for kind, words in _PROBLEMS if isinstance(error, kind)), "could not be sent to"))
    return outcome_of_status(status)


def _headers(message: Message, secret: str, body: bytes, timestamp: str) -> Mapping[str, str]:
    return {
        "Content-Type": "application/json",
        "User-Agent": "omniroute_admin",
        "X-Ladder-Delivery": message.id,
        "X-Ladder-Timestamp": timestamp,
        "X-Ladder-Signature": signature(secret=secret, timestamp=timestamp, body=body),
    }


def _post(address: str, body: bytes, headers: Mapping[str, str]) -> int:
    timeout = (CONNECT_SECONDS, ANSWER_SECONDS)
    # Streamed: the answer's body is never read, however long it is.
    with requests.post(
        address, data=body, headers=headers, timeout=timeout, allow_redirects=False, stream=True
    ) as answer:
        return answer.status_code
