"""The last reading of every quota window."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from ladder.adapters.omniroute.window_names import name_window
from tests.ladder.adapters.omniroute_file import FETCHED, NOW, OmnirouteFile

FETCHED_AT = datetime(2026, 11, 29, 21, 34, 32, 500000, tzinfo=UTC)


@pytest.fixture
def file(omniroute: OmnirouteFile) -> OmnirouteFile:
    omniroute.add_connection("c1", provider="claude")
    return omniroute


def windows(file: OmnirouteFile) -> dict[str, tuple[object, ...]]:
    readings = file.read().readings
    found = {r.window: (r.remaining_percent, r.combine, r.model) for r in readings}
    assert len(found) == len(readings)
    return found


@pytest.mark.parametrize(
    ("stored", "expected", "status"),
    [
        (57.5, "57.5", "safe"),
        (86.66667, "86.66667", "safe"),
        (0.1, "0.1", "safe"),
        (2.000000009, "2.00000000", "safe"),
        (99.999999999, "99.99999999", "safe"),
        (120.0, "100", "safe"),
        (-3.0, "0", "safe"),
        (0, "0", "safe"),
        (1e-300, "0", "safe"),
        (None, None, "unknown"),
    ],
)
def test_a_percentage_is_exact_cut_to_eight_places_and_within_bounds(file, stored, expected, status):
    file.add_snapshot(remaining=stored)
    reading = file.the_reading()
    assert reading.remaining_percent == (None if expected is None else Decimal(expected))
    assert reading.status == status
    assert file.problem_codes() == []


@pytest.mark.parametrize("stored", ["much", float("inf"), float("-inf"), b"\x00"])
def test_a_percentage_that_is_no_number_is_unknown_and_reported(file, stored):
    file.add_snapshot(remaining=stored)
    assert (file.the_reading().remaining_percent, file.the_reading().status) == (None, "unknown")
    assert file.problem_codes() == ["bad_percent"]


def test_the_exhausted_flag_of_the_connection_says_nothing_about_a_window_above_zero(file):
    file.add_snapshot("session (5h)", 0.0, is_exhausted=1)
    file.add_snapshot("weekly (7d)", 40.0, is_exhausted=1)
    assert {r.window: r.status for r in file.read().readings} == {"5h": "exhausted", "weekly": "safe"}


def test_a_window_at_zero_is_judged_by_its_number_where_the_flag_is_down(file):
    file.add_snapshot("weekly (7d)", 0.0, is_exhausted=0)
    assert (file.the_reading().remaining_percent, file.the_reading().status) == (0, "safe")


def test_the_newest_row_counts_whatever_the_order_of_writing_and_the_form_of_the_date(file):
    file.add_snapshot(remaining=1.0, created_at="2026-11-29T21:34:32.500Z")
    file.add_snapshot(remaining=2.0, created_at="2026-11-29 21:34:59")
    file.add_snapshot(remaining=3.0, created_at="2026-11-29T20:00:00.000Z")
    file.add_snapshot(remaining=4.0, created_at="2026-11-29T23:00:00+02:00")
    file.add_snapshot(remaining=5.0, created_at="not-a-date")
    assert file.the_reading().remaining_percent == 2


def test_of_two_rows_of_one_instant_the_one_written_later_counts(file):
    file.add_snapshot(remaining=1.0)
    file.add_snapshot(remaining=2.0)
    assert file.the_reading().remaining_percent == 2


@pytest.mark.parametrize("created_at", ["not-a-date", "", b"\xff", "now"])
def test_a_row_without_a_readable_instant_is_reported_and_skipped(file, created_at):
    file.add_snapshot(created_at=created_at)
    assert file.read().readings == ()
    assert file.problem_codes() == ["bad_instant"]


def test_rows_of_a_wrong_clock_are_reported_and_do_not_hide_the_good_one(file):
    file.add_snapshot(remaining=1.0, created_at="2026-11-29T21:36:00.000Z")
    file.add_snapshot(remaining=2.0, created_at="2026-11-29T21:36:00.001Z")
    file.add_snapshot(remaining=3.0, created_at="2027-11-29T21:36:00.001Z")
    assert file.the_reading().remaining_percent == 1
    (found,) = file.read().problems
    assert (found.code, found.key, found.detail[:12]) == ("from_the_future", "c1", "2 snapshots ")


def test_a_reset_that_is_no_date_is_reported_and_left_out(file):
    file.add_snapshot(next_reset_at="soon")
    assert file.the_reading().reset_at is None
    assert file.problem_codes() == ["bad_instant"]


def test_a_past_reset_is_kept_since_spec_q1_judges_it(file):
    file.add_snapshot(next_reset_at="2026-11-29T21:00:00.000Z")
    assert file.the_reading().reset_at == datetime(2026, 11, 29, 21, tzinfo=UTC)


def test_a_window_that_the_last_fetch_no_longer_had_does_not_count_as_in_spec_q6(file):
    file.add_snapshot("weekly opus (7d)", created_at="2026-11-29T21:28:00.000Z")
    file.add_snapshot("session (5h)", created_at=FETCHED)
    assert list(windows(file)) == ["5h"]
    assert file.problem_codes() == ["window_not_reported"]


def test_rows_of_one_fetch_may_lie_some_milliseconds_apart(file):
    file.add_snapshot("session (5h)", created_at="2026-11-29T21:34:32.500Z")
    file.add_snapshot("weekly (7d)", created_at="2026-11-29T21:34:32.731Z")
    assert list(windows(file)) == ["5h", "weekly"]


def test_snapshots_of_a_connection_that_is_not_there_are_reported_once(omniroute):
    for window in ("session (5h)", "weekly (7d)"):
        omniroute.add_snapshot(window, connection_id="gone")
    assert omniroute.read().readings == ()
    (found,) = omniroute.read().problems
    assert (found.table, found.key, found.code) == ("quota_snapshots", "gone", "unknown_connection")


def test_a_snapshot_under_another_provider_is_reported_and_skipped(file):
    file.add_snapshot(provider="codex")
    assert file.read().readings == ()
    assert file.problem_codes() == ["provider_mismatch"]


def test_a_snapshot_whose_provider_differs_in_case_only_is_taken(file):
    file.add_snapshot(provider="Claude ")
    assert file.the_reading().provider == "claude"


def test_unlimited_comes_from_the_cache_of_the_same_fetch(file):
    file.add_snapshot("chat", 0.0)
    file.add_cache(chat={"used": 0, "total": 0, "unlimited": True})
    reading = file.the_reading()
    assert (reading.unlimited, reading.remaining_percent, reading.status) == (True, None, "safe")


def test_unlimited_of_an_older_fetch_is_not_believed(file):
    file.add_snapshot("chat", 7.0)
    file.add_cache(fetched_at="2026-11-29T21:28:00.000Z", chat={"unlimited": True})
    assert (file.the_reading().unlimited, file.the_reading().remaining_percent) == (False, 7)


@pytest.mark.parametrize("unlimited", ["true", 1, None, {}])
def test_only_a_real_true_is_unlimited(file, unlimited):
    file.add_snapshot("chat", 7.0)
    file.add_cache(chat={"unlimited": unlimited})
    assert file.the_reading().unlimited is False


def test_a_zero_of_a_total_of_zero_is_unknown_and_no_exhaustion(file):
    file.add_snapshot("chat", 0.0, is_exhausted=1)
    file.add_cache(chat={"used": 0, "total": 0, "unlimited": False})
    assert (file.the_reading().remaining_percent, file.the_reading().status) == (None, "unknown")
    assert file.problem_codes() == ["no_total"]


@pytest.mark.parametrize("quota", [{"total": 0, "remainingPercentage": 0}, {"total": 1000, "used": 1000}])
def test_a_zero_with_a_percentage_or_a_total_is_a_zero(file, quota):
    file.add_snapshot("chat", 0.0)
    file.add_cache(chat=quota)
    assert file.the_reading().remaining_percent == 0
    assert file.problem_codes() == []


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("{not json", "bad_cache_entry"),
        ("[]", "bad_cache_entry"),
        ('"text"', "bad_cache_entry"),
        ("{}", "bad_cache_entry"),
        ('{"fetchedAt": "yesterday", "quotas": {}}', "bad_cache_entry"),
        ('{"fetchedAt": {"a": 1}, "quotas": {}}', "bad_cache_entry"),
    ],
)
def test_an_odd_cache_entry_is_reported_and_costs_no_reading(file, raw, code):
    file.add_snapshot(remaining=7.0)
    file.add_cache(raw=raw)
    assert file.the_reading().remaining_percent == 7
    assert file.problem_codes() == [code]


@pytest.mark.parametrize("quotas", ["null", '"monthly"', "[1]", '{"period": "monthly", "chat": 5}'])
def test_quotas_of_an_odd_shape_are_passed_over(file, quotas):
    file.add_snapshot("chat", 7.0)
    file.add_cache(raw=f'{{"quotas": {quotas}, "fetchedAt": "{FETCHED}"}}')
    assert file.the_reading().remaining_percent == 7
    assert file.problem_codes() == []


def test_a_cache_entry_of_no_connection_is_reported(file):
    file.add_cache("deleted-connection-id")
    (found,) = file.read().problems
    assert (found.key, found.code) == ("providerLimitsCache/deleted-connection-id", "unknown_connection")


def test_a_credit_balance_is_no_window_of_the_plan(omniroute):
    omniroute.add_connection("c1", provider="antigravity")
    omniroute.add_snapshot("credits", 0.0, provider="antigravity", is_exhausted=1)
    assert omniroute.read().readings == ()
    assert omniroute.problem_codes() == ["not_a_plan_window"]


def test_a_bonus_pack_and_its_plan_window_are_a_pool_as_in_spec_q6(omniroute):
    omniroute.add_connection("c1", provider="kiro")
    for window, remaining in (("agentic_request", 75.0), ("agentic_request_freetrial", 0.0), ("vibe", 3.0)):
        omniroute.add_snapshot(window, remaining, provider="kiro")
    assert windows(omniroute) == {
        "monthly": (75, "pool", None),
        "freetrial": (0, "pool", None),
        "vibe": (3, "limit", None),
    }


def test_a_second_bonus_pack_is_left_out_so_that_it_hides_no_used_up_window(omniroute):
    omniroute.add_connection("c1", provider="kiro")
    for window in ("agentic_request", "agentic_request_freetrial", "vibe", "vibe_freetrial"):
        omniroute.add_snapshot(window, provider="kiro")
    assert windows(omniroute) == {
        "monthly": (50, "pool", None),
        "freetrial": (50, "pool", None),
        "vibe": (50, "limit", None),
    }
    assert omniroute.problem_codes() == ["second_bonus"]


def test_two_windows_of_one_name_both_stay(file):
    file.add_snapshot("session (5h)", 10.0)
    file.add_snapshot("five_hour", 90.0)
    assert windows(file) == {"5h": (90, "limit", None), "session (5h)": (10, "limit", None)}
    assert file.problem_codes() == ["window_name_taken"]


def test_a_window_whose_key_is_its_name_keeps_it(omniroute):
    omniroute.add_connection("c1", provider="kiro")
    omniroute.add_snapshot("agentic_request", 10.0, provider="kiro")
    omniroute.add_snapshot("monthly", 90.0, provider="kiro")
    assert windows(omniroute) == {"monthly": (90, "limit", None), "agentic_request": (10, "limit", None)}


def test_two_spellings_of_one_key_are_one_window_and_the_newer_counts(file):
    file.add_snapshot("Weekly  (7d)", 10.0, created_at="2026-11-29T21:34:32.600Z")
    file.add_snapshot("weekly (7d)", 90.0, created_at="2026-11-29T21:34:32.500Z")
    assert windows(file) == {"weekly": (10, "limit", None)}
    assert file.problem_codes() == ["duplicate_window"]


@pytest.mark.parametrize("bad", ["", "  ", "x" * 65, "a\x00b", "a\x1bb", b"\xff\x00"])
def test_a_window_without_a_usable_name_is_reported_and_skipped(file, bad):
    file.add_snapshot(bad)
    assert file.read().readings == ()
    assert file.problem_codes() == ["bad_window"]


@pytest.mark.parametrize(
    ("provider", "key", "window", "model"),
    [
        ("claude", "session (5h)", "5h", None),
        ("claude", "Weekly (7D)", "weekly", None),
        ("claude", "weekly opus (7d)", "weekly:opus", "*opus*"),
        ("claude", "weekly claude design (7d)", "weekly:claude-design", "*claude*design*"),
        ("claude", "weekly oauth apps (7d)", "weekly oauth apps (7d)", None),
        ("claude", "weekly * (7d)", "weekly * (7d)", None),
        ("claude", "five_hour", "5h", None),
        ("claude", "seven_day", "weekly", None),
        ("claude", "seven_day_sonnet", "weekly:sonnet", "*sonnet*"),
        ("claude", "seven_day_oauth_apps", "seven_day_oauth_apps", None),
        ("claude", "tokens", "tokens", None),
        ("codex", "session", "5h", None),
        ("codex", "weekly", "weekly", None),
        ("codex", "code_review", "code_review", None),
        ("glm", "session", "5h", None),
        ("minimax", "weekly (7d)", "weekly", None),
        ("kimi-coding", "Weekly", "weekly", None),
        ("kimi-coding", "Ratelimit", "rate", None),
        ("github", "premium_interactions", "monthly", None),
        ("crof", "Requests Today", "daily", None),
        ("nanogpt", "Weekly Tokens", "weekly", None),
        ("nanogpt", "Daily Images", "daily images", None),
        ("antigravity", "Claude-Opus-4-6-thinking", "claude-opus-4-6-thinking", "claude-opus-4-6-thinking"),
        ("gemini-cli", "gemini-*", "gemini-*", None),
        ("other", "session", "session", None),
        ("other", "  Something   New ", "something new", None),
    ],
)
def test_window_keys_get_the_names_of_spec_1(provider, key, window, model):
    named = name_window(provider=provider, raw=key)
    assert named is not None
    assert (named.window, named.model) == (window, model)


def codex_data(updated_at: str) -> str:
    state = {
        "usage5h": 95,
        "limit5h": 100,
        "resetAt5h": "2026-11-29T23:00:00Z",
        "usage7d": 1,
        "limit7d": 3,
        "scope": "codex",
    }
    return json.dumps({"codexQuotaState": {**state, "updatedAt": updated_at}})


@pytest.fixture
def codex(omniroute: OmnirouteFile) -> OmnirouteFile:
    for window in ("session", "weekly", "code_review"):
        omniroute.add_snapshot(window, provider="codex")
    return omniroute


def test_the_state_in_codexs_last_answer_counts_where_it_is_newer(codex):
    codex.add_connection("c1", provider="codex", provider_specific_data=codex_data("2026-11-29T21:34:50Z"))
    assert windows(codex) == {
        "5h": (5, "limit", None),
        "weekly": (Decimal("66.66666666"), "limit", None),
        "code_review": (50, "limit", None),
    }
    session = next(r for r in codex.read().readings if r.window == "5h")
    assert session.observed_at == NOW - timedelta(seconds=10)
    assert session.reset_at == NOW.replace(hour=23, minute=0)


@pytest.mark.parametrize("updated_at", ["2026-11-29T21:00:00Z", "2026-11-29T22:00:00Z", "never"])
def test_an_older_unreadable_or_future_codex_state_is_passed_over(codex, updated_at):
    codex.add_connection("c1", provider="codex", provider_specific_data=codex_data(updated_at))
    assert {r.observed_at for r in codex.read().readings} == {FETCHED_AT}


def test_a_file_with_many_snapshots_gives_one_reading_per_window(file):
    with file.connect() as db:
        db.execute(
            """INSERT INTO quota_snapshots (provider, connection_id, window_key, remaining_percentage, created_at)
               WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 19999)
               SELECT 'claude', 'c1', 'weekly (7d)', i % 100,
                      strftime('%Y-%m-%dT%H:%M:%fZ', '2026-11-29 21:34:00', '-' || i || ' minutes')
                 FROM n"""
        )
    contents = file.read()
    assert (contents.seen.snapshots, contents.seen.windows) == (20000, 1)
    assert file.the_reading().observed_at == NOW - timedelta(minutes=1)
