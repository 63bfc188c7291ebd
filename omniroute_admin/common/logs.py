"""Lines of the log: for people, or one JSON object each; what may be a secret is blotted out of both.

Needs no framework: the web server writes its own lines in the same form before there is one.
"""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any

from omniroute_admin.common.present import PRESENT

LINE, JSON = "line", "json"
_LINE = "{asctime} {levelname} {name}: {message}"
# Longer than the prefix, by which people tell keys apart.
_KEY = re.compile(r"orl_[A-Za-z0-9_-]{9,}")
# What a database tells of a refused statement repeats the values of the row, hashes of secrets among them.
_VALUES = re.compile(r"\n(?:DETAIL|CONTEXT):[^\n]*")


def formatter(*, form: str, line: str = _LINE) -> logging.Formatter:
    """Return the formatter of a form, for the settings' LOGGING."""
    return JsonFormatter() if form == JSON else LineFormatter(line, style="{")


class _Discreet(logging.Formatter):
    """Leaves out what must not stand in a log."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - the library's name
        """Return a traceback as text, without the values that a database repeats; it never holds local variables."""
        return _VALUES.sub("", super().formatException(ei))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, keys in it blotted out."""
        return _KEY.sub("orl_...", self.line_of(record))

    def line_of(self, record: logging.LogRecord) -> str:
        """Return the line as it is written."""
        return super().format(record)


class LineFormatter(_Discreet):
    """Lines as people read them; the id of a request stands at the end of its own."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the library's name
        """Return the line without a traceback."""
        request_id = _request_of(record)[0]
        said = super().formatMessage(record)
        return said if request_id is None else f"{said} [{request_id}]"


class JsonFormatter(_Discreet):
    """One object a line: when, how grave, who says what, and of which request."""

    def line_of(self, record: logging.LogRecord) -> str:
        """Return the object as text."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = {
            "time": at.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": _VALUES.sub("", record.getMessage()),
            **_work_of(record),
        }
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            said["stack"] = self.formatStack(record.stack_info)
        # In ASCII, so that no name that is no proper text keeps a line from being written.
        return json.dumps(said)


def _request_of(record: logging.LogRecord) -> tuple[str | None, Any]:
    """Return the id and the request that a record names itself, else those that the thread is at work on."""
    named: Any = getattr(record, "request", None)
    request_id = getattr(named, "request_id", None)
    if request_id is not None:
        return request_id, named
    work = PRESENT.get()
    return (None, None) if work is None else (work.request_id, work.request)


def _work_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what is known of the request or task that a record is of; what is not known is left out."""
    request_id, request = _request_of(record)
    work = PRESENT.get()
    status = getattr(record, "status_code", None)
    known = {
        "request_id": request_id,
        "task": None if work is None else work.task,
        "method": getattr(request, "method", None),
        "route": getattr(getattr(request, "resolver_match", None), "route", None),
        "path": getattr(record, "path", None),
        "status": status if isinstance(status, int) else None,
        "duration_ms": getattr(record, "duration_ms", None),
        "actor": _actor_of(request),
    }
    return {name: value for name, value in known.items() if value is not None}


def _actor_of(request: Any) -> str | None:
    """Return who calls, as the history names them, where that was found out already: nothing is read for a line."""
    actor = getattr(getattr(request, "auth", None), "actor", None)
    if actor is not None:
        return str(actor.name)
    user = getattr(request, "_cached_user", None)
    return (user.get_username() or None) if user is not None else None
