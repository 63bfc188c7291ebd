"""`manage.py check_ledger`: every total is a sum of rows, and the rows of each original add up."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import connection as database

from tests.factories import SpendHoldFactory
from tests.ladder.services.booking import correct, event, make_ladder, record, row

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def ladder(db):
    make_ladder()
    record(event("e1", "1.00"), event("e2"), correct("c1", "e1", "0.50"), correct("c2", "e2", "0.10"))


def run():
    said, wrong = io.StringIO(), io.StringIO()
    try:
        call_command("check_ledger", stdout=said, stderr=wrong)
    except CommandError as error:
        return str(error), wrong.getvalue()
    return said.getvalue().strip(), wrong.getvalue()


def spoil(statement):
    """Change rows behind the back of the product, as a broken disk or a hand in the database would."""
    with database.cursor() as cursor:
        cursor.execute(f"UPDATE ladder_usageevent SET {statement}")


def test_a_good_ledger_adds_up():
    assert run() == ("4 rows: all add up.", "")


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("booked_usd = booked_usd + 1 WHERE event_id = 'c1'", "e1: its rows add up to 0.500001, and 0.500000 counts"),
        (
            "booked_at = '2026-08-01 00:00+00:00' WHERE event_id = 'c1'",
            "c1: a correction is booked elsewhere than e1",
        ),
        ("corrects_event_id = 'e2' WHERE event_id = 'c1'", "c1: it does not lead to e1, whose correction it is"),
        ("rung = 'premium' WHERE event_id = 'c2'", "c2: a correction is booked elsewhere than e2"),
        ("estimated_change = 0 WHERE event_id = 'c2'", "e2: its rows miscount what is estimated"),
        ("estimated_change = 1 WHERE event_id = 'e1'", "e1: an original does not count its estimate"),
    ],
)
def test_what_does_not_add_up_is_named(statement, fault):
    spoil(statement)
    said, wrong = run()
    assert said.endswith("in 4 rows.")
    assert fault in wrong.splitlines()


def test_a_hold_that_is_settled_by_another_event_is_named():
    SpendHoldFactory(hold_id="h1", settled_by=row("e1"))
    assert run()[1].splitlines() == ["hold h1: settled by an event that does not name it"]
