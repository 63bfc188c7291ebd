"""SPEC 6: a clock stepped back is noticed and answered by a rebuild, never by a refusal; nor does work stand still."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.omniroute_admin.faults.installation import PROGRAMS, Installation
from tests.omniroute_admin.faults.load import (
    CANDIDATES,
    bad,
    check_nothing_is_lost,
    store_what_calls_are_about,
    under_load,
)
from tests.processes import until
from tests.shared import ROOT

FOLLOWING = Path(__file__).parent / "clock"
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
pytestmark = pytest.mark.slow


class Clock:
    """The clock of every program of an installation, which a test sets while they run (see `clock/sitecustomize.py`).

    What measures how long something takes goes on, as it does on a machine whose clock is set.
    """

    def __init__(self, file: Path) -> None:
        self._file, self.by = file, timedelta(0)
        self.variables = {"PYTHONPATH": os.pathsep.join([str(FOLLOWING), str(ROOT)]), "TESTS_CLOCK": str(file)}
        self._write()

    def set(self, by: timedelta, at: Installation) -> None:
        """Set the clock so far off the true one, and return when the server goes by it."""
        self.by = by
        self._write()
        until(lambda: abs(told_by(at) - self.now()) < MINUTE, "the server's clock")

    def now(self) -> datetime:
        """Return what the programs take for the present instant."""
        return datetime.now(UTC) + self.by

    def _write(self) -> None:
        aside = self._file.with_suffix(".aside")
        aside.write_text(f"{self.by.total_seconds()}")
        aside.replace(self._file)


def told_by(at: Installation) -> datetime:
    """Return the server's present instant."""
    return datetime.fromisoformat(at.call("GET", "occupancy")["evaluated_at"])


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "clock")


@pytest.fixture
def installed(tmp_path: Path, clock: Clock) -> Iterator[Installation]:
    installed = Installation(tmp_path, f"sqlite:///{tmp_path / 'state.sqlite3'}", **clock.variables)
    try:
        installed.prepare()
        installed.start(*PROGRAMS)
        yield installed
    finally:
        installed.end()


def post(at: Installation, path: str, body: Any) -> Any:
    return at.call("POST", path, json.dumps(body).encode())


def pool(at: Installation, clock: Clock) -> dict[str, Any]:
    """Return a pool with what is left out of it; it must be one of the present instant as the server takes it."""
    before = clock.now()
    answer: dict[str, Any] = post(at, "pools/auto/thrifty", {"candidates": CANDIDATES, "explain": True})
    evaluated = datetime.fromisoformat(answer["evaluated_at"])
    assert before - SECOND <= evaluated <= clock.now() + SECOND
    if answer["valid_until"] is not None:
        assert evaluated < datetime.fromisoformat(answer["valid_until"])
    return answer


def listed(answer: dict[str, Any]) -> set[str]:
    return {one for entry in answer["candidates"] for one in ids(entry)}


def ids(entry: dict[str, Any]) -> list[str]:
    return entry["allowed_connection_ids"] or [entry["connection_id"]]


def left_out(answer: dict[str, Any]) -> dict[str, str]:
    return {one["connection_id"]: one["code"] for one in answer["excluded"]}


def reading(at: datetime, percent: float) -> dict[str, Any]:
    one = {"connection_id": "plan", "window": "5h", "remaining_percent": percent, "observed_at": at.isoformat()}
    return {"readings": [{**one, "reset_at": (at + 4 * HOUR).isoformat()}]}


