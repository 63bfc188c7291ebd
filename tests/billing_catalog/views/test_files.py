"""Import and export of the catalogue, without a browser (SPEC 5, 4)."""

import json
import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_catalog.core.sheets import csv_text, json_text, read_csv, read_json
from billing_catalog.models import BillingEntry, ModelPrice, ProviderAlias, TierOverride
from billing_catalog.services.imports import preview_import
from billing_catalog.services.kinds import BILLING, FILES, PRICES, texts_of
from ladder.models import Connection
from omniroute_admin.common import clock
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import overlapping_prices
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
from tests.ladder.core.strategies import PROPERTY

pytestmark = pytest.mark.django_db
URL = "/catalogue/files"
HEAD = "provider,auth_type,billing,overage,reason\n"


def text_in(response: Any) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", response.content.decode())).split())


def upload(client: Client, content: str | bytes, *, name: str = "x.csv", kind: str = "billing") -> Any:
    raw = content.encode() if isinstance(content, str) else content
    return client.post(URL, {"file": SimpleUploadedFile(name, raw), "kind": kind})


def confirming(response: Any) -> dict[str, str]:
    return form_in(response, marks=lambda given: given.get("class") == "save")


def counts(response: Any) -> dict[str, int]:
    return {what: int(words.split()[0]) for what, words in response.context["counts"]}


def fill() -> None:
    BillingEntryFactory(provider="claude", reason="=1+1", source_url="https://x.example")
    BillingEntryFactory(provider="claude", auth_type=None, reason='a "quoted"\nline, 中文 עברית', billing="unknown")
    ProviderAliasFactory(alias="anthropic", provider="claude")
    TierOverrideFactory(provider="x", model_pattern="-*")
    TierOverrideFactory(provider="x", model_pattern=None)
    FreeProviderFactory(provider="gift", reason="@SUM")
    PriceSourceFactory(provider="seat", sells_seats=True)
    ModelPriceFactory(provider="x", model="+model", capabilities=["a, b", "vision"], rank=3)
    ModelPriceFactory(provider="x", model="none", input_usd_per_million=None, source="genai-prices")


def test_what_is_exported_as_json_imports_without_a_change(curator: Client) -> None:
    fill()
    content = curator.get("/catalogue/export/catalogue.json").content
    shown = upload(curator, content, name="all.json")
    assert counts(shown) == {"new": 0, "changed": 0, "unchanged": 9, "refused": 0}
    assert "nothing to import" in text_in(shown)


@pytest.mark.parametrize("kind", FILES)
def test_what_is_exported_as_csv_imports_without_a_change(curator: Client, kind: str) -> None:
    fill()
    answer = curator.get(f"/catalogue/export/{kind}.csv")
    assert answer["Content-Disposition"].startswith(f'attachment; filename="{kind}-')
    shown = upload(curator, b"\xef\xbb\xbf" + answer.content, kind=kind)
    found = counts(shown)
    assert found["unchanged"] > 0
    assert (found["new"], found["changed"], found["refused"]) == (0, 0, 0)


def test_an_export_fills_an_empty_catalogue_just_as_it_was(curator: Client) -> None:
    fill()
    content = curator.get("/catalogue/export/catalogue.json").content
    for kind in FILES.values():
        kind.model._default_manager.all().delete()
    shown = upload(curator, content, name="all.json")
    assert counts(shown) == {"new": 9, "changed": 0, "unchanged": 0, "refused": 0}
    assert curator.post(URL, confirming(shown) | {"reason": "moved house"}).status_code == 302
    assert json.loads(curator.get("/catalogue/export/catalogue.json").content) == json.loads(content)


NASTY = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=40) | st.sampled_from(
    ["=1+1", "+1", "-1", "@x", "'", "''=", '"', "a,b", "x\r\ny", "\n", "中文", "עברית", " edge ", "\ufeff"]
)


@settings(PROPERTY, max_examples=30, suppress_health_check=list(HealthCheck))
@given(reasons=st.lists(st.tuples(NASTY, NASTY), max_size=4))
def test_whatever_stands_in_the_catalogue_reads_back_without_a_change(reasons: list[tuple[str, str]]) -> None:
    with transaction.atomic():
        for number, (reason, name) in enumerate(reasons):
            BillingEntryFactory(provider=f"p{number}", reason=reason, reviewed_by=name)
            ModelPriceFactory(
                provider="p", model=f"{number}{name}".strip(), capabilities=sorted({name.strip().lower() or "x"})
            )
        for kind in (BILLING, PRICES):
            rows = [texts_of(kind, row) for row in kind.model._default_manager.all()]
            as_csv = [read_csv(text=csv_text(columns=kind.sheet, rows=rows), kind=kind.file, columns=kind.sheet)]
            as_json = read_json(text=json_text(sheets={kind.file: rows}, columns={kind.file: kind.sheet}),
                                columns={kind.file: kind.sheet})  # fmt: skip
            for sheets in (as_csv, as_json):
                report = preview_import(sheets=sheets, now=clock.now())
                assert [one.what for one in report.outcomes] == ["unchanged"] * len(rows), report
        transaction.set_rollback(True)


