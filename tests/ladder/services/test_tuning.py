"""Saving the tuning page: only what was changed, and never over somebody else's change (SPEC 5, 3)."""

from decimal import Decimal

import pytest

from ladder.models import LadderSettings, RungBudget
from ladder.selectors.settings import read_stored_settings
from ladder.selectors.tuning import texts_of
from ladder.services.settings import SettingsChanges, update_settings
from ladder.services.tuning import StaleTuningError, save_tuning
from omniroute_admin.common.errors import BadRequest
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories_ladder import NOW, OPERATOR

pytestmark = pytest.mark.django_db


def texts():
    return texts_of(read_stored_settings())


def send(began, **changes):
    return save_tuning(began=began, sent={**began, **changes}, actor=OPERATOR, reason="tried", now=NOW)


def other(**fields):
    update_settings(changes=SettingsChanges(**fields), actor=Actor("jonas"), reason="mine", now=NOW)


def versions():
    return LadderSettings.history.count() + RungBudget.history.count()


def test_only_what_was_changed_is_saved_with_its_reason():
    before = versions()
    saved = send(texts(), exit_cutoff_percent="2.5", cheap_amount="5", premium_amount="off")
    assert saved.changes == {
        "exit_cutoff_percent": ("2", "2.5"),
        "cheap_amount": ("none", "5"),
        "premium_amount": ("none", "off"),
    }
    assert versions() == before + 3
    newest = LadderSettings.history.order_by("-history_id").first()
    assert (newest.history_actor, newest.history_change_reason) == (OPERATOR.name, "tried")
    amounts = dict(RungBudget.objects.values_list("rung", "amount_usd"))
    assert amounts == {"cheap": Decimal(5), "premium": Decimal(0)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("exit_cutoff_percent", "0.00000001"),
        ("reentry_min_remaining_percent", "100"),
        ("max_reading_age_seconds", "3600"),
        ("cheap_amount", "off"),
        ("cheap_period", "monthly"),
        ("cheap_week_starts_on", "sunday"),
        ("cheap_zone", "Asia/Tokyo"),
        ("premium_amount", "0.000001"),
        ("premium_period", "weekly"),
        ("premium_week_starts_on", "friday"),
        ("premium_zone", "Pacific/Apia"),
        ("tier_free", "0.5"),
        ("tier_cheap", "2"),
    ],
)
def test_every_setting_can_be_saved_alone(name, text):
    began = texts()
    send(began, **{name: text})
    assert texts() == {**began, name: text}


def test_sent_twice_it_has_one_effect():
    began = texts()
    send(began, exit_cutoff_percent="3")
    revision, before = current_revision(), versions()
    again = send(began, exit_cutoff_percent="3")
    assert (again.is_repeated, again.changes) == (True, {})
    assert (current_revision(), versions()) == (revision, before)


def test_what_is_saved_already_is_said_to_be_so_even_where_another_field_changed_since():
    began = texts()
    send(began, exit_cutoff_percent="3")
    other(max_reading_age_seconds=60)
    assert send(began, exit_cutoff_percent="3").is_repeated


def test_nothing_changed_saves_nothing_and_undoes_nobody():
    began, before = texts(), versions()
    other(exit_cutoff_percent=Decimal(9))
    assert send(began).changes == {}
    assert (texts()["exit_cutoff_percent"], versions()) == ("9", before + 1)


def test_a_field_that_another_changed_too_is_refused_and_nothing_is_saved():
    began = texts()
    other(reentry_min_remaining_percent=Decimal(6), max_reading_age_seconds=240)
    after = texts()
    with pytest.raises(StaleTuningError) as refused:
        send(began, reentry_min_remaining_percent="3", cheap_amount="1")
    told = {one.name: (one.began, one.stored, one.sent, one.is_touched) for one in refused.value.differences}
    assert told == {
        "reentry_min_remaining_percent": ("5", "6", "3", True),
        "max_reading_age_seconds": ("180", "240", "180", False),
    }
    assert refused.value.stored == after == texts()


def test_a_change_of_another_field_is_shown_before_anything_is_saved_beside_it():
    began = texts()
    other(max_reading_age_seconds=240)
    with pytest.raises(StaleTuningError):
        send(began, cheap_amount="1")


def test_two_who_come_to_the_same_do_not_disagree():
    began = texts()
    other(exit_cutoff_percent=Decimal(3))
    send(began, exit_cutoff_percent="3", cheap_amount="1")
    assert (texts()["exit_cutoff_percent"], texts()["cheap_amount"]) == ("3", "1")


def test_thresholds_out_of_order_are_refused():
    with pytest.raises(BadRequest):
        send(texts(), tier_free="2")
