"""The limit of a key: kept together by all threads and processes, never exceeded, and cheap where it is spent."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from omniroute_admin.common.errors import BadRequest
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey, KeyAllowance
from omniroute_admin.common.selectors.key_list import seen_of_key
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.common.services.key_rate import forget_calls, take_call
from omniroute_admin.common.services.keys import create_key, edit_key
from tests.processes import environment

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ACTOR = Actor(name="a test")
ADDRESS = "/api/v1/settings"


def make(limit: int | None) -> tuple[ApiKey, str]:
    return create_key(
        name="r", scopes=["settings:read"], expires_at=None, actor=ACTOR, reason="", now=NOW, calls_per_minute=limit
    )


def let_through(key: ApiKey, calls: int, *, at: datetime = NOW, limit: int | None = None) -> int:
    limit = limit or key.calls_per_minute
    assert limit is not None
    return sum(take_call(key_id=key.pk, limit=limit, now=at) == 0 for _ in range(calls))


def get(client: Client, secret: str) -> Any:
    return client.get(ADDRESS, headers={"authorization": f"Bearer {secret}"})


@pytest.mark.parametrize("limit", [1, 2, 49, 50, 51, 99, 100, 101, 1_000])
def test_exactly_the_limit_is_let_through_in_a_minute_and_again_in_the_next(limit: int) -> None:
    key, _ = make(limit)
    for minute in range(3):
        assert let_through(key, limit + 20, at=NOW + minute * MINUTE) == limit


@pytest.mark.parametrize(("second", "wait"), [(0, 60), (1, 59), (59, 1), (59.999, 1)])
def test_what_is_refused_says_the_whole_seconds_to_wait(second: float, wait: int) -> None:
    key, _ = make(1)
    assert let_through(key, 1) == 1
    assert take_call(key_id=key.pk, limit=1, now=NOW + second * SECOND) == wait


def test_a_call_beyond_the_limit_is_429_with_the_seconds_to_wait(client: Client, time_machine_at: Any) -> None:
    _, secret = make(2)
    with time_machine_at(NOW + 20 * SECOND):
        answers = [get(client, secret) for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 429, 429]
    told = answers[-1]
    assert (told["Retry-After"], told["Content-Type"]) == ("40", "application/problem+json")
    assert (told.json()["code"], told.json()["status"]) == ("rate_limited", 429)
    assert secret not in told.content.decode()
    with time_machine_at(NOW + MINUTE):
        assert get(client, secret).status_code == 200


def test_calls_that_are_refused_for_their_scope_count_as_well(client: Client, time_machine_at: Any) -> None:
    _, secret = make(2)
    with time_machine_at(NOW):
        answers = [client.get("/api/v1/pools", headers={"authorization": f"Bearer {secret}"}) for _ in range(3)]
    assert [one.status_code for one in answers] == [403, 403, 429]


def test_a_flood_of_refused_calls_writes_and_asks_for_nothing(client: Client, time_machine_at: Any) -> None:
    _, secret = make(1)
    with time_machine_at(NOW):
        assert [get(client, secret).status_code for _ in range(2)] == [200, 429]
        with CaptureQueriesContext(connection) as asked:
            assert {get(client, secret).status_code for _ in range(50)} == {429}
    statements = [one["sql"] for one in asked.captured_queries]
    assert not [one for one in statements if "keyallowance" in one.lower() or not one.startswith("SELECT")]
    assert len(statements) == 50  # the revision, once a call


def test_a_key_without_a_limit_costs_no_statement_and_one_with_a_limit_one_a_block(client: Client) -> None:
    free, limited = make(None)[1], make(500)[1]
    for secret in (free, limited):
        get(client, secret)

    def asked(secret: str, calls: int) -> int:
        with CaptureQueriesContext(connection) as caught:
            for _ in range(calls):
                get(client, secret)
        return sum("keyallowance" in one["sql"].lower() for one in caught.captured_queries)

    assert asked(free, 20) == 0
    assert asked(limited, 9) == 0  # the block of ten that the first call took
    assert asked(limited, 20) == 2


def test_what_is_left_of_a_block_is_lost_with_its_process_and_never_doubled() -> None:
    key, _ = make(100)
    through = 0
    for _ in range(200):  # as many processes, each of which lets one call through and dies
        through += let_through(key, 1)
        forget_calls()
    assert through == 50


def test_a_limit_that_is_changed_counts_at_once_for_the_minute_that_runs() -> None:
    key, _ = make(10)
    assert let_through(key, 8) == 8
    assert let_through(key, 30, limit=5) == 0
    assert let_through(key, 30, limit=20) == 12


def test_a_clock_that_goes_wrong_by_a_second_lets_no_more_through() -> None:
    key, _ = make(10)
    assert let_through(key, 4, at=NOW + MINUTE) == 4
    forget_calls()  # another machine, whose clock is a second behind
    behind = NOW + MINUTE - SECOND
    assert let_through(key, 20, at=behind) == 6
    assert let_through(key, 20, at=NOW + MINUTE + SECOND) == 0


def test_a_clock_stepped_back_an_hour_locks_nobody_out() -> None:
    key, _ = make(5)
    assert let_through(key, 9, at=NOW + 60 * MINUTE) == 5
    assert let_through(key, 9, at=NOW) == 5
    forget_calls()
    assert let_through(key, 9, at=NOW) == 0


def test_an_allowance_is_no_change_of_anything(client: Client) -> None:
    key, secret = make(100)
    before = current_revision(), ApiKey.history.count()
    assert get(client, secret).status_code == 200
    assert (current_revision(), ApiKey.history.count()) == before
    row = KeyAllowance.objects.get()
    assert (row.key_id, row.taken, row.leased) == (key.pk, 2, 2)


@pytest.mark.parametrize("limit", [0, -1, 100_001])
def test_a_limit_out_of_range_is_refused(limit: int) -> None:
    with pytest.raises(BadRequest) as refused:
        make(limit)
    key, _ = make(1)
    with pytest.raises(BadRequest) as again:
        edit_key(
            key_id=key.pk, name="r", scopes=["pools:read"], calls_per_minute=limit, expires_at=None,
            seen=seen_of_key(key), actor=ACTOR, reason="", now=NOW,
        )  # fmt: skip
    assert [one.value.errors[0].pointer for one in (refused, again)] == ["/calls_per_minute"] * 2


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("limit", [7, 240])
def test_threads_that_ask_at_once_get_exactly_the_limit(limit: int, database_url: str) -> None:
    key, _ = make(limit)
    start, found = threading.Barrier(8), []

    def ask() -> None:
        start.wait()
        found.append(let_through(key, limit))
        connection.close()

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sum(found) == limit


CHILD = """
import sys, django
django.setup()
from datetime import datetime
from omniroute_admin.common.services.key_rate import take_call
key, limit, at = int(sys.argv[1]), int(sys.argv[2]), datetime.fromisoformat(sys.argv[3])
print("ready", flush=True)
for line in sys.stdin:
    print(sum(take_call(key_id=key, limit=limit, now=at) == 0 for _ in range(int(line))), flush=True)