def test_a_dry_run_tells_every_difference_field_by_field_and_writes_nothing(curator: Client) -> None:
    BillingEntryFactory(provider="same", overage="hard-stop")
    BillingEntryFactory(provider="other", overage="hard-stop", reason="old words")
    before, versions = current_revision(), BillingEntry.history.count()
    shown = upload(curator, HEAD + "same,oauth,subscription,hard-stop,\nOTHER,oauth,subscription,unknown,new words\n"
                   "fresh,,metered,unknown,\n")  # fmt: skip
    assert counts(shown) == {"new": 1, "changed": 1, "unchanged": 1, "refused": 0}
    words = text_in(shown)
    assert "Overage hard-stop → unknown" in words
    assert "Based on old words → new words" in words
    assert (current_revision(), BillingEntry.history.count(), BillingEntry.objects.count()) == (before, versions, 2)


def test_a_confirmed_import_writes_just_that_once_with_its_reason(curator: Client) -> None:
    BillingEntryFactory(provider="other", overage="hard-stop")
    before = current_revision()
    shown = upload(curator, HEAD + "other,oauth,subscription,unknown,\nfresh,,metered,unknown,why\n")
    form = confirming(shown) | {"reason": "spring cleaning"}
    answer = curator.post(URL, form)
    assert "Imported: 1 new and 1 changed." in text_in(curator.get(answer["Location"]))
    assert current_revision() == before + 1
    rows = {row.provider: row for row in BillingEntry.objects.all()}
    assert (rows["other"].overage, rows["fresh"].reason, rows["fresh"].auth_type) == ("unknown", "why", None)
    past = [row.history.first() for row in rows.values()]
    assert {(one.history_change_reason, one.history_actor) for one in past} == {("spring cleaning", "mira")}
    again = curator.post(URL, form)
    assert "Imported already" in text_in(curator.get(again["Location"]))
    assert current_revision() == before + 1


def test_a_column_left_out_keeps_what_is_stored(curator: Client) -> None:
    BillingEntryFactory(provider="other", overage="hard-stop", reason="stays")
    shown = upload(curator, "provider,auth_type,overage\nother,oauth,unknown\n")
    curator.post(URL, confirming(shown) | {"reason": "r"})
    row = BillingEntry.objects.get()
    assert (row.overage, row.reason) == ("unknown", "stays")


def test_an_import_whose_difference_changed_is_shown_again_and_not_written(curator: Client) -> None:
    row = BillingEntryFactory(provider="other", overage="hard-stop")
    shown = upload(curator, HEAD + "other,oauth,subscription,unknown,\n")
    BillingEntry.objects.filter(pk=row.pk).update(overage="meters-to-paid")
    answer = curator.post(URL, confirming(shown) | {"reason": "r"})
    assert answer.status_code == 409
    assert "The catalogue changed since you saw the difference" in text_in(answer)
    assert "meters-to-paid → unknown" in text_in(answer)
    row.refresh_from_db()
    assert row.overage == "meters-to-paid"
    assert curator.post(URL, confirming(answer) | {"reason": "r"}).status_code == 302
    row.refresh_from_db()
    assert row.overage == "unknown"


def test_a_confirmation_that_was_touched_is_refused(curator: Client) -> None:
    shown = upload(curator, HEAD + "fresh,,metered,unknown,\n")
    form = confirming(shown)
    answer = curator.post(URL, {"packed": form["packed"][:-3] + "xyz", "reason": "r"})
    assert "Choose the file again" in text_in(answer)
    assert BillingEntry.objects.count() == 0


def test_an_import_asks_why(curator: Client) -> None:
    shown = upload(curator, HEAD + "fresh,,metered,unknown,\n")
    answer = curator.post(URL, confirming(shown) | {"reason": ""})
    assert "Say why" in text_in(answer)
    assert BillingEntry.objects.count() == 0
    assert curator.post(URL, confirming(answer) | {"reason": "r"}).status_code == 302


