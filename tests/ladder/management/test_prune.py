"""`manage.py prune`: says what goes, in exit codes and counts, and writes nothing on a dry run."""

import io
from datetime import timedelta

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection as database

from ladder.models import LedgerSum, UsageEvent
from tests.factories_ladder import NOW
from tests.ladder.services.booking import event, make_ladder, record

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()
    with time_machine.travel(NOW, tick=False):
        yield


def run(*options):
    """Return (exit code, what it said)."""
    said = io.StringIO()
    try:
        call_command("prune", *options, stdout=said)
    except CommandError as error:
        return error.returncode, said.getvalue() + str(error)
    return 0, said.getvalue()


def lived():
    record(*(event(f"day-{n}", "0.01", at=NOW - n * DAY) for n in range(70)), event("old", "1", at=NOW - 900 * DAY))


def test_what_would_go_is_counted_and_then_goes():
    lived()
    code, said = run("--dry-run")
    assert code == 0
    assert said.splitlines() == [
        "Dry run: nothing was removed. A real run would do this:",
        "readings: what is older than 2026-05-24T12:00:00Z",
        "history: what is older than 2025-07-18T12:00:00Z",
        "ledger: what is older than 2024-06-13T12:00:00Z",
        "audit: what is older than 2024-06-13T12:00:00Z",
        "  ladder_usageevent: 1 rows",
    ]
    assert LedgerSum.objects.count() == 0
    assert run("--only", "ledger")[1].splitlines() == [
        "readings: kept",
        "history: kept",
        "ledger: what is older than 2024-06-13T12:00:00Z",
        "audit: kept",
        "  ladder_usageevent: 1 rows",
    ]
    assert LedgerSum.objects.count() == 1
    assert run("--only", "ledger")[1].endswith("Nothing to remove.\n")


def test_a_day_takes_the_place_of_the_periods_and_never_reaches_into_the_shortest():
    lived()
    assert "ladder_usageevent: 8 rows" in run("--only=ledger", "--before=2026-08-22")[1]
    assert UsageEvent.objects.order_by("booked_at").first().booked_at == NOW - 62 * DAY


def test_where_age_cannot_be_told_nothing_goes():
    record(event("old", "1", at=NOW - 900 * DAY), event("new", "1"))
    code, said = run()
    assert (code, LedgerSum.objects.count()) == (3, 0)
    assert said.startswith("Nothing is pruned. Nothing was reported in the month")


def test_events_whose_rows_do_not_add_up_stay_and_are_named():
    lived()
    with database.cursor() as cursor:
        cursor.execute("UPDATE ladder_usageevent SET estimated_change = 1 WHERE event_id = 'old'")
    code, said = run()
    assert (code, LedgerSum.objects.count()) == (4, 0)
    assert said.endswith("1 events stay, as their rows do not add up: old.")


@pytest.mark.parametrize("option", ["--only=everything", "--before=yesterday"])
def test_an_option_that_says_nothing_is_refused(option):
    code, said = run(option)
    assert code in {1, 2}
    assert option.partition("=")[2] in said
