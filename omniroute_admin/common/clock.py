"""The clock, read at the edge only (views, commands, tasks); below it `now` is an argument."""

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present instant: aware, UTC, whole microseconds."""
    return datetime.now(UTC)


STARTED_AT = now()
"""When this process was started: this module is loaded before its first request."""
