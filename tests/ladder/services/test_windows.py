from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from ladder.models import QuotaWindow
from ladder.services.windows import update_window
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories_ladder import NOW, OPERATOR, QuotaWindowFactory

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
