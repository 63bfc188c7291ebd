"""Q5: readings that are removed for good change no verdict, under any settings, and nothing that a page tells."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ladder.core.readings.pace import life_of, points_within, ticks_of
from ladder.core.values import LadderSettings
from ladder.models import QuotaReading, QuotaWindow
from ladder.selectors.connection_page import read_earlier_resets, read_used_up, sample_readings
from ladder.selectors.held import held_windows
from ladder.selectors.tuning import read_usual_gap
from ladder.services.old_readings import prune_readings
from ladder.services.pruning import Removed, Run
from omniroute_admin.common.selectors.horizons import read_pruned
from omniroute_admin.common.selectors.revision import current_token
from tests.factories import QuotaReadingFactory, QuotaWindowFactory
from tests.factories_ladder import NOW
from tests.ladder.core.strategies import PROPERTY, examples

pytestmark = pytest.mark.django_db

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BEFORE = NOW - 90 * DAY


def see(window, *numbers, newest=BEFORE - HOUR, **fields):
    """Add readings, newest first, one every hour."""
    for place, number in enumerate(numbers):
        QuotaReadingFactory(
            window=window, remaining_percent=Decimal(number), observed_at=newest - place * HOUR, **fields
        )


def left():
    return [
        int(one) for one in QuotaReading.objects.order_by("-observed_at").values_list("remaining_percent", flat=True)
    ]


def prune(**options):
    return prune_readings(before=BEFORE, run=Run(now=NOW, **options)).rows


def test_of_old_readings_the_newest_six_and_those_that_a_verdict_may_need_stay_q5():
    see(QuotaWindowFactory(reset_at=None), 50, 50, 50, 50, 50, 50, 40, 41, 45, 60, 60, 10)
    assert prune_readings(before=BEFORE, run=Run(now=NOW)) == Removed("ladder_quotareading", 2)
    # 45 stays as what came after 60: since then the window is below any cutoff between the two.
    assert left() == [50, 50, 50, 50, 50, 50, 40, 45, 60, 10]


def test_younger_readings_and_those_of_the_present_life_all_stay():
    window = QuotaWindowFactory(window="200d", reset_at=NOW + DAY)
    see(window, *[50] * 20)
    see(QuotaWindowFactory(window="weekly", reset_at=NOW + DAY), *[50] * 20, newest=BEFORE + 19 * HOUR)
    assert prune() == 0
    QuotaWindow.objects.filter(pk=window.pk).update(window="5h")
    assert prune() == 14


def test_the_newest_reading_that_spoke_of_a_reset_stays_as_a_life_may_begin_there():
    window = QuotaWindowFactory(window="odd", reset_at=None)
    see(window, *[50] * 10)
    for hours, reset_at in ((10, BEFORE + DAY), (11, BEFORE - DAY), (12, BEFORE - 2 * DAY)):
        see(window, 50, newest=BEFORE - hours * HOUR - HOUR, reset_at=reset_at)
    before = [read_earlier_resets(keys=[window.pk], now=at) for at in (BEFORE, BEFORE + DAY, NOW)]
    assert prune() == 5
    assert [read_earlier_resets(keys=[window.pk], now=at) for at in (BEFORE, BEFORE + DAY, NOW)] == before
    assert before == [{window.pk: BEFORE - DAY}, {window.pk: BEFORE + DAY}, {window.pk: BEFORE + DAY}]


def test_it_goes_in_batches_can_be_said_again_and_moves_no_token():
    see(QuotaWindowFactory(), *[50] * 20)
    seen, token = [], current_token()
    assert prune(dry_run=True) == 14
    assert prune(batch=5, progress=seen.append) == 14
    assert seen == [5, 5, 4]
    assert prune() == 0
    assert current_token() == token
    assert (read_pruned("readings").before, read_pruned("readings").removed) == (BEFORE, 14)


def test_nothing_old_leaves_no_horizon():
    see(QuotaWindowFactory(), *[50] * 20, newest=NOW)
    assert prune() == 0
    assert read_pruned("readings") is None


reading = st.tuples(
    st.integers(1, 120 * 24),  # hours ago
    st.one_of(st.sampled_from([None, "exhausted", "unlimited"]), st.integers(0, 20)),
    st.one_of(st.none(), st.integers(-110 * 24, 40 * 24)),  # hours until the reset it speaks of
)
CUTOFFS = [Decimal(one) for one in (0, 2, 5, 9, 19)]


def told(window):
    """Return all that is derived from readings: verdicts under many settings, and what the connection's page says."""
    found = {}
    for exit_cutoff in CUTOFFS:
        for reentry in (0, 3, 7, 12, 20):
            band = LadderSettings(exit_cutoff_percent=exit_cutoff, reentry_min_remaining_percent=Decimal(reentry))
            found["held", exit_cutoff, reentry] = held_windows(settings=band, window_ids=None)
        found["used up", exit_cutoff] = read_used_up(keys=[window.pk], cutoff=exit_cutoff)
    for at in (NOW, NOW + 5 * DAY, NOW + 30 * DAY):
        found["earlier", at] = earlier = read_earlier_resets(keys=[window.pk], now=at)
        life = life_of(window=window.window, reset_at=window.reset_at, earlier_reset_at=earlier.get(window.pk))
        if life is not None and life.reset_at > at:
            points = sample_readings(instants={window.pk: ticks_of(life=life, until=at, count=40)})
            found["line", at] = points_within(points=points.get(window.pk, ()), life=life, now=at)
    found["gap"] = read_usual_gap()
    return found


@settings(
    PROPERTY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(otherwise=40),
)
@given(
    readings=st.lists(reading, min_size=1, max_size=25, unique_by=lambda one: one[0]),
    name=st.sampled_from(["5h", "weekly", "monthly", "100d", "odd"]),
    resets_in=st.one_of(st.none(), st.integers(-24, 35 * 24)),
)
def test_nothing_that_is_derived_from_readings_changes_q5(readings, name, resets_in):
    with transaction.atomic():
        reset_at = None if resets_in is None else NOW + resets_in * HOUR
        window = QuotaWindowFactory(window=name, reset_at=reset_at)
        for hours, said, until in readings:
            QuotaReadingFactory(
                window=window, observed_at=NOW - hours * HOUR, reset_at=None if until is None else NOW + until * HOUR,
                remaining_percent=Decimal(said) if isinstance(said, int) else None, unlimited=said == "unlimited",
                status="exhausted" if said == "exhausted" else "safe",
            )  # fmt: skip
        before = told(window)
        prune(batch=3)
        assert told(window) == before
        assert prune() == 0
        transaction.set_rollback(True)
