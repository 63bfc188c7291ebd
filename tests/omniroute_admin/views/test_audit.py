"""SPEC 5, 7: the audit page shows who changed what, filters it, exports it, and leads back to any version."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from billing_catalog.services import entries
from ladder.models import LadderSettings
from ladder.services.connections import create_connection, update_connection
from ladder.services.old_versions import prune_versions
from ladder.services.pruning import Run
from ladder.services.settings import SettingsChanges, update_settings
from omniroute_admin.common import clock
from omniroute_admin.common.core.roles import AUDITOR, OPERATOR
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.history import Asked, find_entries
from omniroute_admin.common.selectors.revision import current_revision

pytestmark = pytest.mark.django_db
NOW = datetime(2099, 8, 22, 12, tzinfo=UTC)
MIRA = Actor(name="mira")


def by(minutes: int = 0, reason: str = "why not") -> dict[str, Any]:
    return {"actor": MIRA, "reason": reason, "now": NOW + timedelta(minutes=minutes)}


@pytest.fixture
def sign_in(client: Client, django_user_model: Any) -> Any:
    def sign(role: str) -> Client:
        user = django_user_model.objects.create_user(role)
        user.groups.add(Group.objects.get(name=role))
        client.force_login(user)
        return client

    return sign


@pytest.fixture
def operator(sign_in: Any) -> Client:
    return sign_in(OPERATOR)  # type: ignore[no-any-return]


def cutoff(value: str, minutes: int = 0, reason: str = "why not") -> None:
    update_settings(changes=SettingsChanges(exit_cutoff_percent=Decimal(value)), **by(minutes, reason))


def page(client: Client, **query: Any) -> str:
    response = client.get(reverse("audit"), query)
    assert response.status_code == 200
    return str(response.content.decode())


def version(number: int = 0, kind: str = "settings") -> str:
    """Return the address of a version, 0 the newest."""
    found = find_entries(asked=Asked(kinds=(kind,)), limit=99)[number]
    return reverse("history-version", args=[kind, found.history_id])


def held(client: Client, address: str) -> dict[str, str]:
    found = re.search(r'name="seen" value="([^"]+)"', client.get(address).content.decode())
    assert found is not None
    return {"seen": found[1], "reason": "it was better"}


def test_a_change_is_shown_with_who_why_and_both_values(operator: Client) -> None:
    cutoff("3.5", reason="fewer surprises")
    text = page(operator)
    for words in ("mira", "fewer surprises", "ladder settings", "exit cutoff", "2 %", "3.5 %"):
        assert words in text


def test_the_page_is_empty_in_words(operator: Client) -> None:
    assert "No change matches these filters" in page(operator, who="nobody at all")


def test_filters_are_kept_in_the_address_and_acted_on_by_the_server(operator: Client) -> None:
    cutoff("3")
    create_connection(connection_id="c1", provider="claude", auth_type="oauth", **by(5, "by hand"))
    found = page(operator, kind=["connection", "key"], who="MIRA", act="made", reason="hand", what="claude/c1")
    assert "c1" in found
    assert "exit cutoff" not in found
    query = "kind=key&amp;kind=connection&amp;who=MIRA&amp;what=claude%2Fc1&amp;reason=hand&amp;act=made"
    assert f'{reverse("audit-csv")}?{query}"' in found


def test_days_are_days_of_the_zone_on_the_screens(operator: Client, settings: Any) -> None:
    settings.TIME_ZONE_DISPLAY = "Pacific/Kiritimati"  # 14 hours ahead: noon of the 22nd UTC is the 23rd there
    cutoff("3")
    assert "3 %" in page(operator, **{"from": "2099-08-23", "to": "2099-08-23"})
    assert "3 %" not in page(operator, to="2099-08-22")


@pytest.mark.parametrize(
    "query",
    [
        "kind=nothing&act=eaten&page=x&from=tomorrow&to=2026-13-99",
        "page=999999999999&kind=%00",
        "from=0001-01-01&to=9999-12-31",
        "who=%00&what=%2F&reason=%25_%5C",
        "page=-1&who=%F0%9F%99%88&what=" + "x" * 3000,
    ],
)  # fmt: skip
def test_hand_edited_filters_still_show_a_page(operator: Client, query: str) -> None:
    cutoff("3")
    for name in ("audit", "audit-csv", "audit-json"):
        response = operator.get(f"{reverse(name)}?{query}")
        assert response.status_code == 200
        assert response.getvalue() if response.streaming else response.content


def test_the_queries_and_the_size_of_the_page_do_not_grow_with_the_history(operator: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            assert len(page(operator)) < 200_000
        return len(caught)

    row = create_connection(connection_id="c1", provider="claude", auth_type="oauth", **by())
    cutoff("3")
    few = queries()
    for number in range(120):
        update_connection(connection=row, changes={"label": f"label {number}"}, **by(number, "r" * 10_000))
    assert queries() <= few < 15
    assert "50 a page" in page(operator)
    assert "label 0" in page(operator, page=3)


def test_html_and_long_and_rtl_texts_are_shown_as_text(operator: Client) -> None:
    create_connection(
        connection_id="c1", provider="claude", auth_type="oauth", label="<b>x</b>",
        **by(reason="<script>alert(1)</script> سبب 理由 " + "x" * 9000),
    )  # fmt: skip
    for text in (page(operator), operator.get(version(kind="connection")).content.decode()):
        assert "&lt;script&gt;" in text
        assert "<script>alert" not in text
        assert "<b>x</b>" not in text
        assert "理由" in text


def test_the_csv_holds_every_change_that_matches_one_line_per_field(operator: Client) -> None:
    row = create_connection(connection_id="c1", provider="claude", auth_type="oauth", **by())
    for number in range(60):
        update_connection(connection=row, changes={"label": f"label {number}"}, **by(number))
    response = operator.get(f"{reverse('audit-csv')}?act=changed&kind=connection&page=2")
    lines = list(csv.DictReader(io.StringIO(response.getvalue().decode())))
    assert [line["new"] for line in lines] == [f"label {number}" for number in reversed(range(60))]
    assert lines[0] == {
        "at": "2099-08-22T12:59:00Z", "kind": "connection", "version": lines[0]["version"], "row": str(row.pk),
        "what": "claude/c1", "act": "changed", "did": "changed", "who": "mira", "reason": "why not",
        "field": "label", "old": "label 58", "new": "label 59",
    }  # fmt: skip
    assert response["Content-Disposition"].startswith("attachment")


def test_no_cell_of_the_csv_is_a_formula(operator: Client) -> None:
    for number, bad in enumerate(["=1+1", "@SUM(A1)", "+1", "-1", "\t=1", "＝1"]):
        create_connection(
            connection_id=f"c{number}", provider="claude", auth_type="oauth", label=bad.strip(),
            actor=Actor(name=bad), reason=bad, now=NOW,
        )  # fmt: skip
    body = operator.get(f"{reverse('audit-csv')}?kind=connection").getvalue().decode()
    cells = [cell for line in csv.reader(io.StringIO(body)) for cell in line]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "＝"))]
    assert "'=1+1" in cells


def test_the_json_holds_the_same_changes(operator: Client) -> None:
    cutoff("3")
    cutoff("4", 1)
    document = json.loads(operator.get(f"{reverse('audit-json')}?kind=settings&who=mira").getvalue())
    assert [one["changes"][0]["new"] for one in document["entries"]] == ["4 %", "3 %"]
    assert json.loads(operator.get(f"{reverse('audit-json')}?who=nobody+at+all").getvalue()) == {"entries": []}


def test_one_goes_back_from_the_page_of_a_version_and_says_why(operator: Client) -> None:
    cutoff("3")
    cutoff("9", 1)
    address = version(1)
    text = operator.get(address).content.decode()
    assert "Roll back 1 field" in text
    response = operator.post(address, held(operator, address), follow=True)
    assert response.redirect_chain == [(address, 302)]
    assert "rolled back" in response.content.decode()
    assert "nothing to roll back" in response.content.decode()
    assert LadderSettings.objects.get().exit_cutoff_percent == 3
    written = LadderSettings.history.latest("history_id")
    assert (written.history_actor, written.history_change_reason) == ("operator", "it was better")


def test_without_a_reason_or_with_a_broken_form_nothing_is_rolled_back(operator: Client) -> None:
    cutoff("3")
    cutoff("9", 1)
    address, before = version(1), current_revision()
    good = held(operator, address)
    for bad in ({**good, "reason": " "}, {**good, "seen": good["seen"] + "x"}, {"reason": "x"}):
        assert operator.post(address, bad).status_code == 400
    assert current_revision() == before


def test_a_form_sent_twice_says_that_it_stands_already(operator: Client) -> None:
    cutoff("3")
    cutoff("9", 1)
    address = version(1)
    form = held(operator, address)
    operator.post(address, form)
    before = current_revision()
    assert "stands like this version already" in operator.post(address, form, follow=True).content.decode()
    assert current_revision() == before


def test_a_stale_form_is_refused_with_what_the_other_changed_and_can_be_sent_again(operator: Client) -> None:
    cutoff("3")
    cutoff("9", 1)
    address = version(1)
    form = held(operator, address)
    update_settings(
        changes=SettingsChanges(exit_cutoff_percent=Decimal(7)), actor=Actor(name="jonas"), reason="x", now=NOW
    )
    response = operator.post(address, form)
    text = response.content.decode()
    assert response.status_code == 409
    assert "jonas" in text
    assert "9 %" in text
    assert "7 %" in text
    assert "it was better" in text
    assert LadderSettings.objects.get().exit_cutoff_percent == 7
    again = re.search(r'name="seen" value="([^"]+)"', text)
    assert again is not None
    operator.post(address, {"seen": again[1], "reason": "still"})
    assert LadderSettings.objects.get().exit_cutoff_percent == 3


def test_what_the_service_refuses_is_told_on_the_page(sign_in: Any) -> None:
    curator = sign_in("curator")
    values: Any = {"provider": "claude", "auth_type": None, "billing": "subscription", "overage": "hard-stop"}
    entries.delete_entry(entry=entries.create_entry(values=values, **by()), **by(1))
    address = version(kind="billing")
    form = held(curator, address)
    entries.create_entry(values=values, **by(2))
    response = curator.post(address, form)
    assert response.status_code == 409
    assert "provider-wide entry already" in response.content.decode()


def test_who_may_not_change_the_thing_sees_no_button_and_is_refused(sign_in: Any) -> None:
    auditor = sign_in(AUDITOR)
    cutoff("3")
    cutoff("9", 1)
    address = version(1)
    text = auditor.get(address).content.decode()
    assert "Roll back 1 field" not in text
    assert "needs the role operator or administrator" in text
    response = auditor.post(address, {"seen": "x", "reason": "x"})
    assert response.status_code == 403
    assert "operator or administrator" in response.content.decode()
    assert LadderSettings.objects.get().exit_cutoff_percent == 9


@pytest.mark.parametrize("address", ["settings/99999999", "nothing/1", "settings/9999999999999999999999"])
def test_a_version_that_is_not_there_is_404(operator: Client, address: str) -> None:
    assert operator.get(f"/audit/{address}").status_code == 404


def test_what_one_act_did_to_many_is_one_line_that_leads_to_each_of_them(operator: Client) -> None:
    for number in range(5):
        create_connection(connection_id=f"c{number}", provider="claude", auth_type="oauth", **by(5, "imported"))
    create_connection(connection_id="alone", provider="claude", auth_type="oauth", **by(6))
    text = page(operator, kind="connection")
    assert "6 changes in 2 acts" in text
    assert set(re.findall(r"claude/(c\d)</span>", text.replace("<wbr>", ""))) == {"c4"}
    assert "and 4 more" in text
    link = re.search(r'href="([?][^"]*at=[^"]*)">Show each', text)
    assert link is not None
    each = operator.get(reverse("audit") + unescape(link[1])).content.decode().replace("<wbr>", "")
    assert set(re.findall(r"claude/(c\d)</span>", each)) == {"c0", "c1", "c2", "c3", "c4"}
    assert "alone" not in each.split("<tbody")[1]


def test_two_changes_of_one_instant_stay_two_lines(operator: Client) -> None:
    for number in range(2):
        create_connection(connection_id=f"c{number}", provider="claude", auth_type="oauth", **by(5))
    text = page(operator, kind="connection")
    assert set(re.findall(r"claude/(c\d)</span>", text.replace("<wbr>", ""))) == {"c0", "c1"}
    assert "Show each" not in text


@pytest.mark.parametrize("at", ["yesterday", "2099-08-22", "2099-08-22T12:00:00", "2099-08-22T12:00:00+02:00", "%00"])
def test_an_instant_that_is_none_asks_for_nothing(operator: Client, at: str) -> None:
    cutoff("3")
    assert "One act" not in page(operator, at=at)
    assert "3 %" in page(operator, at=at)


def test_the_page_says_what_the_retention_period_removed_and_a_removed_version_is_not_offered(sign_in: Any) -> None:
    auditor = sign_in(AUDITOR)
    LadderSettings.history.all().delete()
    for minutes in range(4):
        changes = SettingsChanges(exit_cutoff_percent=Decimal(minutes + 3))
        update_settings(changes=changes, **by(minutes))
    oldest = LadderSettings.history.earliest("history_id").history_id
    address = reverse("history-version", args=["settings", oldest])
    assert auditor.get(address).status_code == 200
    assert 'id="pruned"' not in auditor.get("/audit").content.decode()
    prune_versions(before=NOW + timedelta(minutes=2), run=Run(now=clock.now()))
    html = auditor.get("/audit").content.decode()
    assert "Older entries were removed by the retention period on" in html
    assert auditor.get(address).status_code == 404
