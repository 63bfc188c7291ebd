"""Keep usage or reset: the count of a budget starts again, asked apart (M9; SPEC 5, 3)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.test import Client

from ladder.core.values import Rung
from ladder.models import RungBudget, UsageEvent
from ladder.selectors.ledger import read_budgets
from omniroute_admin.common import clock
from omniroute_admin.common.forms import seen_text
from tests.browser.fleet import make_fleet
from tests.factories import UsageEventFactory
from tests.ladder.views.tuning import client_of, part, text_of

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
PATH = "/tuning/budgets/cheap/reset"


@pytest.fixture(autouse=True)
def _spent(db: None) -> Any:
    with time_machine.travel(MOMENT, tick=False):
        make_fleet(now=clock.now())
        UsageEventFactory(booked_cost=Decimal(5), occurred_at=clock.now() - timedelta(hours=1))
        yield


@pytest.fixture
def operator(django_user_model: Any) -> Client:
    return client_of(django_user_model, "mira", "operator")


def seen(client: Client) -> str:
    html = client.get(PATH).content.decode()
    return html.split('name="seen" value="')[1].split('"')[0]


def spent() -> Decimal | None:
    return read_budgets(now=clock.now())[Rung.CHEAP].spent_usd


def counted_from() -> datetime | None:
    return RungBudget.objects.get(rung="cheap").counted_from


def test_the_page_says_what_will_happen_and_what_would_move(operator: Client) -> None:
    html = operator.get(PATH).content.decode()
    words = text_of(html)
    assert "$5.00 spent, since Mon 24 Aug 00:00 until Mon 31 Aug 00:00 Europe/Berlin" in words
    assert "Every row of the ledger stays" in words
    assert "No later window moves: this one still ends Mon 00:00 Europe/Berlin" in words
    assert "2 of 13 places would move" in words
    assert spent() == 5


def test_a_reset_counts_from_now_with_its_reason_and_keeps_every_row(operator: Client) -> None:
    answer = operator.post(PATH, {"seen": seen(operator), "reason": "new sprint"}, follow=True)
    assert answer.redirect_chain == [("/tuning", 302)]
    assert "starts again now" in text_of(answer.content.decode())
    assert (spent(), counted_from(), UsageEvent.objects.count()) == (0, clock.now(), 1)
    newest = RungBudget.history.filter(rung="cheap").order_by("-history_id").first()
    assert (newest.history_actor, newest.history_change_reason) == ("mira", "new sprint")


def test_keeping_usage_is_leaving_the_page(operator: Client) -> None:
    assert 'href="/tuning">Keep usage</a>' in operator.get(PATH).content.decode()


def test_it_asks_why(operator: Client) -> None:
    answer = operator.post(PATH, {"seen": seen(operator), "reason": " "})
    assert answer.status_code == 400
    assert "Say why" in part(answer.content.decode(), 'id="e-why"', "</p>")
    assert counted_from() is None


@pytest.mark.parametrize("other", ["", "nonsense"])
def test_a_form_that_is_not_whole_resets_nothing(operator: Client, other: str) -> None:
    assert operator.post(PATH, {"seen": other, "reason": "x"}).status_code == 400
    assert counted_from() is None


def test_a_form_of_another_page_resets_nothing(operator: Client) -> None:
    operator.post(PATH, {"seen": seen_text({"exit": "2"}), "reason": "x"})
    assert counted_from() is None


def test_a_double_submit_and_the_back_button_reset_once(operator: Client) -> None:
    sent = {"seen": seen(operator), "reason": "once"}
    operator.post(PATH, sent)
    first = counted_from()
    with time_machine.travel(MOMENT + timedelta(minutes=5), tick=False):
        answer = operator.post(PATH, sent, follow=True)
    assert "started again already at 08:12" in text_of(answer.content.decode())
    assert counted_from() == first


@pytest.mark.parametrize("rung", ["free", "subscription", "nonsense"])
def test_a_rung_without_a_budget_has_no_such_page(operator: Client, rung: str) -> None:
    assert operator.get(f"/tuning/budgets/{rung}/reset").status_code == 404


@pytest.mark.parametrize("role", ["viewer", "curator", "auditor"])
def test_a_role_that_may_not_change_settings_is_refused(django_user_model: Any, role: str) -> None:
    client = client_of(django_user_model, "vera", role)
    assert client.get(PATH).status_code == 403
    assert client.post(PATH, {"reason": "x"}).status_code == 403
