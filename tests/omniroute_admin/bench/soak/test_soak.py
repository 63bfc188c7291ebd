"""A short soak does what a long one does: calls of every kind, processes looked at, a verdict; nothing is left."""

import json
from pathlib import Path

import pytest

from omniroute_admin.bench.soak.calling import Calls
from omniroute_admin.bench.soak.kinds import Kind, Talk
from omniroute_admin.bench.soak.run import Soaked
from omniroute_admin.bench.soak.telling import faults_of, table_of
from omniroute_admin.bench.soak.verdict import Call, Sample
from tests.processes import manage

MEGA = 1024 * 1024
TINY = ["--connections", "40", "--models", "10", "--providers", "5", "--workers", "1"]
KINDS = {
    "pool", "pool-if-changed", "pool-posted", "evaluate", "occupancy", "reading", "readings-bulk", "usage", "hold",
    "poll", "page", "settings",
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir()
    return {"VAR_DIR": str(tmp_path / "var"), "TMPDIR": str(tmp_path / "tmp")}


def test_a_soak_calls_in_every_way_and_looks_at_every_process(own: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "lines.json"
    done = manage("soak", "--minutes", "0.1", "--rate", "20", *TINY, "--json", str(file), **own)
    assert done.returncode == 0, done.stderr
    environment, soaked, *lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert environment["connections"] == 40
    assert soaked.items() >= {"errors": 0, "ledger_faults": [], "rate": 20, "was_cut": False}.items()
    assert soaked["revisions"] > 0
    assert soaked["database_bytes_after"] > soaked["database_bytes_before"] > 0
    calls = {line["name"]: line for line in lines if "statuses" in line}
    assert set(calls) == KINDS
    assert all(line["median_ms"] <= line["p95_ms"] <= line["p99_ms"] for line in calls.values())
    assert sum(sum(line["statuses"].values()) for line in calls.values()) == soaked["calls"]
    # The rate is what was asked for, however fast the answers came: 18 readings a second for 6 seconds.
    assert sum(calls["reading"]["statuses"].values()) == 108
    assert set(calls["poll"]["statuses"]) <= {"200", "204"}
    watched = {line["name"].partition("/")[0] for line in lines if "samples" in line}
    assert watched == {"memory web", "memory worker", "memory beat"}
    # Processes that have only just started grow: that says nothing.
    assert {line["is_flat"] for line in lines if "samples" in line} == {None}
    assert "pool-if-changed" in done.stdout
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--minutes", "0"], "--minutes 0"),
        (["--rate", "-1"], "--rate -1"),
        (["--workers", "0"], "--workers 0"),
        (["--database-url", "mysql://there"], "--database-url"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(options: list[str], named: str, own: dict[str, str]) -> None:
    done = manage("soak", *options, **own)
    assert done.returncode == 1
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def soaked(*, statuses: dict[int, int], per_minute: int = 0, ledger: tuple[str, ...] = ()) -> Soaked:
    calls = Calls(Kind("pool", 1, 1, lambda _: Talk(lambda _: b"")), per_second=1, port=1)
    calls.statuses.update(statuses)
    calls.made += [Call(float(due), 0.002) for due in range(sum(statuses.values()))]
    memory = [Sample(float(at), 100 * MEGA + per_minute * MEGA * at // 60) for at in range(0, 600, 5)]
    return Soaked(
        seconds=600.0,
        rate=1,
        calls=[calls],
        memory={"web": memory},
        longest_queue=1,
        revisions=1,
        database_before=1,
        database_after=2,
        ledger_rows=3,
        ledger_faults=ledger,
        was_cut=False,
    )


def test_a_run_is_at_fault_for_an_error_for_memory_that_grows_and_for_a_ledger_that_does_not_add_up() -> None:
    assert faults_of(soaked(statuses={200: 600})) == []
    assert [one.partition(":")[0] for one in faults_of(soaked(statuses={200: 599, 503: 1}))] == ["pool"]
    assert [one.partition(":")[0] for one in faults_of(soaked(statuses={200: 600}, per_minute=2))] == ["web"]
    few = faults_of(soaked(statuses={200: 590}))
    assert few == [
        "pool: 10 calls were due and not made: this machine takes fewer than 1 a second; give a lower --rate"
    ]
    assert faults_of(soaked(statuses={200: 600}, ledger=("e1 is odd",))) == ["the ledger: e1 is odd"]


def test_the_table_has_a_line_for_each_kind_and_each_process() -> None:
    lines = table_of(soaked(statuses={200: 600}, per_minute=2)).splitlines()
    assert any(line.startswith("pool") and " 2.0 " in line for line in lines)
    assert any(line.startswith("web") and line.endswith("no") for line in lines)
