"""Lists and forms of the catalogue's rows, without a browser (SPEC 5, 4)."""

import re
from datetime import date, timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from billing_catalog.models import BillingEntry, FreeProvider, PriceSource, ProviderAlias, TierOverride
from billing_catalog.services.entries import update_entry
from billing_catalog.services.kinds import EDITED
from ladder.models import Connection
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.views.filling import form_in
from tests.factories import (
    BillingEntryFactory,
    ConnectionFactory,
    FreeProviderFactory,
    ModelPriceFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    TierOverrideFactory,
)

pytestmark = pytest.mark.django_db

LISTS = ["/catalogue", "/catalogue/prices", "/catalogue/tier-overrides", "/catalogue/free-providers",
         "/catalogue/aliases", "/catalogue/price-sources", "/catalogue/files", "/catalogue/uncurated"]  # fmt: skip
FACTORIES = {
    "billing": BillingEntryFactory,
    "tier-override": TierOverrideFactory,
    "free-provider": FreeProviderFactory,
    "alias": ProviderAliasFactory,
    "price-source": PriceSourceFactory,
}
JONAS = Actor(name="jonas")


def text_in(response: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", "", response.content.decode())).split())


def entry_url(row: BillingEntry, more: str = "") -> str:
    return f"/catalogue/billing/{row.pk}{more}"


def messages_of(client: Client, response: Any) -> str:
    return text_in(client.get(response["Location"]))


def change_by_jonas(row: BillingEntry, **changes: Any) -> None:
    update_entry(entry=row, changes=changes, actor=JONAS, reason="jonas knows", now=clock.now())  # type: ignore[arg-type]


@pytest.mark.parametrize("role", ["viewer", "operator", "curator", "auditor", "administrator"])
@pytest.mark.parametrize("path", LISTS)
def test_every_role_may_look(as_role: Any, role: str, path: str) -> None:
    """SPEC 5: Roles."""
    assert as_role(role).get(path).status_code == 200


@pytest.mark.parametrize("path", LISTS)
def test_a_stranger_is_led_to_the_login_page(client: Client, path: str) -> None:
    assert client.get(path)["Location"] == f"/login?next={path}"


@pytest.mark.parametrize("key", EDITED)
@pytest.mark.parametrize("role", ["viewer", "operator", "auditor"])
def test_who_may_not_edit_sees_no_button_and_is_refused(as_role: Any, role: str, key: str) -> None:
    """SPEC 5: Roles."""
    reader, row = as_role(role), FACTORIES[key]()
    page = reader.get(f"/catalogue/{key}/{row.pk}")
    assert page.status_code == 200
    assert b'<button class="btn-main"' not in page.content
    assert b"/delete" not in page.content
    for path in (f"/catalogue/{key}/{row.pk}", f"/catalogue/{key}/{row.pk}/delete", f"/catalogue/{key}/new"):
        answer = reader.post(path, {})
        assert answer.status_code == 403
        assert "curator or administrator" in text_in(answer)


def test_a_list_marks_what_may_bill_and_what_is_unknown(curator: Client) -> None:
    """B5, P4: unknown means metered, and a plan past its allowance may bill."""
    BillingEntryFactory(provider="calm", overage="hard-stop", billing="subscription")
    BillingEntryFactory(provider="keen", overage="meters-to-paid", billing="subscription")
    BillingEntryFactory(provider="dark", overage="unknown", billing="unknown")
    lines = re.findall(r'<tr role="row"><th.*?</tr>', curator.get("/catalogue").content.decode(), re.DOTALL)
    rows = {name: next(line for line in lines if f">{name} " in line) for name in ("calm", "keen", "dark")}
    assert "may bill you" in rows["keen"]
    assert "unknown means metered" in rows["dark"]
    assert "may bill you" not in rows["calm"] + rows["dark"]
    assert "means metered" not in rows["calm"] + rows["keen"]


def test_a_list_counts_the_connections_that_each_entry_decides(curator: Client) -> None:
    """B2, B3: the auth type's entry before the provider-wide one; a connection without auth type has only that."""
    BillingEntryFactory(provider="claude", auth_type="oauth")
    BillingEntryFactory(provider="claude", auth_type=None)
    for number, auth_type in enumerate(["oauth", "oauth", "apikey", None]):
        ConnectionFactory(connection_id=f"c{number}", provider="claude", auth_type=auth_type)
    ConnectionFactory(noauth=True, provider="claude")
    counts = re.findall(r'data-label="connections">(\d+)<', curator.get("/catalogue").content.decode())
    assert counts == ["2", "2"]


def test_only_web_addresses_are_linked(curator: Client) -> None:
    BillingEntryFactory(provider="bad", source_url="javascript:alert(1)")
    BillingEntryFactory(provider="good", source_url="https://example.com/terms?a=1&b=2")
    html = curator.get("/catalogue").content.decode()
    assert "javascript:" not in html
    assert 'href="https://example.com/terms?a=1&amp;b=2" rel="noopener noreferrer external"' in html


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b", "c"]),
        ("?q=B", ["b"]),
        ("?provider=c", ["c"]),
        ("?billing=metered", ["b"]),
        ("?billing=metered&billing=subscription", ["a", "b"]),
        ("?overage=unknown", ["c"]),
        ("?review=never", ["c"]),
        ("?review=old", ["a"]),
        ("?review=fresh&review=never", ["b", "c"]),
        ("?origin=facts", ["a"]),
        ("?sort=review", ["c", "a", "b"]),
        ("?sort=nonsense&billing=nonsense&page=999&page=x", ["a", "b", "c"]),
        ("?page=-1", ["a", "b", "c"]),
        ("?q=%00", ["a", "b", "c"]),
        ("?q=zzz", []),
    ],
)
def test_a_list_is_filtered_and_ordered_by_its_address(curator: Client, query: str, found: list[str]) -> None:
    today = clock.now().date()
    BillingEntryFactory(provider="a", origin="facts", reviewed_on=today - timedelta(days=100))
    BillingEntryFactory(provider="b", billing="metered", overage="meters-to-paid", reviewed_on=today)
    BillingEntryFactory(provider="c", billing="unknown", overage="unknown")
    html = curator.get(f"/catalogue{query}").content.decode()
    assert re.findall(r">(\w) \+ oauth<", html) == found


