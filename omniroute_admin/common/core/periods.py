"""How long what is kept is kept: four parts, each with a period of its own. Pure.

A period of 0 days keeps for ever. The least of each is what decisions, totals and screens look back on, with room for
what arrives late: the longest window of a budget is a month, and so is the longest usual window of a quota.
"""

from enum import StrEnum

import msgspec


class Part(StrEnum):
    """What is kept: readings of quota windows, the timeline, the ledger with its holds, who changed what."""

    READINGS = "readings"
    HISTORY = "history"
    LEDGER = "ledger"
    AUDIT = "audit"


LEAST_DAYS = {Part.READINGS: 35, Part.HISTORY: 35, Part.LEDGER: 62, Part.AUDIT: 92}
"""The shortest period of each part."""

DEFAULT_DAYS = {Part.READINGS: 90, Part.HISTORY: 400, Part.LEDGER: 800, Part.AUDIT: 800}


class Periods(msgspec.Struct, frozen=True, kw_only=True):
    """How many days each part is kept; 0 is for ever."""

    readings: int = 0
    history: int = 0
    ledger: int = 0
    audit: int = 0

    def of(self, part: Part) -> int:
        """Return the period of a part in days."""
        days: int = getattr(self, part.value)
        return days
