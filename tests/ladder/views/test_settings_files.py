"""Settings as OmniRoute writes them: taken out, and read in as a form that saves nothing by itself (SPEC 2)."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from ladder.models import LadderSettings, RungBudget
from tests.ladder.views.tuning import client_of, fields_of, part, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def operator(django_user_model: Any) -> Client:
    return client_of(django_user_model, "mira", "operator")


def read_in(client: Client, content: Any) -> Any:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.post("/tuning/import", {"file": SimpleUploadedFile("settings.json", body)})


def ladder(**fields: Any) -> dict[str, Any]:
    return {"subscriptionLadder": fields}


def test_the_download_is_what_omniroute_writes(operator: Client) -> None:
    RungBudget.objects.filter(rung="cheap").update(amount_usd=Decimal("5.5"))
    answer = operator.get("/tuning/omniroute.json")
    assert answer["Content-Disposition"] == 'attachment; filename="omniroute-settings.json"'
    assert json.loads(answer.content) == ladder(
        exitCutoffPercent=2, reentryMinRemainingPercent=5, rungBudgetUsd={"cheap": 5.5, "premium": None}
    )


def test_what_is_taken_out_and_read_in_again_changes_nothing(operator: Client) -> None:
    html = read_in(operator, operator.get("/tuning/omniroute.json").content).content.decode()
    assert "nothing to save" in part(html, 'id="imported"', "</section>")


def test_a_file_fills_the_form_and_saves_nothing_until_a_reason_is_given(operator: Client) -> None:
    given = ladder(exitCutoffPercent=2.5, rungBudgetUsd={"cheap": 3, "premium": 0})
    answer = read_in(operator, b"\xef\xbb\xbf" + json.dumps(given).encode())
    html = answer.content.decode()
    panel = part(html, 'id="imported"', "</section>")
    assert "would change 3 settings" in panel
    assert "Exit cutoff: 2 % → 2.5 %" in panel
    assert "Budget of premium: no limit → off" in panel
    assert "Say why" not in html
    assert LadderSettings.objects.get().exit_cutoff_percent == 2

    sent = fields_of(html)
    assert operator.post("/tuning", {**sent, "reason": "from the router"}).status_code == 302
    assert LadderSettings.objects.get().exit_cutoff_percent == Decimal("2.5")
    amounts = dict(RungBudget.objects.values_list("rung", "amount_usd"))
    assert amounts == {"cheap": Decimal(3), "premium": Decimal(0)}


def test_what_a_file_leaves_out_stays(operator: Client) -> None:
    html = read_in(operator, ladder(reentryMinRemainingPercent=7)).content.decode()
    sent = fields_of(html)
    assert (sent["reentry_min_remaining_percent"], sent["exit_cutoff_percent"]) == ("7", "2")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"not json", "malformed"),
        (b"\xff\xfe\x00", ""),
        ({}, "subscriptionLadder"),
        (ladder(enabled=True), "enabled"),
        (ladder(exitCutoffPercent=101), "exitCutoffPercent"),
        (ladder(exitCutoffPercent="two", reentryMinRemainingPercent=-1), "reentryMinRemainingPercent"),
        (ladder(rungBudgetUsd={"cheap": -1}), "cheap"),
        (b" " * 70_000, "64 KB"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_in_words(operator: Client, content: Any, words: str) -> None:
    answer = read_in(operator, content)
    assert answer.status_code == 400
    told = part(answer.content.decode(), "The file is not read", "</ul>")
    assert words in told
    assert LadderSettings.objects.get().exit_cutoff_percent == 2


def test_no_file_at_all_is_told(operator: Client) -> None:
    answer = operator.post("/tuning/import", {})
    assert "Choose a file first" in text_of(answer.content.decode())


def test_reloading_after_a_look_leads_back_to_the_page(operator: Client) -> None:
    assert operator.get("/tuning/import")["Location"] == "/tuning"


def test_who_may_not_change_settings_takes_out_but_reads_nothing_in(django_user_model: Any) -> None:
    viewer = client_of(django_user_model, "vera", "viewer")
    assert viewer.get("/tuning/omniroute.json").status_code == 200
    assert read_in(viewer, ladder()).status_code == 403