def test_a_list_costs_the_same_queries_for_many_rows_as_for_few(curator: Client) -> None:
    BillingEntryFactory.create_batch(2)
    curator.get("/catalogue")
    with CaptureQueriesContext(connection) as few:
        curator.get("/catalogue")
    BillingEntryFactory.create_batch(120)
    ConnectionFactory.create_batch(200)
    with CaptureQueriesContext(connection) as many:
        answer = curator.get("/catalogue?page=2")
    assert len(many) == len(few) < 15
    assert len(answer.content) < 200_000
    assert "51 to 100 of 122" in text_in(answer)


@pytest.mark.parametrize("key", EDITED)
def test_a_row_page_costs_the_same_queries_for_a_long_history_as_for_a_short_one(curator: Client, key: str) -> None:
    row = FACTORIES[key]()
    curator.get(f"/catalogue/{key}/{row.pk}")
    row.save()
    with CaptureQueriesContext(connection) as few:
        curator.get(f"/catalogue/{key}/{row.pk}")
    for _ in range(12):
        row.save()
    with CaptureQueriesContext(connection) as many:
        curator.get(f"/catalogue/{key}/{row.pk}")
    assert len(many) == len(few) < 15


def test_an_entry_is_curated_and_the_history_says_who_and_why(curator: Client) -> None:
    form = form_in(curator.get("/catalogue/billing/new?provider=claude&auth_type=oauth"))
    assert (form["provider"], form["auth_type"]) == ("claude", "oauth")
    before = current_revision()
    answer = curator.post(
        "/catalogue/billing/new",
        form
        | {"billing": "subscription", "overage": "hard-stop", "own_reason": "the terms", "reason": "we pay for it"},
    )
    row = BillingEntry.objects.get()
    assert answer["Location"] == entry_url(row)
    assert (row.provider, row.billing, row.reason) == ("claude", "subscription", "the terms")
    past = row.history.get()
    assert (past.history_actor, past.history_change_reason) == ("mira", "we pay for it")
    assert current_revision() == before + 1
    assert "Saved billing entry" in messages_of(curator, answer)