def test_every_bad_row_is_told_by_line_and_field_and_nothing_is_written(curator: Client) -> None:
    shown = upload(
        curator,
        "provider,auth_type,billing,overage,source_url,reviewed_on\n"
        "good,,metered,unknown,,\n"
        "b d,a b,gratis,sometimes,nowhere,32.1.2026\n"
        ",,metered,unknown,,\n"
        "good,,metered,unknown,,\n"
        "x,,metered\n",
    )
    refused = {one.place: {name for name, _ in one.problems} for one in shown.context["refused"]}
    assert refused == {
        "line 3": {"provider", "auth_type", "billing", "overage", "source_url", "reviewed_on"},
        "line 4": {"provider"},
        "line 5": {""},
        "line 6": {""},
    }
    assert "The same row stands at line 2" in text_in(shown)
    assert b'name="packed"' not in shown.content
    assert BillingEntry.objects.count() == 0


def test_a_rule_of_the_service_refuses_a_row_with_its_words(curator: Client) -> None:
    """SPEC 1: an alias is one step."""
    ProviderAliasFactory(alias="old", provider="known")
    shown = upload(curator, "alias,provider\nnew,old\nfine,known\n", kind="aliases")
    assert counts(shown)["refused"] == 1
    assert "old is itself an alias" in text_in(shown)
    assert ProviderAlias.objects.count() == 1


def test_an_alias_in_a_file_rewrites_its_rows_and_resolves_the_rows_after_it(curator: Client) -> None:
    """SPEC 1."""
    ConnectionFactory(connection_id="c1", provider="anthropic")
    document = {
        "tier_overrides": [{"provider": "Anthropic", "model_pattern": None, "tier": "cheap"}],
        "aliases": [{"alias": "anthropic", "provider": "claude"}],
    }
    shown = upload(curator, json.dumps(document), name="x.JSON")
    curator.post(URL, confirming(shown) | {"reason": "r"})
    assert TierOverride.objects.get().provider == "claude"
    assert Connection.objects.get().provider == "claude"


def test_imported_prices_act_from_now_and_the_old_ones_stay_in_the_books(curator: Client) -> None:
    """SPEC 3: append-only."""
    old = ModelPriceFactory(provider="x", model="m", source="genai-prices")
    shown = upload(curator, 'provider,model,input_usd_per_million,capabilities\nx,m,2.5,"vision, reasoning"\nx,n,,\n',
                   kind="prices")  # fmt: skip
    assert counts(shown) == {"new": 1, "changed": 1, "unchanged": 0, "refused": 0}
    assert ModelPrice.objects.count() == 1
    curator.post(URL, confirming(shown) | {"reason": "r"})
    old.refresh_from_db()
    new = ModelPrice.objects.get(model="m", effective_to=None)
    assert old.effective_to == new.effective_from
    assert (str(new.input_usd_per_million), new.source) == ("2.500000", "operator")
    assert new.output_usd_per_million == old.output_usd_per_million
    assert overlapping_prices(provider="x") == []


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "x.csv", "The file is empty"),
        (b"\n \n", "x.csv", "The file is empty"),
        (b"alias,provider\n", "x.txt", "ends in .csv or .json"),
        ("provider,auth_type\n".encode("utf-16"), "x.csv", "UTF-16"),
        (b"provider,auth_type\nx,\xe9\n", "x.csv", "Line 2 is not UTF-8"),
        (b"provider,auth_type\nx,\x00\n", "x.csv", "zero bytes"),
        (b"x" * (2 * 1024 * 1024 + 1), "x.csv", "at most 2 MB"),
        (b"provider,auth_type,colour\n", "x.csv", "no column 'colour'"),
        (b"provider,auth_type\n" + b"".join(b"p%d,\n" % n for n in range(1001)), "x.csv", "at most 1,000"),
        (b"{", "x.json", "This is no JSON"),
        (b'{"prizes": []}', "x.json", "no sort of rows 'prizes'"),
    ],
)
def test_a_file_that_cannot_be_is_refused_in_words(curator: Client, content: bytes, name: str, words: str) -> None:
    answer = upload(curator, content, name=name)
    assert answer.status_code in {200, 400}
    assert words in text_in(answer)
    assert b'name="packed"' not in answer.content


def test_no_file_at_all_is_told(curator: Client) -> None:
    assert "Choose a file" in text_in(curator.post(URL, {"kind": "billing"}))


def test_who_may_only_look_exports_and_does_not_import(as_role: Any) -> None:
    """SPEC 5: Roles."""
    viewer = as_role("viewer")
    assert b'type="file"' not in viewer.get(URL).content
    assert viewer.get("/catalogue/export/billing.csv").status_code == 200
    assert upload(viewer, HEAD).status_code == 403
    assert viewer.post(URL, {"packed": "x", "reason": "r"}).status_code == 403


def test_an_unchanged_import_costs_the_same_queries_for_many_rows_as_for_few(curator: Client) -> None:
    def cost(rows: int) -> int:
        for number in range(BillingEntry.objects.count(), rows):
            BillingEntryFactory(provider=f"many-{number}")
        content = curator.get("/catalogue/export/billing.csv").content
        with CaptureQueriesContext(connection) as queries:
            assert counts(upload(curator, content))["unchanged"] == rows
        return len(queries)

    assert cost(2) == cost(60)


