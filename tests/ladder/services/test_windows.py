from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from ladder.core.quota import judge_window
from ladder.core.values import LadderSettings, QuotaVerdict
from ladder.mapping import window_of
from ladder.models import QuotaWindow
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from ladder.services.windows import mark_exhausted, update_window
from omniroute_admin.common.errors import BadRequest, NotFound
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import ConnectionFactory, QuotaWindowFactory
from tests.factories_ladder import NOW, OPERATOR

pytestmark = pytest.mark.django_db

BY = {"actor": OPERATOR, "reason": "keep some", "now": NOW}


def test_muting_and_a_cutoff_of_its_own_are_an_operators_acts_with_a_history_q6_q7():
    window, before = QuotaWindowFactory(), current_revision()
    row = update_window(window=window, changes={"is_muted": True, "exit_cutoff_percent": Decimal(20)}, **BY)
    assert (row.is_muted, row.exit_cutoff_percent) == (True, 20)
    act = row.history.latest("history_id")
    assert (act.history_actor, act.history_change_reason, act.history_date) == (OPERATOR.name, "keep some", NOW)
    assert current_revision() == before + 1
    assert update_window(window=window, changes={"exit_cutoff_percent": None}, **BY).exit_cutoff_percent is None


def test_what_telemetry_wrote_meanwhile_stays():
    window = QuotaWindowFactory(remaining_percent=Decimal(50))
    QuotaWindow.objects.update(remaining_percent=Decimal(7))
    update_window(window=window, changes={"is_muted": True}, **BY)
    assert QuotaWindow.objects.get().remaining_percent == 7


@pytest.mark.parametrize("cutoff", [Decimal(101), Decimal(-1), Decimal("1.000000001"), Decimal("NaN"), "x"])
def test_a_cutoff_that_is_no_percentage_is_refused(cutoff):
    with pytest.raises(ValidationError) as refused:
        update_window(window=QuotaWindowFactory(), changes={"exit_cutoff_percent": cutoff}, **BY)
    assert set(refused.value.error_dict) == {"exit_cutoff_percent"}


def test_what_telemetry_owns_is_not_the_operators_to_change():
    with pytest.raises(KeyError, match="remaining_percent"):
        update_window(window=QuotaWindowFactory(), changes={"remaining_percent": Decimal(90)}, **BY)


def test_nothing_is_written_where_nothing_differs():
    window, before = QuotaWindowFactory(), current_revision()
    update_window(window=window, changes={"is_muted": False}, **BY)
    assert (current_revision(), window.history.count()) == (before, 1)


def mark(connection, window=None, reset_at=None):
    return mark_exhausted(connection=connection, window=window, reset_at=reset_at, **BY)


def verdict(row, now=NOW):
    return judge_window(window=window_of(row, is_held=False), settings=LadderSettings(), now=now).verdict


def test_marking_exhausted_stands_at_any_age_until_the_reset_and_is_history_q2_spec_3():
    window = QuotaWindowFactory(window="5h", reset_at=NOW + timedelta(hours=5))
    (row,) = mark(window.connection, "5h")
    assert verdict(row, NOW + timedelta(hours=4)) is QuotaVerdict.EXHAUSTED
    assert verdict(row, NOW + timedelta(hours=5)) is QuotaVerdict.UNVERIFIED
    act = row.history.latest("history_id")
    assert (act.status, act.history_actor, act.history_change_reason) == ("exhausted", OPERATOR.name, "keep some")
    assert row.readings.get().status == "exhausted"


def test_a_newer_reading_overtakes_the_operators_word():
    window = QuotaWindowFactory(window="5h", connection__connection_id="c1")
    mark(window.connection, "5h")
    later = NOW + timedelta(seconds=1)
    seen = reading_item(connection_id="c1", window="5h", observed_at=later, remaining_percent=Decimal(90))
    record_readings(items=[seen], complete_for=[], actor=OPERATOR, now=later)
    assert verdict(QuotaWindow.objects.get(), later) is QuotaVerdict.USABLE


def test_without_a_name_all_windows_that_count_are_marked():
    connection = ConnectionFactory()
    for name, fields in {"5h": {}, "weekly": {}, "muted": {"is_muted": True}, "gone": {"is_reported": False}}.items():
        QuotaWindowFactory(connection=connection, window=name, **fields)
    assert [row.window for row in mark(connection)] == ["5h", "weekly"]
    assert [row.window for row in mark(ConnectionFactory())] == ["by hand"]


def test_a_reading_of_the_next_minute_does_not_hide_the_operators_word_spec_6():
    ahead = NOW + timedelta(seconds=59)
    window = QuotaWindowFactory(window="5h", observed_at=ahead)
    window.readings.create(observed_at=ahead, received_at=NOW, remaining_percent=50)
    assert [row.status for row in mark(window.connection, "5h")] == ["exhausted"]


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"reset_at": NOW}, "/reset_at"),
        ({"reset_at": NOW.replace(year=9500)}, "/reset_at"),
    ],
)
def test_a_mark_that_makes_no_sense_is_refused_by_name_and_leaves_nothing(fields, pointer):
    connection = ConnectionFactory()
    with pytest.raises(BadRequest) as refused:
        mark(connection, **fields)
    assert [error.pointer for error in refused.value.errors] == [pointer]
    assert not QuotaWindow.objects.exists()


def test_a_window_that_is_not_there_is_not_made_and_those_that_are_there_are_named():
    connection = ConnectionFactory()
    with pytest.raises(NotFound, match="no windows yet"):
        mark(connection, "5h")
    for name in ("weekly", "5h"):
        QuotaWindowFactory(connection=connection, window=name)
    with pytest.raises(NotFound, match="5h, weekly") as refused:
        mark(connection, "wekly")
    assert refused.value.extra == {"windows": ["5h", "weekly"]}
    assert QuotaWindow.objects.count() == 2