def test_every_bad_field_is_named_beside_itself_at_once(curator: Client) -> None:
    form = form_in(curator.get("/catalogue/billing/new"))
    bad = {"provider": "no blanks!", "auth_type": "no blanks", "billing": "gratis", "overage": "", "reason": "",
           "source_url": "ftp:/x", "reviewed_on": "32.13.2026", "reviewed_by": "x" * 101}  # fmt: skip
    answer = curator.post("/catalogue/billing/new", form | bad)
    assert answer.status_code == 400
    assert set(answer.context["form"].errors) == set(bad)
    assert BillingEntry.objects.count() == 0
    html = answer.content.decode()
    assert html.count('class="field wrong"') == len(bad) - 1
    assert 'value="no blanks!"' in html


def test_a_second_entry_for_the_same_is_refused_with_its_fields(curator: Client) -> None:
    BillingEntryFactory(provider="claude", auth_type="oauth", overage="hard-stop")
    form = form_in(curator.get("/catalogue/billing/new"))
    sent = {"provider": "claude", "auth_type": "oauth", "billing": "metered", "overage": "unknown", "reason": "r"}
    answer = curator.post("/catalogue/billing/new", form | sent)
    assert set(answer.context["form"].errors) == {"provider", "auth_type"}
    assert BillingEntry.objects.count() == 1


def test_a_new_row_sent_twice_is_made_once(curator: Client) -> None:
    form = form_in(curator.get("/catalogue/billing/new"))
    sent = form | {"provider": " Claude ", "billing": "metered", "overage": "unknown", "reason": "r"}
    first, second = curator.post("/catalogue/billing/new", sent), curator.post("/catalogue/billing/new", sent)
    assert first["Location"] == second["Location"]
    assert BillingEntry.objects.count() == 1
    assert BillingEntry.history.count() == 1
    assert "Saved already" in messages_of(curator, second)


def test_an_edit_saves_what_was_changed_and_nothing_else(curator: Client) -> None:
    row = BillingEntryFactory(reason="two\r\nlines  ", origin="facts")
    form = form_in(curator.get(entry_url(row)))
    answer = curator.post(entry_url(row), form | {"overage": "unknown", "reason": "asked them"})
    row.refresh_from_db()
    assert answer.status_code == 302
    assert (row.overage, row.reason, row.origin) == ("unknown", "two\r\nlines  ", "operator")


def test_an_edit_sent_again_from_the_back_button_changes_nothing(curator: Client) -> None:
    row = BillingEntryFactory()
    sent = form_in(curator.get(entry_url(row))) | {"overage": "unknown", "reason": "asked them"}
    curator.post(entry_url(row), sent)
    versions, before = row.history.count(), current_revision()
    answer = curator.post(entry_url(row), sent)
    assert answer.status_code == 302
    assert (row.history.count(), current_revision()) == (versions, before)
    assert "Saved already" in messages_of(curator, answer)


def test_a_stale_form_is_refused_with_what_the_other_person_changed(curator: Client) -> None:
    """SPEC 5, 3: two people editing at once, the second is told what changed."""
    row = BillingEntryFactory(overage="hard-stop", billing="subscription", reviewed_by="")
    form = form_in(curator.get(entry_url(row)))
    change_by_jonas(row, overage="unknown", reviewed_by="jonas")
    answer = curator.post(entry_url(row), form | {"overage": "meters-to-paid", "reason": "mine"})
    assert answer.status_code == 409
    row.refresh_from_db()
    assert row.overage == "unknown"
    words = text_in(answer)
    assert "jonas changed this billing entry" in words
    assert "jonas knows" in words
    again = form_in(answer)
    assert (again["overage"], again["reviewed_by"], again["reason"]) == ("meters-to-paid", "jonas", "mine")