def test_answers_follow_the_clock_both_ways(installed: Installation, clock: Clock) -> None:
    store_what_calls_are_about(installed)
    start = clock.now()
    assert post(installed, "telemetry/readings", reading(start, 50))["accepted"] == 1
    resting = {"connection_id": "key", "occurred_at": start.isoformat(), "cause": "rate_limit", "retry_after": "600"}
    assert post(installed, "telemetry/rate-limits", {"events": [resting]})["accepted"] == 1
    at_start = pool(installed, clock)
    assert (listed(at_start), left_out(at_start)) == ({"plan"}, {"key": "cooldown"})

    # An hour on: the cooldown has ended, and the reading is an hour old.
    clock.set(HOUR, installed)
    later = pool(installed, clock)
    assert listed(later) == {"plan", "key"}
    free_one = post(installed, "pools/auto/subscription", {"candidates": CANDIDATES, "explain": True})
    assert left_out(free_one)["plan"] == "quota_stale"

    # Back again: it rests still, whatever was said in between; and an hour before all that was ever heard of.
    for by in (timedelta(0), -HOUR):
        clock.set(by, installed)
        again = pool(installed, clock)
        assert (listed(again), left_out(again), again["revision"]) == ({"plan"}, {"key": "cooldown"}, later["revision"])
        kept = installed.ask(installed.keyed("GET", "pools/auto/subscription"))
        assert kept.status == 200
        etag = kept.header("ETag")
        unchanged = installed.keyed("GET", "pools/auto/subscription").replace(
            b"\r\n\r\n", f"\r\nIf-None-Match: {etag}\r\n\r\n".encode(), 1
        )
        assert installed.ask(unchanged).status in {200, 304}


def test_readings_are_judged_by_the_clock_as_it_is(installed: Installation, clock: Clock) -> None:
    store_what_calls_are_about(installed)
    start = clock.now()
    assert post(installed, "telemetry/readings", reading(start, 50))["accepted"] == 1
    clock.set(-HOUR, installed)
    # A reporter whose clock was not set back speaks of the future: refused, the item alone (SPEC 4).
    ahead = post(installed, "telemetry/readings", reading(start + SECOND, 40))
    assert [one["code"] for one in ahead["rejected"]] == ["observed_in_future"]
    # One whose clock was: its reading is older than the one there is, and goes to the history.
    assert post(installed, "telemetry/readings", reading(clock.now(), 30))["superseded"] == 1
    # The newest stands and is fresh (Q3: one from the future is fresh), so the plan goes on serving.
    assert listed(post(installed, "pools/auto/subscription", {"candidates": CANDIDATES})) == {"plan"}
    clock.set(timedelta(0), installed)
    assert post(installed, "telemetry/readings", reading(clock.now(), 1))["accepted"] == 1
    answer = post(installed, "pools/auto/subscription", {"candidates": CANDIDATES, "explain": True})
    assert left_out(answer)["plan"] == "quota_exhausted"


def test_holds_and_budgets_go_on(installed: Installation, clock: Clock) -> None:
    store_what_calls_are_about(installed)
    budget = {"rung_budgets": {"cheap": {"amount_usd": "1.00"}}}
    installed.call("PATCH", "settings", json.dumps(budget).encode())
    hold = {"hold_id": "h1", "connection_id": "key", "model": "deepseek", "estimated_cost_usd": "0.60"}
    assert post(installed, "holds", {**hold, "ttl_seconds": 600})["left_usd"] == "0.40"
    refused = installed.keyed("POST", "holds", json.dumps({**hold, "hold_id": "h2", "ttl_seconds": 60}).encode())
    for by in (timedelta(0), -HOUR):
        clock.set(by, installed)
        # Money that is reserved stays so: a clock set back grants nothing twice (M8).
        answer = installed.ask(refused)
        assert (answer.status, answer.json().get("code")) == (409, "budget_spent"), (by, answer.body)
    at = (clock.now() - SECOND).isoformat()
    event = {"event_id": "e1", "connection_id": "key", "model": "deepseek", "occurred_at": at, "cost_usd": "0.70"}
    assert post(installed, "telemetry/usage", {"events": [{**event, "hold_id": "h1"}]})["accepted"] == 1
    assert installed.ask(refused).status == 409
    installed.manage("check_ledger")


def test_everything_goes_on_under_load_when_the_clock_is_set(installed: Installation, clock: Clock) -> None:
    with under_load(installed, now=clock.now) as load:
        for by in (-HOUR, HOUR, -HOUR, timedelta(0)):
            clock.set(by, installed)
            load.is_answered(times=5)
            # What is periodic does not wait for the clock to come back to where it was.
            installed.beats()
            installed.looks()
    assert bad(load.told) == []
    assert installed.kept_running()
    check_nothing_is_lost(installed, load)
