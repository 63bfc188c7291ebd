"""What a check says."""

from collections.abc import Callable
from datetime import datetime
from enum import IntEnum, StrEnum

import msgspec


class Verdict(StrEnum):
    """How it stands; `not_applicable` also where it cannot be asked."""

    OK = "ok"
    NOT_APPLICABLE = "not_applicable"
    WARNING = "warning"
    ERROR = "error"


class Needs(IntEnum):
    """What must work before a check can be asked."""

    NOTHING = 0
    DATABASE = 1
    TABLES = 2


class Said(msgspec.Struct, frozen=True):
    """One sentence what is, and one how to mend it (empty where nothing is wrong). Neither holds a secret."""

    verdict: Verdict
    says: str
    mend: str = ""


class Check(msgspec.Struct, frozen=True):
    """A check by name; `ask` is given the time and reads the rest."""

    name: str
    needs: Needs
    ask: Callable[[datetime], Said]


class Finding(msgspec.Struct, frozen=True):
    """What a check said."""

    check: str
    verdict: Verdict
    says: str
    mend: str


def ok(says: str) -> Said:
    """Return that all is well."""
    return Said(Verdict.OK, says)


def not_applicable(says: str, mend: str = "") -> Said:
    """Return that there is nothing to check."""
    return Said(Verdict.NOT_APPLICABLE, says, mend)


def warning(says: str, mend: str) -> Said:
    """Return that something should be looked at."""
    return Said(Verdict.WARNING, says, mend)


def error(says: str, mend: str) -> Said:
    """Return that something does not work, or costs money or secrets."""
    return Said(Verdict.ERROR, says, mend)


def some(names: list[str]) -> str:
    """Return the first three names and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""  # noqa: PLR2004
    return ", ".join(names[:3]) + more


def age(seconds: float) -> str:
    """Return a span in the largest unit that says it."""
    for unit, length in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} seconds"