@pytest.mark.parametrize(("keep", "overage"), [("mine", "meters-to-paid"), ("theirs", "unknown")])
def test_after_a_conflict_each_field_is_chosen(curator: Client, keep: str, overage: str) -> None:
    row = BillingEntryFactory(overage="hard-stop", reviewed_by="")
    form = form_in(curator.get(entry_url(row)))
    change_by_jonas(row, overage="unknown", reviewed_by="jonas")
    refused = curator.post(entry_url(row), form | {"overage": "meters-to-paid", "source_url": "https://x.example",
                                                   "reason": "mine"})  # fmt: skip
    answer = curator.post(entry_url(row), form_in(refused) | {"keep_overage": keep})
    assert answer.status_code == 302
    row.refresh_from_db()
    assert (row.overage, row.reviewed_by, row.source_url) == (overage, "jonas", "https://x.example")


def test_a_form_whose_seen_values_were_touched_is_refused(curator: Client) -> None:
    row = BillingEntryFactory()
    form = form_in(curator.get(entry_url(row))) | {"seen": "forged", "overage": "unknown", "reason": "r"}
    answer = curator.post(entry_url(row), form)
    assert "not whole any more" in text_in(answer)
    row.refresh_from_db()
    assert row.overage == "hard-stop"


def test_a_form_of_a_row_that_is_gone_leads_to_the_list(curator: Client) -> None:
    row = BillingEntryFactory()
    form = form_in(curator.get(entry_url(row)))
    url = entry_url(row)
    row.delete()
    answer = curator.post(url, form | {"overage": "unknown", "reason": "r"})
    assert answer["Location"] == "/catalogue"
    assert "not there any more" in messages_of(curator, answer)


def test_reviewed_today_sets_the_day_and_the_name_and_nothing_else(curator: Client) -> None:
    row = BillingEntryFactory(reviewed_on=date(2020, 1, 1), reviewed_by="long ago")
    form = form_in(curator.get(entry_url(row)), marks=lambda given: "reviewed" in (given.get("action") or ""))
    answer = curator.post(entry_url(row, "/reviewed"), form)
    assert answer.status_code == 302
    row.refresh_from_db()
    assert (row.reviewed_on, row.reviewed_by) == (clock.now().date(), "mira")
    assert row.history.first().history_change_reason == "Reviewed: still true."


def test_reviewed_today_asks_why(curator: Client) -> None:
    row = BillingEntryFactory()
    form = form_in(curator.get(entry_url(row)), marks=lambda given: "reviewed" in (given.get("action") or ""))
    answer = curator.post(entry_url(row, "/reviewed"), form | {"reason": " "})
    assert "Say why" in text_in(answer)
    row.refresh_from_db()
    assert row.reviewed_on is None


def test_a_review_of_what_somebody_changed_meanwhile_is_refused(curator: Client) -> None:
    row = BillingEntryFactory(overage="hard-stop")
    form = form_in(curator.get(entry_url(row)), marks=lambda given: "reviewed" in (given.get("action") or ""))
    change_by_jonas(row, overage="unknown")
    answer = curator.post(entry_url(row, "/reviewed"), form)
    assert answer.status_code == 409
    row.refresh_from_db()
    assert row.reviewed_on is None


@pytest.mark.parametrize("key", EDITED)
def test_a_row_is_deleted_once_with_a_reason_and_can_be_brought_back(curator: Client, key: str) -> None:
    row = FACTORIES[key]()
    url = f"/catalogue/{key}/{row.pk}/delete"
    form = form_in(curator.get(url))
    assert "Say why" in text_in(curator.post(url, form | {"reason": ""}))
    assert type(row).objects.count() == 1
    answer = curator.post(url, form | {"reason": "not ours"})
    assert type(row).objects.count() == 0
    assert type(row).history.first().history_change_reason == "not ours"
    page = curator.get(answer["Location"])
    assert "Deleted" in text_in(page)
    assert curator.post(url, form | {"reason": "again"}).status_code == 302
    assert type(row).history.count() == 2


def test_what_was_changed_since_the_question_is_not_deleted(curator: Client) -> None:
    row = BillingEntryFactory(overage="hard-stop")
    form = form_in(curator.get(entry_url(row, "/delete")))
    change_by_jonas(row, overage="unknown")
    answer = curator.post(entry_url(row, "/delete"), form | {"reason": "r"})
    assert answer.status_code == 409
    assert BillingEntry.objects.count() == 1
    assert curator.post(entry_url(row, "/delete"), form_in(answer) | {"reason": "r"}).status_code == 302
    assert BillingEntry.objects.count() == 0


