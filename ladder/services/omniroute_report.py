"""What an import did, as values."""

import msgspec

from ladder.adapters.omniroute import ImportProblem, RowsSeen


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the rows of one kind; the four are disjoint."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0
    skipped: int = 0


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The counts of one kind and what was met on the way."""

    counts: Counts
    problems: tuple[ImportProblem, ...] = ()

    @property
    def is_change(self) -> bool:
        """Tell whether any row was written."""
        return bool(self.counts.created or self.counts.changed)


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """A whole import. `readings.created` counts what went to the history, older than the current one included.

    After a dry run the counts are what a real run would do.
    """

    connections: Counts
    windows: Counts
    readings: Counts
    cooldowns: Counts
    problems: tuple[ImportProblem, ...]
    seen: RowsSeen
    dry_run: bool = False
