"""Alerts in pairs, once per condition: what is told follows what is so, whatever comes between."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.alerts.channels import channel_of, outcome_of_status
from ladder.core.alerts.delivery import PAUSES, next_attempt
from ladder.core.alerts.rules import decide
from tests.factories_ladder import NOW

SECOND = timedelta(seconds=1)
KEYS = ["a", "b", "c"]


def run(steps, holds):
    """Look at each step and return what was told, as (key, raised or resolved, second)."""
    told, raised, differing = [], set(), {}
    for second, there in steps:
        now = NOW + second * SECOND
        verdict = decide(conditions=there, raised=raised, differing=differing, for_seconds=holds, now=now)
        told += [(key, "raised", second) for key in verdict.raised]
        told += [(key, "resolved", second) for key in verdict.resolved]
        raised = (raised | set(verdict.raised)) - set(verdict.resolved)
        differing = verdict.differing
    return told, raised


@pytest.mark.parametrize(
    ("hold", "steps", "told"),
    [
        (0, [(0, "a"), (15, "a"), (30, "")], [("a", "raised", 0), ("a", "resolved", 30)]),
        (0, [(0, "a"), (15, ""), (30, "a")], [("a", "raised", 0), ("a", "resolved", 15), ("a", "raised", 30)]),
        # A change counts once it lasted; one that goes back before never was.
        (30, [(0, "a"), (15, "a"), (30, "a"), (45, "a")], [("a", "raised", 30)]),
        (30, [(0, "a"), (15, ""), (30, "a"), (45, "a"), (59, "a")], []),
        (
            30,
            [(0, "a"), (30, "a"), (40, ""), (50, "a"), (60, ""), (90, "")],
            [("a", "raised", 30), ("a", "resolved", 90)],
        ),
        # Nobody looked for an hour.
        (30, [(0, "a"), (3600, "a")], [("a", "raised", 3600)]),
        # A clock set back begins to count anew.
        (30, [(3600, "a"), (0, "a"), (29, "a"), (30, "a")], [("a", "raised", 30)]),
    ],
)
def test_a_change_is_told_once_when_it_has_lasted(hold, steps, told) -> None:
    assert run(steps, {"a": hold})[0] == told


@given(
    st.lists(st.tuples(st.integers(1, 40), st.sets(st.sampled_from(KEYS))), max_size=30),
    st.fixed_dictionaries({key: st.sampled_from([0, 10, 60]) for key in KEYS}),
)
def test_every_condition_is_told_in_pairs_that_begin_with_a_raise(turns, holds) -> None:
    at, steps = 0, []
    for seconds, there in turns:
        at += seconds
        steps.append((at, there))
    told, raised = run(steps, holds)
    for key in KEYS:
        words = [word for one, word, _ in told if one == key]
        assert words == ["raised", "resolved"] * (len(words) // 2) + ["raised"] * (len(words) % 2)
        assert (key in raised) is (len(words) % 2 == 1)
    if steps:
        # Left alone for long enough, what is told is what is so.
        assert run([*steps, (at + 100, steps[-1][1]), (at + 200, steps[-1][1])], holds)[1] == steps[-1][1]


def test_pauses_grow_and_end() -> None:
    waits = [next_attempt(attempts=number, is_permanent=False, now=NOW) for number in range(1, len(PAUSES) + 2)]
    assert waits == [*(NOW + pause for pause in PAUSES), None]
    assert next_attempt(attempts=1, is_permanent=True, now=NOW) is None


@pytest.mark.parametrize(
    ("status", "delivered", "permanent"),
    [
        (200, True, False), (204, True, False), (302, False, True), (400, False, True), (401, False, True),
        (404, False, True), (410, False, True), (408, False, False), (425, False, False), (429, False, False),
        (500, False, False), (503, False, False),
    ],
)  # fmt: skip
def test_a_status_says_whether_another_attempt_makes_sense(status, delivered, permanent) -> None:
    outcome = outcome_of_status(status)
    assert (outcome.is_delivered, outcome.is_permanent) == (delivered, permanent)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("https://example.com/hook", "webhook"), ("HTTP://example.com", "webhook"),
        ("mailtos://u:p@example.com", "mail"),
        ("slack://a/b/c", "slack"), ("no address", None), ("", None), ("slack://a b", None),
    ],
)  # fmt: skip
def test_a_channel_shows_its_name_and_kind_and_never_its_address(address, kind) -> None:
    channel = channel_of(name="ops", address=address)
    assert (channel and channel.kind) == kind
    if channel:
        assert f"{channel} {channel!r} { {'ops': channel} }".count(address) == 0