def test_after_a_change_a_link_leads_back_to_the_version_before(curator: Client) -> None:
    row = BillingEntryFactory()
    first = row.history.get().history_id
    sent = form_in(curator.get(entry_url(row))) | {"overage": "unknown", "reason": "r"}
    page = curator.get(curator.post(entry_url(row), sent)["Location"]).content.decode()
    assert f'<a href="{reverse("history-version", args=["billing", first])}">Undo</a>' in page


def test_what_was_just_made_is_undone_by_deleting_it(curator: Client) -> None:
    form = form_in(curator.get("/catalogue/free-provider/new")) | {"provider": "gift", "reason": "r"}
    page = curator.get(curator.post("/catalogue/free-provider/new", form)["Location"]).content.decode()
    row = FreeProvider.objects.get()
    assert f'<a href="/catalogue/free-provider/{row.pk}/delete">Undo</a>' in page


def test_an_alias_says_what_it_rewrites_before_it_does(curator: Client) -> None:
    """SPEC 1: adding an alias rewrites the rows that used it."""
    ConnectionFactory(connection_id="c1", provider="anthropic")
    ModelPriceFactory(provider="anthropic", model="opus")
    ModelPriceFactory(provider="anthropic", model="haiku")
    ModelPriceFactory(provider="claude", model="opus")
    sent = form_in(curator.get("/catalogue/alias/new")) | {"alias": "Anthropic", "provider": "claude", "reason": "r"}
    shown = curator.post("/catalogue/alias/new", sent)
    assert ProviderAlias.objects.count() == 0
    words = text_in(shown)
    assert "connections: 1 moves" in words
    assert "model prices: 1 moves, 1 is removed" in words
    answer = curator.post("/catalogue/alias/new", form_in(shown))
    assert answer.status_code == 302
    assert Connection.objects.get().provider == "claude"


def test_an_alias_whose_rewriting_has_grown_is_shown_again(curator: Client) -> None:
    ConnectionFactory(connection_id="c1", provider="anthropic")
    sent = form_in(curator.get("/catalogue/alias/new")) | {"alias": "anthropic", "provider": "claude", "reason": "r"}
    shown = curator.post("/catalogue/alias/new", sent)
    ConnectionFactory(connection_id="c2", provider="anthropic")
    again = curator.post("/catalogue/alias/new", form_in(shown))
    assert "connections: 2 move" in text_in(again)
    assert ProviderAlias.objects.count() == 0


def test_an_alias_that_rewrites_nothing_is_saved_at_once(curator: Client) -> None:
    sent = form_in(curator.get("/catalogue/alias/new")) | {"alias": "anthropic", "provider": "claude", "reason": "r"}
    assert curator.post("/catalogue/alias/new", sent).status_code == 302
    assert ProviderAlias.objects.get().provider == "claude"


@pytest.mark.parametrize(
    ("sent", "bad"),
    [
        ({"alias": "", "provider": ""}, {"alias", "provider"}),
        ({"alias": "a b", "provider": "!"}, {"alias", "provider"}),
        ({"alias": "claude", "provider": "claude"}, {"alias", "provider"}),
        ({"alias": "old", "provider": "known"}, {"provider"}),
    ],
)
def test_an_alias_that_cannot_be_is_refused_with_its_fields(curator: Client, sent: Any, bad: set[str]) -> None:
    ProviderAliasFactory(alias="known", provider="other")
    form = form_in(curator.get("/catalogue/alias/new")) | {"reason": "r"}
    answer = curator.post("/catalogue/alias/new", form | sent)
    assert set(answer.context["form"].errors) == bad
    assert ProviderAlias.objects.count() == 1


