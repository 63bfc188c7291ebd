"""What this thread is at work on: a request, or a task of the worker; so that its lines in the log can be found."""

from contextvars import ContextVar
from typing import Any, NamedTuple


class Work(NamedTuple):
    """An id, and the request or the name of the task it is of."""

    request_id: str
    request: Any = None
    task: str | None = None


PRESENT: ContextVar[Work | None] = ContextVar("PRESENT", default=None)
