"""What keeps OmniRoute from using a connection, as cooldowns (SPEC C)."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.ladder.adapters.omniroute_file import NOW

IN_AN_HOUR = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    "stored",
    [
        "2026-11-29T22:35:00.000Z",
        "2026-11-29T22:35:00Z",
        "2026-11-29 22:35:00",
        "2026-11-30T00:35:00+02:00",
        "2026-11-29T17:35:00-05:00",
        "1795991700000",
        "1795991700000.0",
        "1795991700",
        "1795991700.0",
        " 2026-11-29T22:35:00Z ",
    ],
)
def test_every_form_of_an_instant_is_read_as_utc(omniroute, stored):
    omniroute.add_connection(rate_limited_until=stored)
    assert omniroute.the_cooldown().until == IN_AN_HOUR
    assert omniroute.problem_codes() == []


def test_milliseconds_are_kept(omniroute):
    omniroute.add_connection(rate_limited_until="1796009294636.0")
    assert omniroute.the_cooldown().until == datetime(2026, 11, 30, 3, 28, 14, 636000, tzinfo=UTC)


@pytest.mark.parametrize(
    "stored",
    [
        "not-a-date",
        "50000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-01:00",
        "0001-01-01",
        "99999999999999999",
        "1e999",
        "-5",
        "0",
        "2026-13-45",
        b"\xff",
    ],
)
def test_an_unreadable_instant_is_reported_and_is_no_cooldown(omniroute, stored):
    omniroute.add_connection(rate_limited_until=stored, test_status="unavailable")
    assert omniroute.read().cooldowns == ()
    assert omniroute.problem_codes() == ["bad_instant"]


@pytest.mark.parametrize("stored", [None, "", "   "])
def test_no_instant_is_no_problem(omniroute, stored):
    omniroute.add_connection(rate_limited_until=stored, test_status="active")
    assert omniroute.read().cooldowns == ()
    assert omniroute.problem_codes() == []


@pytest.mark.parametrize("until", ["2026-11-29T21:34:59.999Z", "2026-11-29T21:35:00.000Z"])
def test_a_past_instant_is_usable_again_although_the_row_says_unavailable(omniroute, until):
    omniroute.add_connection(test_status="unavailable", error_code="429.0", rate_limited_until=until)
    assert omniroute.read().cooldowns == ()
    assert omniroute.problem_codes() == []


@pytest.mark.parametrize(
    ("error_type", "error_code", "cause"),
    [
        ("rate_limited", None, "rate_limit"),
        (None, "429.0", "rate_limit"),
        ("quota_exhausted", "429.0", "quota"),
        (None, "402.0", "quota"),
        ("Unauthorized", None, "auth"),
        ("token_expired", None, "auth"),
        (None, "unrecoverable_refresh_error", "auth"),
        (None, "401", "auth"),
        ("account_deactivated", "401.0", "ban"),
        ("forbidden", None, "ban"),
        ("server_error", "500.0", "rate_limit"),
        (None, None, "rate_limit"),
        ("never-seen", "never-seen", "rate_limit"),
    ],
)
def test_the_cause_comes_from_the_kind_of_error_else_from_its_code(omniroute, error_type, error_code, cause):
    omniroute.add_connection(
        test_status="unavailable",
        last_error_type=error_type,
        error_code=error_code,
        rate_limited_until="2026-11-29T22:35:00Z",
    )
    cooldown = omniroute.the_cooldown()
    assert (cooldown.cause, cooldown.until, cooldown.model) == (cause, IN_AN_HOUR, None)


@pytest.mark.parametrize(
    ("status", "cause"),
    [("banned", "ban"), ("deactivated", "ban"), ("expired", "auth"), ("invalid", "auth"), ("Banned ", "ban")],
)
@pytest.mark.parametrize("until", [None, "2026-11-29T22:35:00Z", "2020-01-01T00:00:00Z"])
def test_auth_and_ban_last_until_cleared_as_in_spec_c4(omniroute, status, cause, until):
    omniroute.add_connection(test_status=status, last_error_type="rate_limited", rate_limited_until=until)
    assert (omniroute.the_cooldown().cause, omniroute.the_cooldown().until) == (cause, None)


@pytest.mark.parametrize(
    ("until", "expected"), [(None, None), ("2020-01-01T00:00:00Z", None), ("2026-11-29T22:35:00Z", IN_AN_HOUR)]
)
def test_exhausted_credits_wait_for_the_instant_if_there_is_one_else_until_cleared(omniroute, until, expected):
    omniroute.add_connection(test_status="credits_exhausted", rate_limited_until=until)
    assert (omniroute.the_cooldown().cause, omniroute.the_cooldown().until) == ("quota", expected)


def test_an_error_that_omniroute_itself_tries_again_is_no_cooldown(omniroute):
    omniroute.add_connection(test_status="error", last_error_type="auth_missing", error_code="missing_api_key")
    assert omniroute.read().cooldowns == ()


def test_an_unknown_status_is_reported_without_being_repeated(omniroute):
    omniroute.add_connection(test_status="sk-something-new")
    (found,) = omniroute.read().problems
    assert found.code == "unknown_status"
    assert "sk-something-new" not in found.detail


def test_a_cooldown_of_a_year_is_taken_over_and_reported(omniroute):
    omniroute.add_connection(rate_limited_until="2027-11-29T21:27:54.600Z")
    assert omniroute.the_cooldown().until.year == 2027
    assert omniroute.problem_codes() == ["long_cooldown"]


@pytest.mark.parametrize(
    ("last_error_at", "updated_at", "expected"),
    [
        ("2026-11-29T21:00:00Z", "2026-11-29T21:10:00Z", NOW.replace(minute=0)),
        (None, "2026-11-29T21:10:00Z", NOW.replace(minute=10)),
        ("not-a-date", "2026-11-29T21:10:00Z", NOW.replace(minute=10)),
        ("2026-12-29T21:10:00Z", "not-a-date", None),
    ],
)
def test_a_cooldown_is_reported_at_the_last_error_else_at_the_last_change(
    omniroute, last_error_at, updated_at, expected
):
    omniroute.add_connection(test_status="banned", last_error_at=last_error_at, updated_at=updated_at)
    assert omniroute.the_cooldown().reported_at == expected


def codex_data(**keys: object) -> str:
    return json.dumps({"workspaceId": "secret-workspace", **keys})


def test_a_codex_scope_is_a_quota_cooldown_with_its_window(omniroute):
    data = codex_data(codexScopeRateLimitedUntil={"codex": "2026-11-29T22:35:00Z"}, codexExhaustedWindow="7d")
    omniroute.add_connection(provider="codex", provider_specific_data=data)
    cooldown = omniroute.the_cooldown()
    assert (cooldown.cause, cooldown.until, cooldown.model, cooldown.window) == ("quota", IN_AN_HOUR, None, "weekly")


def test_the_spark_scope_of_codex_leaves_the_other_models_alone(omniroute):
    data = codex_data(codexScopeRateLimitedUntil={"spark": "2026-11-29T22:35:00Z", "codex": "2026-11-29T20:00:00Z"})
    omniroute.add_connection(provider="codex", provider_specific_data=data)
    assert omniroute.the_cooldown().model == "*spark*"


def test_a_codex_429_that_names_its_window_is_about_quota_and_the_longest_acts_as_in_spec_c3(omniroute):
    data = codex_data(codexScopeRateLimitedUntil={"codex": "2026-11-29T22:00:00Z"}, codexExhaustedWindow="5h")
    omniroute.add_connection(
        provider="codex", error_code="429.0", rate_limited_until="2026-11-29T22:35:00Z", provider_specific_data=data
    )
    cooldown = omniroute.the_cooldown()
    assert (cooldown.cause, cooldown.until, cooldown.window) == ("quota", IN_AN_HOUR, "5h")


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        ("{not json", []),
        (b"\x80\x81", []),
        ("[1, 2]", []),
        (codex_data(codexScopeRateLimitedUntil="x"), ["unknown_scope"]),
        (codex_data(codexScopeRateLimitedUntil={"codex": {"deep": 1}}), []),
        (codex_data(codexScopeRateLimitedUntil={"codex": "soon"}), ["bad_instant"]),
        (codex_data(codexScopeRateLimitedUntil={"hidden": "2026-11-29T22:35:00Z"}), ["unknown_scope"]),
        (codex_data(codexExhaustedWindow={"a": 1}, codexQuotaState=[]), []),
    ],
)
def test_odd_codex_data_costs_nothing_but_itself(omniroute, data, problems):
    omniroute.add_connection(provider="codex", provider_specific_data=data)
    assert len(omniroute.read().connections) == 1
    assert omniroute.read().cooldowns == ()
    assert omniroute.problem_codes() == problems


def test_codex_keys_of_another_provider_mean_nothing(omniroute):
    data = codex_data(codexScopeRateLimitedUntil={"codex": "2026-11-29T22:35:00Z"})
    omniroute.add_connection(provider="claude", provider_specific_data=data)
    assert omniroute.read().cooldowns == ()