def test_the_smaller_rows_are_added_and_edited(curator: Client) -> None:
    new = form_in(curator.get("/catalogue/tier-override/new"))
    curator.post("/catalogue/tier-override/new", new | {"provider": "x", "model_pattern": " *:free ", "tier": "free",
                                                        "reason": "r"})  # fmt: skip
    override = TierOverride.objects.get()
    assert (override.model_pattern, override.tier) == ("*:free", "free")
    form = form_in(curator.get(f"/catalogue/tier-override/{override.pk}"))
    curator.post(f"/catalogue/tier-override/{override.pk}", form | {"model_pattern": "", "reason": "all of it"})
    override.refresh_from_db()
    assert override.model_pattern is None
    new = form_in(curator.get("/catalogue/price-source/new"))
    curator.post("/catalogue/price-source/new", new | {"provider": "x", "price_list": "openai", "sells_seats": "true",
                                                       "reason": "r"})  # fmt: skip
    source = PriceSource.objects.get()
    assert source.sells_seats
    form = form_in(curator.get(f"/catalogue/price-source/{source.pk}"))
    curator.post(f"/catalogue/price-source/{source.pk}", form | {"sells_seats": "false", "reason": "r"})
    source.refresh_from_db()
    assert not source.sells_seats


NASTY = '<script>alert("x")</script> עברית 中文 ' + "w" * 10_000


def test_markup_and_endless_words_are_text_everywhere(curator: Client) -> None:
    row = BillingEntryFactory(reason=NASTY, reviewed_by="<b>me</b>")
    sent = form_in(curator.get(entry_url(row))) | {"overage": "unknown", "reason": NASTY[:10_000]}
    answer = curator.post(entry_url(row), sent)
    html = curator.get(answer["Location"]).content.decode()
    assert "<script>alert" not in html
    assert "<b>me" not in html
    assert "&lt;script&gt;" in html
    row.refresh_from_db()
    assert row.reason == NASTY


def test_a_reason_longer_than_the_history_keeps_is_refused(curator: Client) -> None:
    row = BillingEntryFactory()
    sent = form_in(curator.get(entry_url(row))) | {"overage": "unknown", "reason": "w" * 10_001}
    assert "reason" in curator.post(entry_url(row), sent).context["form"].errors


@pytest.mark.parametrize(
    "path",
    [
        "/catalogue/nonsense/1",
        "/catalogue/price/1",
        "/catalogue/nonsense/new",
        "/catalogue/export/billing.xml",
        "/catalogue/export/nonsense.csv",
        "/catalogue/export/catalogue.csv",
    ],
)
def test_an_address_that_is_none_is_not_found(curator: Client, path: str) -> None:
    assert curator.get(path).status_code == 404


@pytest.mark.parametrize("path", ["/catalogue/billing/99999999999999999999", "/catalogue/billing/0/delete"])
def test_a_row_that_never_was_leads_to_the_list(curator: Client, path: str) -> None:
    assert curator.get(path)["Location"] == "/catalogue"


def test_zeros_in_a_field_are_refused_and_in_an_address_left_out(curator: Client) -> None:
    form = form_in(curator.get("/catalogue/billing/new?provider=a%00b"))
    assert form["provider"] == "ab"
    answer = curator.post("/catalogue/billing/new", form | {"provider": "a\x00b", "own_reason": "\x00", "reason": "r"})
    assert {"provider", "own_reason"} <= set(answer.context["form"].errors)


def test_an_entry_that_holds_something_bad_is_not_marked_as_reviewed_but_the_page_says_why(curator: Client) -> None:
    row = BillingEntryFactory(source_url="nowhere")
    form = form_in(curator.get(entry_url(row)), marks=lambda given: "reviewed" in (given.get("action") or ""))
    answer = curator.post(entry_url(row, "/reviewed"), form)
    assert "Not saved: Enter a valid URL." in messages_of(curator, answer)
    row.refresh_from_db()
    assert row.reviewed_on is None


def test_a_reviewer_with_a_very_long_name_is_noted_by_what_fits(as_role: Any) -> None:
    reviewer, row = as_role("curator", "n" * 150), BillingEntryFactory()
    form = form_in(reviewer.get(entry_url(row)), marks=lambda given: "reviewed" in (given.get("action") or ""))
    assert reviewer.post(entry_url(row, "/reviewed"), form).status_code == 302
    row.refresh_from_db()
    assert row.reviewed_by == "n" * 100
