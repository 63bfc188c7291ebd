"""Lines of the log: one JSON object each, findable by the id of their request, and no secret in any."""

import json
import logging
import sys
from typing import Any

import pytest
from django.http import HttpRequest

from omniroute_admin.common.history import Actor
from omniroute_admin.common.logs import JSON, LINE, formatter
from omniroute_admin.common.present import PRESENT, Work

SECRET = "orl_" + "Ab3-_" * 8 + "xyz"
REFUSED = "refused\nDETAIL:  Failing row contains (1, hash-of-a-secret).\nmore"


def record(message: str, *arguments: Any, exception: bool = False, **more: Any) -> logging.LogRecord:
    given = sys.exc_info() if exception else None
    made = logging.LogRecord("a.logger", logging.WARNING, __file__, 1, message, arguments, given)
    made.created = 1_787_400_000.25
    vars(made).update(more)
    return made


def fail(message: str) -> None:
    password = message[::-1]
    assert password
    raise ValueError(message)


def said(made: logging.LogRecord) -> dict[str, Any]:
    line = formatter(form=JSON).format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_is_one_object_with_when_how_grave_who_and_what() -> None:
    assert said(record("it is %d", 7)) == {
        "time": "2026-08-22T12:00:00.250Z",
        "level": "WARNING",
        "logger": "a.logger",
        "message": "it is 7",
    }


@pytest.mark.parametrize("message", ["two\nlines", 'a "quote"', "caf\u00e9 \u2028", "half \udc80 a character", "\x00"])
def test_whatever_is_said_is_one_line_and_reads_back(message: str) -> None:
    assert said(record(message))["message"] == message


@pytest.mark.parametrize("form", [LINE, JSON])
def test_a_key_is_blotted_out_wherever_it_stands_and_its_prefix_is_not(form: str) -> None:
    try:
        fail(SECRET)
    except ValueError:
        line = formatter(form=form).format(record("a key %s and %s", SECRET, SECRET[:12], exception=True))
    assert SECRET[:13] not in line
    assert SECRET[:12] in line


def test_a_traceback_is_text_without_local_variables_and_without_the_values_of_a_row() -> None:
    try:
        fail(REFUSED)
    except ValueError:
        found = said(record("it failed", exception=True))
    assert REFUSED[::-1] not in str(found)
    assert "hash-of-a-secret" not in json.dumps(found)
    assert found["exception"].startswith("Traceback")
    assert "ValueError: refused\nmore" in found["exception"]


def test_a_line_within_a_request_or_task_names_it() -> None:
    request = HttpRequest()
    request.method = "POST"
    token = PRESENT.set(Work("id-1", request))
    try:
        assert said(record("x")).items() >= {"request_id": "id-1", "method": "POST"}.items()
        assert formatter(form=LINE).format(record("x")).endswith("a.logger: x [id-1]")
    finally:
        PRESENT.reset(token)
    token = PRESENT.set(Work("id-2", task="a.task"))
    try:
        assert said(record("x")).items() >= {"request_id": "id-2", "task": "a.task"}.items()
    finally:
        PRESENT.reset(token)
    assert "request_id" not in said(record("x"))


def test_what_a_record_says_of_its_request_counts_and_nobody_is_read_for_a_line() -> None:
    class Unread:
        """A user that nobody has looked at yet."""

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} was read")

    request = HttpRequest()
    request.method, request.request_id, request.user = "GET", "id-3", Unread()  # type: ignore[attr-defined, assignment]
    found = said(record("x", request=request, status_code=404, path="/p", duration_ms=1.5))
    assert found.items() >= {"request_id": "id-3", "method": "GET", "status": 404, "path": "/p"}.items()
    assert "actor" not in found
    request.auth = type("Caller", (), {"actor": Actor(name="key router (orl_12345678)")})()  # type: ignore[attr-defined]
    assert said(record("x", request=request))["actor"] == "key router (orl_12345678)"


def test_something_else_that_is_called_a_request_is_no_reason_to_fail() -> None:
    assert said(record("x", request=object(), status_code="no number"))["message"] == "x"
