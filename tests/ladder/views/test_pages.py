"""The pages and the live address, without a browser (SPEC 5, 1)."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import msgspec
import pytest
import time_machine
from django.contrib.auth.models import AnonymousUser
from django.db import OperationalError
from django.db import connection as database
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.views.defaults import server_error

from billing_catalog.models import ModelPrice
from ladder.core.ids import POOL_IDS
from ladder.models import Connection, LadderSettings
from ladder.services.holds import HoldRequest, grant_hold
from ladder.services.usage import record_usage
from ladder.services.usage_items import UsageItem
from ladder.templatetags.console import NAVIGATION
from omniroute_admin.common import clock, problems
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.views.guard import RoleNeededError, permission_denied
from omniroute_admin.services.heartbeats import record_beat
from tests.browser.fleet import Window, make_catalogue, make_connection, make_fleet
from tests.factories import CooldownFactory, ModelPriceFactory, SpendHoldFactory
from tests.factories_ladder import NOW
from tests.ladder.services.booking import event, make_ladder, record, set_budget

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)


@pytest.fixture
def operator(client: Client, django_user_model: Any) -> Client:
    client.force_login(django_user_model.objects.create_superuser("mira", "mira@example.com", "x"))
    return client


@pytest.fixture
def fleet(db: None) -> None:
    make_fleet(now=clock.now())


def token_in(html: str) -> str:
    found = re.search(r'data-token="([^"]+)"', html)
    assert found
    return found[1]


@pytest.mark.parametrize("path", ["/", "/pools", "/pools/auto/thrifty", "/connections/claude/claude-main"])
def test_a_page_asks_for_signing_in_and_comes_back_after(client: Client, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer["Location"]) == (302, f"/login?next={path}")


def test_a_poll_of_a_stranger_is_refused_and_tells_nothing(client: Client, fleet: None) -> None:
    answer = client.get("/live/ladder")
    assert answer.status_code == 401
    assert b"claude" not in answer.content


def test_a_script_that_asks_for_a_strangers_page_is_told_so_and_not_led_to_another(client: Client) -> None:
    answer = client.get("/?state=stale", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.content) == (401, b"Sign in again.")


@pytest.mark.parametrize("path", ["/", "/live/ladder", "/pools/auto/thrifty"])
def test_a_page_is_only_read(operator: Client, path: str) -> None:
    assert operator.post(path).status_code == 405


def test_the_page_shows_every_connection_once_for_each_place(operator: Client, fleet: None) -> None:
    html = operator.get("/").content.decode()
    assert len(re.findall(r'id="c-\d-', html)) == 12
    assert html.count('id="c-3-openrouter-or-main"') == 1
    assert html.count('id="c-4-openrouter-or-main"') == 1


def test_an_unchanged_picture_costs_two_queries_the_session_and_the_user_with_the_token(
    operator: Client, fleet: None
) -> None:
    token = token_in(operator.get("/").content.decode())
    with CaptureQueriesContext(
        database,
    ) as queries:
        answer = operator.get("/live/ladder", {"v": token})
    assert answer.status_code == 204
    assert len(queries) == 2


def test_a_page_costs_as_many_queries_for_many_connections_as_for_few(operator: Client, fleet: None) -> None:
    with CaptureQueriesContext(database) as few:
        operator.get("/")
    now = clock.now()
    with deciding_write():
        for number in range(60):
            make_connection("claude", f"more-{number}", "oauth", now=now)
    with CaptureQueriesContext(database) as many:
        operator.get("/")
    assert len(many) == len(few)


def test_a_poll_sends_only_the_regions_that_changed(operator: Client, fleet: None) -> None:
    token = token_in(operator.get("/").content.decode())
    with deciding_write():
        Connection.objects.filter(connection_id="ds-api").update(auth_type="cookie")
    html = operator.get("/live/ladder", {"v": token}).content.decode()
    assert re.findall(r'id="r-(\w+)" hx-swap-oob', html) == ["conns", "foot"]
    assert "0 of 5 rungs exhausted · Ladder" in html
    assert operator.get("/live/ladder", {"v": token_in(html)}).status_code == 204


@pytest.mark.parametrize("token", ["", "nonsense", "1.2.3", "~now:zzz", "9" * 400])
def test_a_poll_with_a_token_that_is_none_gets_everything(operator: Client, fleet: None, token: str) -> None:
    html = operator.get("/live/ladder", {"v": token}).content.decode()
    assert len(re.findall("hx-swap-oob", html)) == 9


@pytest.mark.parametrize("path", ["/live/ladder", "/live/ladder?show=pool&pool=auto/subscription"])
def test_a_picture_ends_by_itself_when_a_reading_ages_out(operator: Client, path: str) -> None:
    """P9: without any write the answer changes at valid_until, and the page with it."""
    with time_machine.travel(MOMENT, tick=False) as moment:
        make_catalogue()
        make_connection("codex", "c1", "oauth", (Window("5h", "50", 60, 0),), now=clock.now())
        join = "&" if "?" in path else "?"
        token = token_in(operator.get(path).content.decode())
        moment.shift(180)
        assert operator.get(f"{path}{join}v={token}").status_code == 204
        moment.shift(timedelta(microseconds=1))
        answer = operator.get(f"{path}{join}v={token}")
        assert answer.status_code == 200
        assert "quota_" in answer.content.decode()


def test_a_clock_stepped_back_draws_the_picture_anew(operator: Client, fleet: None) -> None:
    """SPEC 6."""
    with time_machine.travel(MOMENT, tick=False) as moment:
        token = token_in(operator.get("/").content.decode())
        moment.shift(-60)
        answer = operator.get("/live/ladder", {"v": token})
        assert answer.status_code == 200
        assert operator.get("/live/ladder", {"v": token_in(answer.content.decode())}).status_code == 204


def test_a_candidate_of_many_connections_names_some_and_counts_the_rest(operator: Client, fleet: None) -> None:
    now = clock.now()
    for number in range(30):
        make_connection("deepseek", f"more-{number:02}", "apikey", now=now)
    html = operator.get("/pools/auto/thrifty").content.decode()
    assert "and 19 more" in html
    assert "9 candidates, 40 pairs" in html


def test_a_filter_that_is_no_word_is_left_out(operator: Client, fleet: None) -> None:
    query = "/?rung=seventh&state=sad&sort=random&page=-3&pool=auto/x&mixed_rungs=mix&lowest_rung_only=maybe"
    answer = operator.get(query)
    assert answer.status_code == 200
    assert len(re.findall(r'id="c-\d-', answer.content.decode())) == 12


def test_a_page_past_the_end_shows_the_last_one(operator: Client, fleet: None) -> None:
    now = clock.now()
    for number in range(50):
        make_connection("claude", f"more-{number:02}", "oauth", now=now)
    html = operator.get("/?page=99").content.decode()
    assert "51 to 62 of 62" in html
    assert "more-00" not in html
    assert 'id="page-previous"' in html
    assert 'id="page-next"' not in html


def test_a_rung_that_is_not_on_the_page_is_reached_by_its_filter(operator: Client, fleet: None) -> None:
    html = operator.get("/").content.decode()
    assert 'id="step-cheap" href="#rung-cheap"' in html
    html = operator.get("/?rung=subscription&pool=auto/best-free").content.decode()
    assert 'id="step-subscription" href="#rung-subscription"' in html
    assert 'id="step-cheap" href="/?rung=cheap&amp;pool=auto%2Fbest-free#h-conns"' in html


def test_a_reentry_below_the_exit_is_told_as_what_it_counts(operator: Client, fleet: None) -> None:
    """Q4: the floor is max(re-entry, exit)."""
    with deciding_write():
        LadderSettings.objects.update(reentry_min_remaining_percent=1)
    assert "exit 2 %, re-entry 1 % counts as 2 %, the exit cutoff" in operator.get("/").content.decode()


def test_an_empty_installation_says_so_in_sentence_and_title(operator: Client) -> None:
    html = operator.get("/").content.decode()
    assert "<title>No connection stored · Ladder</title>" in html
    assert "no connection is stored. There is no candidate." in html
    assert "manage.py import_omniroute" in html.split('id="r-now"')[1].split('id="live"')[0]


def test_a_label_that_only_repeats_the_id_is_not_shown(operator: Client, fleet: None) -> None:
    with deciding_write():
        Connection.objects.filter(connection_id="ds-api").update(label="deepseek ds-api")
        Connection.objects.filter(connection_id="kiro-1").update(label="night shift")
    html = operator.get("/").content.decode()
    assert "deepseek ds-api" not in html
    assert '<div class="why label">night shift</div>' in html
    assert '<span title="kiro/kiro-1">night shift</span>' in html


def test_cooldowns_of_one_model_and_of_all_are_read_apart(operator: Client, fleet: None) -> None:
    """C3."""
    until = clock.now() + timedelta(hours=5)
    with deciding_write():
        row = Connection.objects.get(connection_id="claude-alt")
        for cause, model in (("rate_limit", "claude-haiku-4-5"), ("ban", "claude-sonnet-4-5")):
            CooldownFactory(connection=row, cause=cause, model=model, effective_until=until, asked_until=until)
    html = operator.get("/").content.decode()
    told = (
        "quota: asked until",
        "rate_limit for claude-haiku-4-5 only: until",
        "ban for claude-sonnet-4-5 only",
    )
    assert [words in html for words in told] == [True] * 3


def test_money_that_routers_booked_and_hold_stands_on_the_page(operator: Client, fleet: None) -> None:
    """M2: spend, money on hold, and that a part is estimated."""
    now, router = clock.now(), Actor(name="router")
    event = UsageItem(event_id="e1", connection_id="ds-api", model="deepseek-chat", occurred_at=now)
    paid = msgspec.structs.replace(event, cost_usd=Decimal("3.60"))
    estimated = msgspec.structs.replace(event, event_id="e2")
    record_usage(items=[paid, estimated], actor=router, now=now)
    hold = HoldRequest(
        hold_id="h1",
        connection_id="ds-api",
        provider=None,
        model="deepseek-chat",
        estimated_cost_usd=Decimal("0.25"),
        ttl_seconds=600,
    )
    grant_hold(request=hold, actor=router, now=now)
    html = operator.get("/").content.decode()
    step = html.split('id="step-cheap"')[1].split("</li>")[0]
    assert "$1.15 left" in step
    assert "$0.25 on hold, spend partly estimated" in step
    assert '<rect class="fill" width="23" height="8"/>' in step
    assert '<rect x="23" width="5" height="8" fill="url(#hatch-money)"/>' in step
    assert "$1.15 of $5.00 left" in html.split('id="r-now"')[1].split('id="live"')[0]


def test_counts_beside_a_filter_ignore_that_filter_and_mind_the_others(operator: Client, fleet: None) -> None:
    html = operator.get("/?state=usable&provider=claude").content.decode()
    chips = html.split('id="r-chips"')[1].split("</form>")[0]
    counts = dict(re.findall(r'<input [^>]*value="([\w-]+)".*? <b>(\d+)</b>', chips))
    assert counts["cooldown"] == "1"
    assert counts["devin-desktop"] == "1"
    assert counts["exhausted"] == "0"


def test_least_left_orders_inside_each_rung(operator: Client, fleet: None) -> None:
    html = operator.get("/?sort=left&rung=subscription").content.decode()
    names = re.findall(r'id="c-0-([\w-]+)"', html)
    assert names[:2] == ["claude-claude-alt", "cursor-cursor-seat"]
    assert names[-1] == "devin-desktop-devin-core"


@pytest.mark.parametrize("pool_id", list(POOL_IDS))
@pytest.mark.parametrize("query", ["", "?mixed_rungs=merge", "?lowest_rung_only=true"])
def test_the_picker_gives_the_answer_of_the_api(operator: Client, fleet: None, pool_id: str, query: str) -> None:
    html = operator.get(f"/pools/{pool_id}{query}").content.decode()
    api = operator.get(f"/api/v1/pools/{pool_id}{query}{'&' if query else '?'}explain=true").json()

    plain = html.replace("<wbr>", "")
    entries = plain.split('class="cards plist"')[1].split("</table>")[0]
    left_out = plain.split('class="cards xlist"')[1].split("</table>")[0]
    assert re.findall(r"rung-\d\" aria-hidden=\"true\">\d</span>(\w+)", entries) == [
        e["rung"] for e in api["candidates"]
    ]
    assert [f"{e['provider']}/{e['model']}" for e in api["candidates"]] == re.findall(
        r'</span></td><td role="cell">([^ <]+)', entries
    )
    codes = re.findall(r'<span class="code">(\w+)</span>', left_out)
    in_order = sorted(api["excluded"], key=lambda e: e["family"] == "never")
    assert codes == [e["code"] for e in in_order]
    assert (api["empty"] is None) == ("banner-bad" not in plain.split('id="r-pool"')[1])


def test_what_is_out_for_now_stands_first_and_a_provider_without_connections_is_one_line(
    operator: Client, fleet: None
) -> None:
    with deciding_write():
        for number in range(40):
            ModelPriceFactory(provider="groq", model=f"m-{number:02}")
        make_connection("nobody", "a1", "apikey", now=clock.now())
        make_connection("nobody", "a2", "apikey", now=clock.now())
    html = operator.get("/pools/auto/subscription").content.decode().split('class="cards xlist"')[1]
    lines = re.findall(r'<span class="tag">(never|for now)</span></td><td role="cell">(.*?)</td>', html)
    families = [family for family, _ in lines]
    assert families == sorted(families)
    assert families[0] == "for now"
    assert [pair for _, pair in lines if pair.startswith("groq")] == ['groq<br><span class="small">40 models</span>']
    assert [pair for _, pair in lines if pair.startswith("nobody")] == [
        'nobody<br><span class="small">2 connections</span>'
    ]


def test_a_pools_own_page_pages_through_all_of_it(operator: Client, fleet: None) -> None:
    with deciding_write():
        for number in range(230):
            ModelPriceFactory(provider="deepseek", model=f"more-{number:03}", input_usd_per_million="0.5")
    address, seen = "/pools/auto/thrifty?mixed_rungs=merge", set()
    while address:
        html = operator.get(address).content.decode()
        seen |= set(re.findall(r"deepseek/<wbr>(more-\d+)", html))
        assert html.count('<td role="cell" class="num">') <= 60
        following = re.search(r'id="candidates-next" href="([^"#]+)#r-pool"', html)
        address = f"/pools/auto/thrifty{unescape(following[1])}" if following else ""
    assert len(seen) == 230
    assert operator.get("/pools/auto/thrifty?page=9&left=9").status_code == 200
    first = operator.get("/?mixed_rungs=merge").content.decode()
    assert first.count('<td role="cell" class="num">') == 12
    assert 'id="candidates-all" href="/pools/auto/thrifty?mixed_rungs=merge"' in first


def test_a_first_page_of_thousands_of_models_stays_small(operator: Client, fleet: None) -> None:
    now = clock.now()
    rows = [
        ModelPriceFactory.build(provider=f"provider-{number % 60}", model=f"models/a-model-of-many-{number:04}")
        for number in range(3000)
    ]
    with deciding_write():
        ModelPrice.objects.bulk_create(rows)
        for number in range(120):
            make_connection(f"provider-{number % 30}", f"{number:08}-4a8c-8976-0632721a65aa", "apikey", now=now)
    for address in ("/", "/?pool=auto/subscription", "/pools/auto/thrifty"):
        assert len(operator.get(address).content) < 200_000, address


def test_a_pool_that_is_none_is_not_found_and_names_the_ids(operator: Client) -> None:
    """I: any other id is unknown."""
    answer = operator.get("/pools/auto/Thrifty")
    assert answer.status_code == 404
    assert "auto/coding:subscription" in answer.content.decode()


def test_choosing_a_pool_leads_to_its_page_with_the_options(operator: Client) -> None:
    answer = operator.get("/pools?pool=auto/best-free&mixed_rungs=merge&lowest_rung_only=true")
    assert answer["Location"] == "/pools/auto/best-free?mixed_rungs=merge&lowest_rung_only=true"


def test_a_name_that_looks_like_markup_is_shown_as_it_is(operator: Client, fleet: None) -> None:
    Connection.objects.filter(connection_id="ds-api").update(provider="<script>alert(1)</script>")
    html = operator.get("/").content.decode()
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert" in html


def test_no_page_carries_a_style_or_a_script_of_its_own(operator: Client, fleet: None) -> None:
    for path in ("/", "/pools/auto/thrifty", "/nowhere"):
        html = operator.get(path).content.decode()
        assert not re.search(r"\sstyle=|<style|<script(?! src)|\son\w+=", html)
        assert "script-src 'self'" in operator.get(path)["Content-Security-Policy"]


def test_no_link_of_the_navigation_is_dead(operator: Client) -> None:
    html = operator.get("/").content.decode()
    links = re.findall(r'<li><a href="([^"]+)"', html.split('aria-label="Main"')[1].split("</nav>")[0])
    assert len(links) == len(NAVIGATION)
    for link in links:
        assert operator.get(link).status_code == 200


def test_who_is_not_staff_is_offered_no_page_of_the_admin(client: Client, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create_user("jonas"))
    html = client.get("/").content.decode()
    assert "/admin/" not in html
    assert reverse("ladder") in html


def test_a_connection_nobody_stored_is_not_found(operator: Client) -> None:
    assert operator.get("/connections/claude/nobody").status_code == 404


def test_signing_out_is_a_post_and_leads_to_signing_in(operator: Client) -> None:
    assert operator.get("/logout").status_code == 405
    assert operator.post("/logout")["Location"] == "/login"


def test_signing_in_never_leads_to_another_site(client: Client, django_user_model: Any) -> None:
    django_user_model.objects.create_user("jonas", password="a-good-password")
    answer = client.post(
        "/login", {"username": "jonas", "password": "a-good-password", "next": "https://evil.example/"}
    )
    assert answer["Location"] == "/"


def test_every_failure_has_a_page_in_the_same_look(operator: Client, rf: RequestFactory) -> None:
    request = rf.get("/")
    request.user = AnonymousUser()
    pages = {
        404: operator.get("/nowhere"),
        403: permission_denied(request, RoleNeededError("settings:write")),
        500: server_error(request),
    }
    strict = Client(enforce_csrf_checks=True)
    pages_and_forms = [*pages.items(), (403, strict.post("/login", {"username": "x", "password": "y"}))]
    for status, answer in pages_and_forms:
        html = answer.content.decode()
        assert answer.status_code == status
        assert "css/console.css" in html
        assert '<h1 id="h-problem">' in html


def test_a_page_without_a_database_says_so_and_tries_again_spec_6(rf: RequestFactory) -> None:
    answers = {}
    for method in ("get", "post"):
        try:
            raise OperationalError("no route to host db.internal")  # noqa: TRY301 - handler500 reads the exception under way
        except OperationalError:
            answers[method] = problems.server_error(getattr(rf, method)("/?rung=cheap"))
    for answer in answers.values():
        html = answer.content.decode()
        assert (answer.status_code, answer["Retry-After"]) == (503, "10")
        assert "The database cannot be reached" in html
        assert "db.internal" not in html
    assert 'http-equiv="refresh"' in answers["get"].content.decode()
    assert 'http-equiv="refresh"' not in answers["post"].content.decode()


def test_spend_that_moves_no_decision_is_shown_by_the_next_poll_spec_3(operator: Client) -> None:
    """What screens show beyond decisions has a token of its own."""
    with time_machine.travel(NOW, tick=False):
        make_ladder()
        set_budget(amount="5.00")
        token = token_in(operator.get("/").content.decode())
        assert operator.get("/live/ladder", {"v": token}).status_code == 204
        record(event(cost="1.20"), now=NOW)
        answer = operator.get("/live/ladder", {"v": token})
        assert answer.status_code == 200
        html = answer.content.decode()
        assert "$3.80 of $5.00 left" in re.sub(r"<[^>]*>", "", html)
        assert operator.get("/live/ladder", {"v": token_in(html)}).status_code == 204


def test_a_picture_ends_when_a_hold_does_m2(operator: Client) -> None:
    with time_machine.travel(NOW, tick=False) as moment:
        make_ladder()
        set_budget(amount="5.00")
        SpendHoldFactory(expires_at=NOW + timedelta(seconds=30))
        token = token_in(operator.get("/").content.decode())
        moment.shift(29)
        assert operator.get("/live/ladder", {"v": token}).status_code == 204
        moment.shift(1)
        assert operator.get("/live/ladder", {"v": token}).status_code == 200


def test_the_page_says_that_no_worker_is_seen_until_one_is_spec_6(operator: Client, fleet: None) -> None:
    html = operator.get("/").content.decode()
    assert "No worker has ever been seen here" in html
    record_beat(name="beat", now=clock.now())
    with deciding_write():
        pass
    answer = operator.get("/live/ladder", {"v": token_in(html)}).content.decode()
    assert 'id="r-notes" hx-swap-oob' in answer
    assert "No worker" not in answer


def test_a_worker_that_dies_is_told_without_any_write_spec_6(operator: Client, fleet: None) -> None:
    with time_machine.travel(MOMENT, tick=False) as moment:
        record_beat(name="beat", now=clock.now())
        token = token_in(operator.get("/").content.decode())
        moment.shift(60)
        assert operator.get("/live/ladder", {"v": token}).status_code == 204
        moment.shift(timedelta(microseconds=1))
        assert "No worker has been seen" in operator.get("/live/ladder", {"v": token}).content.decode()


def test_plans_without_any_reading_are_told_with_the_call_that_brings_one(operator: Client) -> None:
    make_catalogue()
    make_connection("codex", "c1", "oauth", (), now=clock.now())
    html = operator.get("/").content.decode()
    assert "No reading has ever arrived" in html
    assert "POST /api/v1/telemetry/readings" in html