"""


@pytest.fixture
def processes(database_url: str) -> Iterator[Any]:
    """Start processes that ask for a key's calls; each is told how many, and tells how many it let through."""
    started: list[subprocess.Popen[str]] = []

    def start(key: ApiKey, limit: int) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(key.pk), str(limit), NOW.isoformat()],
            env=environment(DATABASE_URL=database_url, DJANGO_SETTINGS_MODULE="omniroute_admin.settings"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def tell(child: Any, calls: int) -> None:
    child.stdin.write(f"{calls}\n")
    child.stdin.flush()


@pytest.mark.django_db(transaction=True)
def test_processes_that_ask_at_once_get_exactly_the_limit_and_with_blocks_left_over_less(processes: Any) -> None:
    limit = 500
    key, _ = make(limit)
    children = [processes(key, limit) for _ in range(3)]
    for child in children:  # all three at once, more than there is
        tell(child, limit)
    assert sum(int(child.stdout.readline()) for child in children) == limit

    other, _ = make(limit)
    first, second = processes(other, limit), processes(other, limit)
    tell(first, 1)  # takes a block of ten and keeps nine of it
    assert first.stdout.readline() == "1\n"
    tell(second, limit)
    assert second.stdout.readline() == "490\n"
    tell(first, limit)
    assert first.stdout.readline() == "9\n"
