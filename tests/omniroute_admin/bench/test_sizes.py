"""What is measured: options that can be, a fleet that is always the same, bodies that say something new."""

import json
from collections import Counter
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest

from omniroute_admin.bench.bodies import candidates, reading_bodies, readings_body, recurring_candidates
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.options import Options, check_options
from omniroute_admin.bench.plan import MIX, WINDOWS, parse_mix, plan_fleet

NOW = datetime(2026, 8, 22, 12, tzinfo=UTC)
READERS = [("c1", "5h"), ("c1", "weekly"), ("c2", "5h")]
MODELS = {"claude": ["a", "b"], "codex": ["c"]}
CONNECTIONS = {"claude": [f"c{number}" for number in range(40)], "codex": [f"x{number}" for number in range(40)]}


def test_a_mix_leaves_out_what_it_does_not_name() -> None:
    assert parse_mix("subscription=3, cheap=1") == dict.fromkeys(MIX, 0) | {"subscription": 3, "cheap": 1}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("subscription=1,gold=2,cheap=x", "gold=2, cheap=x"),
        ("subscription", "subscription"),
        ("subscription=-1", "subscription=-1"),
        ("cheap=1", "subscription"),
        ("subscription=1,cooldowns=101", "cooldowns"),
    ],
)
def test_a_mix_that_means_nothing_is_refused_by_name(text: str, named: str) -> None:
    with pytest.raises(BenchError, match=named):
        parse_mix(text)


def test_the_usual_options_can_be_measured() -> None:
    check_options(Options(), known=[])


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"connections": 0, "rounds": 0}, r"--connections 0.*--rounds 0"),
        ({"workers": 65}, "--workers 65"),
        ({"providers": 41, "connections": 40}, "--providers"),
        ({"only": ("get", "gte")}, "--only gte"),
        ({"use_existing": True}, "--database-url"),
        ({"json_file": Path("/nowhere/there.json")}, "--json /nowhere"),
    ],
)
def test_every_option_that_cannot_be_is_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(BenchError, match=named):
        check_options(Options(**changes), known=["get"])


def test_the_same_sizes_plan_the_same_fleet() -> None:
    sizes = {"connections": 200, "models": 30, "providers": 10, "mix": MIX}
    assert plan_fleet(**sizes) == plan_fleet(**sizes)


def test_a_fleet_has_the_sizes_and_the_mix_that_were_asked_for() -> None:
    plan = plan_fleet(connections=2000, models=300, providers=40, mix=MIX)
    kinds = Counter(one.kind for one in plan)
    assert kinds == {"subscription": 20, "overage": 4, "free": 4, "cheap": 6, "premium": 6}
    accounts = [account for one in plan for account in one.connections]
    assert len({account.connection_id for account in accounts}) == 2000
    assert len({model for one in plan for model in one.models}) == 300
    assert all(one.models and one.connections for one in plan)
    assert all(len(account.percents) == len(WINDOWS[one.kind]) for one in plan for account in one.connections)
    assert 20 < sum(account.is_resting for account in accounts) < 100


def test_distinct_lists_do_not_recur_and_recurring_ones_are_one_for_each_provider() -> None:
    fleet: dict[str, Any] = {"models": MODELS, "connections": CONNECTIONS, "count": 60, "each": 3}
    distinct = [tuple(one["allowed_connection_ids"]) for one in candidates(**fleet, seed=1)]
    assert len(set(distinct)) == len(distinct) == 60
    assert set(distinct).isdisjoint(tuple(one["allowed_connection_ids"]) for one in candidates(**fleet, seed=2))
    assert len({tuple(one["allowed_connection_ids"]) for one in recurring_candidates(**fleet)}) == 2


def test_every_turn_of_readings_says_another_percent_and_names_no_window_twice_at_one_instant() -> None:
    turns = [
        json.loads(readings_body(readers=READERS, count=7, turn=turn, now=NOW))["readings"] for turn in range(-1, 9)
    ]
    for before, after in pairwise(turns):
        assert all(
            one["remaining_percent"] != other["remaining_percent"] for one, other in zip(before, after, strict=True)
        )
    instants = [(one["connection_id"], one["window"], one["observed_at"]) for one in turns[0]]
    assert len(set(instants)) == 7


@pytest.mark.parametrize(("says", "is_out"), [("percents", [False] * 6), ("verdicts", [True] * 3 + [False] * 3)])
def test_single_readings_change_percents_or_verdicts(says: Any, is_out: list[bool]) -> None:
    sent = [json.loads(body)["readings"][0] for body in islice(reading_bodies(READERS, says=says), 6)]
    assert [one["remaining_percent"] <= 2 for one in sent] == is_out
    assert all(
        one["remaining_percent"] != other["remaining_percent"] for one, other in zip(sent, sent[3:], strict=False)
    )
