"""Why an archive is not made, or not restored."""


class ArchiveError(Exception):
    """Nothing was written. `str()` is a sentence for the operator: what is wrong, and the remedy."""


class InUseError(ArchiveError):
    """The database to restore into is in use already."""
