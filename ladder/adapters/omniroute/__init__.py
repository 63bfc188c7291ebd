"""OmniRoute's `storage.sqlite`, read without ever touching a secret or the file."""

from ladder.adapters.omniroute.reader import read_omniroute
from ladder.adapters.omniroute.values import (
    ImportedConnection,
    ImportedCooldown,
    ImportedReading,
    ImportProblem,
    OmnirouteContents,
    RowsSeen,
)

__all__ = [
    "ImportProblem",
    "ImportedConnection",
    "ImportedCooldown",
    "ImportedReading",
    "OmnirouteContents",
    "RowsSeen",
    "read_omniroute",
]
