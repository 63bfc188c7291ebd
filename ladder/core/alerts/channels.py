"""Where alerts go: channels, known by a name; the address of one may hold a secret and is never told."""

import re

import msgspec

WEBHOOK, MAIL = "webhook", "mail"
LONGEST_NAME = 40

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://\S+")
_KINDS = {"http": WEBHOOK, "https": WEBHOOK, "mailto": MAIL, "mailtos": MAIL}


class Channel(msgspec.Struct, frozen=True):
    """A way out: the name that rules know it by, its kind in one word, and its address, which is not to be shown."""

    name: str
    kind: str
    address: str

    def __repr__(self) -> str:
        return f"Channel({self.name!r}, {self.kind!r})"


class Outcome(msgspec.Struct, frozen=True):
    """What became of an attempt: delivered where `problem` is empty.

    `problem` says in words what was wrong, without anything of the address or the answer's body. `is_permanent` says
    that the same attempt can never succeed, so that another one makes no sense.
    """

    problem: str = ""
    is_permanent: bool = False

    @property
    def is_delivered(self) -> bool:
        """Tell whether it arrived."""
        return not self.problem


_MAY_PASS = frozenset({408, 425, 429})
_FIRST_BAD, _FIRST_THEIRS = 300, 500


def outcome_of_status(status: int) -> Outcome:
    """Return what an HTTP status means for a delivery: 2xx arrived, 5xx, 408, 425 and 429 may pass, others never do.

    A redirect is not followed: what is signed for one address is sent to no other.
    """
    if status < _FIRST_BAD:
        return Outcome()
    is_permanent = status < _FIRST_THEIRS and status not in _MAY_PASS
    note = ", and redirects are not followed" if status < 400 else ""  # noqa: PLR2004 - as HTTP counts
    return Outcome(f"answered {status}{note}", is_permanent=is_permanent)


def channel_of(*, name: str, address: str) -> Channel | None:
    """Return the channel at an address; None where there is none. A plain http(s) one is the signed webhook."""
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return None
    scheme = found[1].lower()
    return Channel(name, _KINDS.get(scheme, scheme.removesuffix("s") if scheme == "jsons" else scheme), address)
