"""Periodic tasks: each can be repeated, and each is on the schedule by the name it has."""

from datetime import timedelta

import pytest
import time_machine
from django.conf import settings

from billing_catalog.models import ModelPrice
from billing_catalog.tasks import sync_prices
from ladder.models import RungFlip, RungSample, TimelineCursor
from ladder.tasks import close_budget_windows, expire_holds, note_flips, sample_occupancy, thin_timeline
from omniroute_admin.celery import app
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import BillingEntryFactory, ModelPriceFactory, QuotaWindowFactory, RungSampleFactory
from tests.factories_ladder import NOW


def test_every_task_on_the_schedule_is_one_that_the_worker_knows():
    app.loader.import_default_modules()
    wanted = {entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}
    assert wanted - app.tasks.keys() == set()
    own = {note_flips, sample_occupancy, thin_timeline, expire_holds, close_budget_windows, sync_prices}
    assert {task.name for task in own} <= wanted


@pytest.mark.django_db
def test_the_timelines_tasks_can_be_delivered_twice():
    BillingEntryFactory(provider="claude", auth_type=None)
    ModelPriceFactory(provider="claude", model="opus")
    QuotaWindowFactory(observed_at=NOW, received_at=NOW)
    for minute in (0, 1):
        RungSampleFactory(at=NOW - timedelta(days=200) + timedelta(minutes=minute))
    with time_machine.travel(NOW, tick=False):
        note_flips.delay()
    with time_machine.travel(NOW + timedelta(minutes=5), tick=False):
        for _ in range(2):
            note_flips.delay()
            sample_occupancy.delay()
            thin_timeline.delay()
            expire_holds.delay()
            close_budget_windows.delay()
    assert (RungFlip.objects.count(), RungSample.objects.count(), TimelineCursor.objects.get().version) == (1, 6, 2)


@pytest.mark.django_db
def test_prices_are_synced_once_and_the_same_lists_change_nothing():
    with time_machine.travel(NOW, tick=False):
        sync_prices.delay()
        before = (current_revision(), ModelPrice.objects.count(), ModelPrice.history.count())
        assert before[1] > 0
        sync_prices.delay()
    assert (current_revision(), ModelPrice.objects.count(), ModelPrice.history.count()) == before
