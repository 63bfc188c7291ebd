"""Money under real concurrency: several server processes, many clients at once, on both databases (M2, M8, SPEC 6)."""

import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connections

from ladder.core.spend.ledger import Spend
from ladder.core.values import Rung
from ladder.models import SpendHold, UsageEvent
from ladder.selectors.ledger import read_active_holds, read_budgets, read_spend
from ladder.selectors.ledger_faults import check_ledger
from ladder.services.folding import fold_ledger
from ladder.services.pruning import Run
from omniroute_admin.programs import programs_to_run
from tests.factories import ConnectionFactory
from tests.ladder.services.booking import make_ladder, set_budget, usd
from tests.processes import free_port, running, until
from tests.router import make_router
from tests.shared import ROOT

CLIENTS = 16


class Server:
    """Two server processes behind one port."""

    def __init__(self, port: int, secret: str) -> None:
        self.site = f"http://127.0.0.1:{port}"
        self.headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def send(self, path: str, body: object = None) -> tuple[int, dict]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.site}{path}", data=data, headers=self.headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            return refused.code, json.load(refused)

    def is_up(self) -> bool:
        try:
            return self.send("/healthz")[0] == 200
        except OSError:
            return False

    def send_all(self, path: str, bodies: list[object]) -> list[tuple[int, dict]]:
        with ThreadPoolExecutor(CLIENTS) as pool:
            return list(pool.map(lambda body: self.send(path, body), bodies))


@pytest.fixture
def server(tmp_path: Path, database_url: str):
    make_ladder()
    router = make_router()
    port = free_port()
    command = programs_to_run(host="127.0.0.1", port=port, workers=2)[0].command
    served = Server(port, router.headers["Authorization"].removeprefix("Bearer "))
    log = tmp_path / "log"
    changes = {"DATABASE_URL": database_url, "VAR_DIR": str(tmp_path / "var"), "PYTHONPATH": str(ROOT)}
    with running(command, log, **changes) as process:
        until(lambda: process.poll() is not None or served.is_up(), "the web server")
        assert process.poll() is None, log.read_text()
        yield served
    connections.close_all()


def test_two_hundred_events_at_the_first_instant_half_sent_twice_are_summed_exactly_m2(server: Server) -> None:
    set_budget(amount="2.00", period="monthly")
    ConnectionFactory(connection_id="paid-2", provider="openrouter", auth_type="apikey")
    first = datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    events = [
        {
            "event_id": f"e{number}",
            "connection_id": ("paid", "paid-2")[number % 2],
            "model": "small",
            "occurred_at": first.isoformat(),
            "cost_usd": "0.010001",
        }
        for number in range(200)
    ]
    twice = [*events, *events[::2]]
    bodies = [{"events": twice[start : start + 3]} for start in range(0, len(twice), 3)]
    answers = server.send_all("/api/v1/telemetry/usage", bodies)
    assert {status for status, _ in answers} == {200}
    total = {word: sum(told[word] for _, told in answers) for word in ("accepted", "duplicates", "superseded")}
    assert total == {"accepted": 200, "duplicates": 100, "superseded": 0}
    assert not any(told["rejected"] for _, told in answers)
    budget = read_budgets(now=first)[Rung.CHEAP]
    assert (budget.spent_usd, budget.window_start) == (usd("2.000200"), first)
    assert UsageEvent.objects.count() == 200
    assert check_ledger().faults == ()
    # Whichever process answers: the line was crossed by two bodies that did not see each other.
    candidate = {"provider": "openrouter", "model": "small", "connection_id": "paid"}
    pools = server.send_all("/api/v1/pools/auto/thrifty", [{"candidates": [candidate]}] * 12)
    assert [told["excluded_counts"] for _, told in pools] == [{"budget_spent": 1}] * 12


def test_the_same_event_from_many_clients_is_booked_once_spec_4(server: Server) -> None:
    ConnectionFactory(connection_id="paid-2", provider="openrouter", auth_type="apikey")
    at = datetime.now(UTC).isoformat()
    bodies = [
        {"events": [{"event_id": "e1", "connection_id": who, "model": "small", "occurred_at": at, "cost_usd": "0.10"}]}
        for who in ("paid", "paid-2") * 12
    ]
    answers = server.send_all("/api/v1/telemetry/usage", bodies)
    assert {status for status, _ in answers} == {200}
    counted = [(told["accepted"], told["duplicates"], len(told["rejected"])) for _, told in answers]
    assert sum(one[0] for one in counted) == 1
    assert sum(one[1] for one in counted) == 11
    assert sum(one[2] for one in counted) == 12
    assert UsageEvent.objects.count() == 1


def test_of_fifty_parallel_holds_of_a_dime_on_a_dollar_exactly_ten_are_granted_m8(server: Server) -> None:
    set_budget(amount="1.00")
    ConnectionFactory(connection_id="paid-2", provider="openrouter", auth_type="apikey")
    bodies = [
        {
            "hold_id": f"h{number}",
            "connection_id": ("paid", "paid-2")[number % 2],
            "model": "small",
            "estimated_cost_usd": "0.10",
            "ttl_seconds": 3600,
        }
        for number in range(50)
    ]
    answers = server.send_all("/api/v1/holds", bodies)
    statuses = [status for status, _ in answers]
    assert (statuses.count(201), statuses.count(409)) == (10, 40)
    assert {told["code"] for status, told in answers if status == 409} == {"budget_spent"}
    holds = read_active_holds(now=datetime.now(UTC))[Rung.CHEAP]
    assert sum(one.amount_usd for one in holds) == usd("1.00")
    assert SpendHold.objects.count() == 10


def test_what_is_sent_again_while_it_is_folded_is_never_booked_twice(server: Server) -> None:
    ConnectionFactory(connection_id="paid-2", provider="openrouter", auth_type="apikey")
    at = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=100)
    events = [
        {
            "event_id": f"e{number}",
            "connection_id": ("paid", "paid-2")[number % 2],
            "model": "small",
            "occurred_at": (at + number * timedelta(minutes=1)).isoformat(),
            "cost_usd": "0.010001",
        }
        for number in range(240)
    ]
    bodies = [{"events": events[start : start + 3]} for start in range(0, len(events), 3)]
    sent = server.send_all("/api/v1/telemetry/usage", bodies)
    assert sum(told["accepted"] for _, told in sent) == 240
    now = datetime.now(UTC)
    with ThreadPoolExecutor(1) as beside:
        again = beside.submit(server.send_all, "/api/v1/telemetry/usage", bodies * 3)
        folded = fold_ledger(before=at + timedelta(minutes=200), run=Run(now=now, batch=7))
        answers = again.result()
    assert folded.removed[0].rows == 200
    assert {status for status, _ in answers} == {200}
    assert sum(told["accepted"] + told["superseded"] for _, told in answers) == 0
    codes = {one["code"] for _, told in answers for one in told["rejected"]}
    assert codes == {"too_old"}
    assert read_spend(rung=Rung.CHEAP, start=at, end=now) == Spend(usd("2.400240"), 240, 0)
    assert check_ledger().faults == ()