def imported(client: Client, content: str, *, name: str = "x.csv", kind: str = "billing") -> tuple[str, str]:
    """Import a file; return where it is taken back, and what the page says."""
    shown = upload(client, content, name=name, kind=kind)
    page = client.get(client.post(URL, confirming(shown) | {"reason": "r"})["Location"])
    found = re.search(r'href="([^"]+)">Undo<', page.content.decode())
    return found[1] if found else "", text_in(page)


def test_an_import_is_taken_back_as_a_whole_with_a_reason(curator: Client) -> None:
    BillingEntryFactory(provider="other", overage="hard-stop", reason="old")
    url, _ = imported(curator, HEAD + "other,oauth,subscription,unknown,new\nfresh,,metered,unknown,\n")
    page = curator.get(url)
    assert "Overage unknown → hard-stop" in text_in(page)
    assert "Say why" in text_in(curator.post(url, form_in(page) | {"reason": ""}))
    before = current_revision()
    sent = form_in(page) | {"reason": "the wrong file"}
    assert curator.post(url, sent).status_code == 302
    assert current_revision() == before + 1
    row = BillingEntry.objects.get()
    assert (row.provider, row.overage, row.reason) == ("other", "hard-stop", "old")
    assert row.history.first().history_change_reason == "the wrong file"
    again = curator.post(url, sent, follow=True)
    assert "The import is taken back already: nothing was changed." in text_in(again)
    assert "It is taken back already" in text_in(curator.get(url))
    assert current_revision() == before + 1


def test_an_import_of_which_a_row_was_changed_since_is_not_taken_back(curator: Client) -> None:
    BillingEntryFactory(provider="other", overage="hard-stop", reason="old")
    url, _ = imported(curator, HEAD + "other,oauth,subscription,unknown,new\nfresh,,metered,unknown,\n")
    sent = form_in(curator.get(url)) | {"reason": "the wrong file"}
    row = BillingEntry.objects.get(provider="other")
    row.reason = "looked at since"
    row.save()
    again = curator.post(url, sent)
    assert again.status_code == 409
    assert "It was changed since." in text_in(again)
    assert BillingEntry.objects.count() == 2


def test_imported_prices_are_taken_back_by_new_ones(curator: Client) -> None:
    """SPEC 3: append-only."""
    old = ModelPriceFactory(provider="x", model="m", rank=5)
    url, _ = imported(curator, "provider,model,input_usd_per_million,rank\nx,m,2.5,1\nx,n,1,\n", kind="prices")
    assert curator.post(url, form_in(curator.get(url)) | {"reason": "r"}).status_code == 302
    now = ModelPrice.objects.get(effective_to=None)
    assert (now.model, now.input_usd_per_million, now.rank) == ("m", old.input_usd_per_million, 5)
    assert ModelPrice.objects.count() == 4
    assert overlapping_prices(provider="x") == []


def test_an_import_of_which_a_row_was_changed_since_stays_whole(curator: Client) -> None:
    url, _ = imported(curator, HEAD + "a,,metered,unknown,\nb,,metered,unknown,\n")
    page = curator.get(url)
    BillingEntry.objects.get(provider="a").save()
    answer = curator.post(url, form_in(page) | {"reason": "r"})
    assert answer.status_code == 409
    assert BillingEntry.objects.count() == 2
    assert b"row-form" not in curator.get(url).content


def test_an_import_with_an_alias_offers_no_way_back(curator: Client) -> None:
    """SPEC 1: the rows that an alias rewrote stay with the provider."""
    url, words = imported(curator, "alias,provider\na,b\n", kind="aliases")
    assert url == ""
    assert "Imported: 1 new." in words


@pytest.mark.parametrize("micros", [0, 1, 10**18, 10**30])
def test_an_instant_at_which_nothing_was_imported_is_not_found(curator: Client, micros: int) -> None:
    assert curator.get(f"/catalogue/files/undo/{micros}").status_code == 404


def test_taking_back_needs_the_right(as_role: Any, curator: Client) -> None:
    """SPEC 5: Roles."""
    url, _ = imported(curator, HEAD + "a,,metered,unknown,\n")
    viewer = as_role("viewer")
    assert viewer.get(url).status_code == 403
    assert viewer.post(url, {}).status_code == 403


def test_the_order_of_capabilities_is_no_difference(curator: Client) -> None:
    ModelPriceFactory(provider="x", model="m", capabilities=["vision", "reasoning"])
    shown = upload(curator, 'provider,model,capabilities\nx,m,"Reasoning, vision"\n', kind="prices")
    assert counts(shown)["unchanged"] == 1
