"""The form of the tuning page: each field told alone, all at once (SPEC 5, 3; M1, M3, T)."""

import pytest
from django.http import QueryDict
from hypothesis import given, settings
from hypothesis import strategies as st

from ladder.forms.tuning import LABELS, SettingsForm, inputs_of, with_theirs

STORED = {
    "exit_cutoff_percent": "2",
    "reentry_min_remaining_percent": "5",
    "max_reading_age_seconds": "180",
    "cheap_amount": "5",
    "cheap_period": "weekly",
    "cheap_week_starts_on": "monday",
    "cheap_zone": "Europe/Berlin",
    "premium_amount": "off",
    "premium_period": "daily",
    "premium_week_starts_on": "monday",
    "premium_zone": "UTC",
    "tier_free": "0",
    "tier_cheap": "1",
}


def filled(**changes):
    form = SettingsForm({**inputs_of(STORED), **changes})
    form.is_valid()
    return form


def test_what_is_stored_goes_in_and_comes_out_the_same():
    assert filled().problems() == {}
    assert filled().texts() == STORED
    assert list(STORED) == list(LABELS)


@pytest.mark.parametrize(
    ("name", "typed", "text"),
    [
        ("exit_cutoff_percent", "2.50", "2.5"),
        ("exit_cutoff_percent", " 0 ", "0"),
        ("exit_cutoff_percent", "100.00000000", "100"),
        ("reentry_min_remaining_percent", ".5", "0.5"),
        ("reentry_min_remaining_percent", "0.00000001", "0.00000001"),
        ("reentry_min_remaining_percent", "3.", "3"),
        ("max_reading_age_seconds", "0180", "180"),
        ("max_reading_age_seconds", "3600.0", "3600"),
        ("cheap_amount", "0.000001", "0.000001"),
        ("cheap_zone", "asia/tokyo", "Asia/Tokyo"),
        ("tier_cheap", "15.00", "15"),
    ],
)
def test_a_value_is_kept_as_the_shortest_text_that_says_the_same(name, typed, text):
    assert filled(**{name: typed}).texts()[name] == text


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("exit_cutoff_percent", "2,5", "with a point"),
        ("cheap_amount", "1,000", "with a point"),
        ("exit_cutoff_percent", "", "Write a number"),
        ("exit_cutoff_percent", "-1", "from 0 to 100"),
        ("exit_cutoff_percent", "100.1", "from 0 to 100"),
        ("exit_cutoff_percent", "0.000000001", "At most 8 decimals"),
        ("exit_cutoff_percent", "NaN", "number alone"),
        ("exit_cutoff_percent", "1e1", "number alone"),
        ("exit_cutoff_percent", "5 %", "number alone"),
        ("exit_cutoff_percent", "٣", "number alone"),
        ("exit_cutoff_percent", "9" * 5000, "number alone"),
        ("exit_cutoff_percent", "<b>2</b>", "number alone"),
        ("exit_cutoff_percent", "2\x00", "Null characters"),
        ("max_reading_age_seconds", "9", "from 10 to 3,600"),
        ("max_reading_age_seconds", "3601", "from 10 to 3,600"),
        ("max_reading_age_seconds", "60.5", "whole seconds"),
        ("cheap_amount", "$5", "number alone"),
        ("cheap_amount", "0.0000001", "At most 6 decimals"),
        ("cheap_amount", "1000000000", "from 0 to"),
        ("cheap_period", "hourly", "daily, weekly, monthly"),
        ("cheap_week_starts_on", "Funday", "monday"),
        ("cheap_zone", "Mars/Base", "IANA zone"),
        ("cheap_zone", "localtime", "IANA zone"),
        ("cheap_zone", "", "IANA zone"),
        ("tier_free", "2", "not below that of free"),
    ],
)
def test_a_wrong_field_is_named_and_says_how_to_mend_it(name, typed, words):
    problems = filled(**{name: typed}).problems()
    told = {"tier_free": "tier_cheap"}.get(name, name)
    assert set(problems) == {told}
    assert words in problems[told]


def test_every_wrong_field_is_named_at_once():
    form = filled(**dict.fromkeys(("exit_cutoff_percent", "cheap_amount", "premium_zone", "tier_free"), "wrong,"))
    assert set(form.problems()) == {"exit_cutoff_percent", "cheap_amount", "premium_zone", "tier_free"}
    assert form.texts() == {name: text for name, text in STORED.items() if name not in form.problems()}


@pytest.mark.parametrize(("typed", "words"), [("", "choose No limit or Off"), (" ", "No limit"), ("0", "choose Off")])
def test_an_empty_amount_and_a_zero_mean_neither_no_limit_nor_off(typed, words):
    """M1: they are different, and are written as words."""
    form = filled(cheap_kind="amount", cheap_amount=typed)
    assert words in form.problems()["cheap_amount"]
    assert "cheap_amount" not in form.texts()


@pytest.mark.parametrize("kind", ["none", "off"])
@pytest.mark.parametrize("typed", ["", "7", "what,ever"])
def test_no_limit_and_off_leave_the_amount_beside_them_unread(kind, typed):
    form = filled(cheap_kind=kind, cheap_amount=typed)
    assert form.problems() == {}
    assert form.texts()["cheap_amount"] == kind


@pytest.mark.parametrize(("kind", "words"), [("none", "No limit"), ("off", "Off")])
@pytest.mark.parametrize("typed", ["7", "what,ever"])
def test_an_amount_written_beside_a_kind_that_was_left_as_it_was_is_told_not_dropped(kind, words, typed):
    """M1: no limit and a limit are different, and a limit that was written must not be lost unnoticed."""
    began = {**STORED, "cheap_amount": kind}
    form = SettingsForm({**inputs_of(began), "cheap_amount": typed}, began=began)
    form.is_valid()
    assert f"but {words} is chosen" in form.problems()["cheap_amount"]
    assert form.texts() == {name: text for name, text in STORED.items() if name != "cheap_amount"}


@pytest.mark.parametrize(("before", "kind"), [("none", "off"), ("off", "none"), ("5", "none")])
def test_an_amount_beside_a_kind_that_was_chosen_anew_is_not_meant(before, kind):
    began = {**STORED, "cheap_amount": before}
    form = SettingsForm({**inputs_of(began), "cheap_kind": kind, "cheap_amount": "7"}, began=began)
    form.is_valid()
    assert form.texts()["cheap_amount"] == kind


@pytest.mark.parametrize("kind", ["", "unlimited"])
def test_a_budget_of_no_kind_is_told_beside_its_amount(kind):
    assert "cheap_amount" in filled(cheap_kind=kind).problems()


def test_a_field_where_the_others_value_is_chosen_takes_what_was_stored():
    sent = QueryDict(mutable=True)
    sent.update({**inputs_of(STORED), "exit_cutoff_percent": "9", "cheap_kind": "off", "tier_free": "1"})
    sent.update({"keep_exit_cutoff_percent": "theirs", "keep_cheap_amount": "theirs", "keep_tier_free": "mine"})
    form = SettingsForm(with_theirs(sent, STORED))
    form.is_valid()
    assert form.texts() == {**STORED, "tier_free": "1"}


@given(typed=st.dictionaries(st.sampled_from([*inputs_of(STORED)]), st.text(max_size=30)))
@settings(deadline=None, max_examples=200)
def test_whatever_is_typed_each_setting_is_either_right_or_named(typed):
    form = filled(**typed)
    assert set(form.texts()).isdisjoint(form.problems())
    assert set(form.texts()) | set(form.problems()) == set(LABELS)
