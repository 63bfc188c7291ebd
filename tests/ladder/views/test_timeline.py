"""The timeline page, without a browser (SPEC 5, 6)."""

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
import time_machine
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import BillingEntry, ModelPrice
from ladder.models import Connection, LadderSettings, RungBudget, RungSample
from ladder.selectors.acts import ACTS
from ladder.services.old_timeline import prune_timeline
from ladder.services.pruning import Run
from ladder.services.settings import SettingsChanges, update_settings
from ladder.services.timeline import note_flips, sample_occupancy
from omniroute_admin.common import clock
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.kinds import all_kinds
from tests.browser.fleet import make_fleet
from tests.timeline_rows import MINUTE, add_flip, add_samples, add_story, begin_timeline

pytestmark = pytest.mark.django_db
MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def stopped(settings: Any) -> Any:
    settings.TIME_ZONE_DISPLAY = "Europe/Berlin"
    with time_machine.travel(MOMENT, tick=False) as moment:
        yield moment


@pytest.fixture
def admin(client: Client, django_user_model: Any) -> Client:
    client.force_login(django_user_model.objects.create_superuser("mira", "mira@example.com", "x"))
    return client


@pytest.fixture
def viewer(client: Client, django_user_model: Any) -> Client:
    return signed_in_as("viewer", client, django_user_model)


def signed_in_as(role: str, client: Client, users: Any) -> Client:
    from django.contrib.auth.models import Group

    user = users.objects.create_user("jonas")
    user.groups.add(Group.objects.get(name=role))
    client.force_login(user)
    return client


@pytest.fixture
def fleet() -> None:
    make_fleet(now=MOMENT - 3 * DAY)
    for history in (LadderSettings.history, RungBudget.history):
        history.update(history_date=MOMENT - 30 * DAY)
    begin_timeline(MOMENT)


def page(client: Client, query: str = "") -> str:
    answer = client.get(f"/timeline{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def chart(html: str) -> Any:
    return json.loads(re.search(r'<script id="steps-data"[^>]*>(.*?)</script>', html)[1])


def lines(html: str) -> list[str]:
    """Return the list of what happened, a line of plain text each."""
    if 'class="cards events"' not in html:
        return []
    body = html.split('class="cards events"')[1].split("</table>", maxsplit=1)[0]
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in body.split("<tr ")[2:]]


def act(row: Any, *, at: datetime, who: str = "ines", why: str = "because", **changed: Any) -> None:
    for name, value in changed.items():
        setattr(row, name, value)
    stamp(instance=row, actor=Actor(name=who), reason=why, now=at)
    row.save()


def test_a_timeline_nobody_wrote_says_who_writes_it_and_how_to_start_that(viewer: Client) -> None:
    html = page(viewer)
    assert "Nothing is recorded yet" in html
    assert "celery --app omniroute_admin.celery worker" in html
    assert "steps-data" not in html


def test_the_chart_starts_with_what_served_then_and_turns_at_the_flips_instant(viewer: Client) -> None:
    turned = MOMENT - 2 * HOUR - timedelta(seconds=11)
    add_story(start=MOMENT - 26 * HOUR, end=MOMENT, serving="subscription", changes=[(turned, "cheap", "reading")])
    html = page(viewer)
    assert chart(html)["stretches"] == [
        [(MOMENT - DAY).timestamp(), turned.timestamp(), 0],
        [turned.timestamp(), MOMENT.timestamp(), 3],
    ]
    numbers = html.split('id="numbers"')[1]
    assert "it did before" in numbers
    assert "a reading" in numbers
    assert "21 h 59 min" in numbers


def test_what_the_worker_itself_writes_is_what_the_page_shows(viewer: Client, stopped: Any) -> None:
    make_fleet(now=MOMENT)
    for _ in range(5):
        note_flips(now=clock.now())
        sample_occupancy(now=clock.now())
        stopped.shift(60)
    html = page(viewer)
    assert chart(html)["stretches"][-1][2] == 0
    assert any("stale" in line for line in lines(html))


def test_a_worker_that_was_down_leaves_a_gap(viewer: Client) -> None:
    add_story(start=MOMENT - 25 * HOUR, end=MOMENT, serving="free", changes=[])
    RungSample.objects.filter(at__gte=MOMENT - 9 * HOUR, at__lt=MOMENT - 7 * HOUR).delete()
    html = page(viewer)
    ((start, end),) = chart(html)["gaps"]
    assert end - start == pytest.approx(2 * 3600, abs=240)
    assert "nobody looked" in html.split('id="numbers"')[1]


def test_a_range_in_which_no_worker_ran_says_so(viewer: Client) -> None:
    begin_timeline(MOMENT - 100 * DAY)
    assert "No worker looked at the ladder in this time" in page(viewer)
    assert "Show the latest" in page(viewer, "?day=2026-08-20")


def test_marks_stand_in_the_lane_of_what_happened(admin: Client, fleet: None) -> None:
    row = Connection.objects.get(connection_id="claude-main")
    add_flip(MOMENT - HOUR, rung="subscription", states=("usable", "stale"), cause="time", connection=row)
    add_flip(MOMENT - 4 * HOUR, rung="subscription", states=("exhausted", "pending"), cause="reset", connection=row)
    act(LadderSettings.objects.get(), at=MOMENT - 6 * HOUR, exit_cutoff_percent=Decimal(3))
    act(row, at=MOMENT - 8 * HOUR, is_enabled=False)
    act(BillingEntry.objects.first(), at=MOMENT - 9 * HOUR, reason="seen")
    lanes = {lane: [at, words] for lane, at, _, words in chart(page(admin))["marks"]}
    assert lanes["change"] == [
        (MOMENT - HOUR).replace(second=0).timestamp(),
        "1 change by time: a reading grew too old",
    ]
    assert lanes["setting"][1] == "1 ladder settings"
    assert lanes["operator"][1] == "1 connection"
    assert lanes["catalogue"][1] == "1 billing entry"
    resets = [words for lane, _, _, words in chart(page(admin))["marks"] if lane == "reset"]
    assert "1 change by a quota reset" in resets


def test_the_end_of_a_budgets_window_is_marked_m3(viewer: Client, fleet: None) -> None:
    RungBudget.history.filter(rung="cheap").update(amount_usd=5, period="daily", zone="Asia/Tokyo")
    resets = [(at, words) for lane, at, _, words in chart(page(viewer))["marks"] if lane == "reset"]
    assert resets == [(datetime(2026, 8, 26, 15, 0, tzinfo=UTC).timestamp(), "budget window of cheap ended")]


def test_the_list_tells_flips_and_acts_newest_first_with_code_and_cause(admin: Client, fleet: None) -> None:
    row = Connection.objects.get(connection_id="claude-main")
    add_flip(
        MOMENT - 2 * HOUR, rung="subscription", states=("usable", "exhausted"), connection=row, code="quota_exhausted"
    )
    add_flip(MOMENT - 3 * HOUR, rung="free", states=("idle", "serving"), cause="reset")
    add_flip(MOMENT - 4 * HOUR, rung="subscription", states=("", "usable"), cause="operator", connection=row)
    act(LadderSettings.objects.get(), at=MOMENT - HOUR, exit_cutoff_percent=Decimal(3))
    assert lines(page(admin)) == [
        'role="row"> 09:12:40 ladder settings changed ines this version in the audit because',
        (
            'role="row"> 08:12:40 0 claude/ claude- main on subscription usable → became exhausted '
            "quota_ exhausted at or below the exit cutoff a reading"
        ),
        'role="row"> 07:12:40 2 rung free begins to serve none a quota reset',
        'role="row"> 06:12:40 0 claude/ claude- main on subscription not there → became usable none an operator',
    ]


def test_a_connection_that_was_deleted_stays_in_what_happened_and_leads_nowhere_spec_3(
    viewer: Client, fleet: None
) -> None:
    row = Connection.objects.get(connection_id="claude-main")
    add_flip(MOMENT - HOUR, rung="subscription", states=("usable", "stale"), connection=row)
    assert 'href="/connections/claude/claude-main"' in page(viewer)
    Connection.objects.filter(pk=row.pk).update(deleted_at=MOMENT)
    html = page(viewer)
    assert "claude/ claude- main deleted on subscription" in lines(html)[0]
    assert "/connections/claude/claude-main" not in html


def test_an_act_leads_to_its_version_in_the_audit(admin: Client, fleet: None) -> None:
    act(LadderSettings.objects.get(), at=MOMENT - HOUR, exit_cutoff_percent=Decimal(3))
    link = re.search(r'href="(/audit/settings/\d+)"', page(admin))
    assert link
    assert admin.get(link[1]).status_code == 200


def test_every_kind_of_act_is_one_of_the_history_but_those_that_move_no_rung() -> None:
    of_history = {kind.key: kind.model for kind in all_kinds()}
    assert {act.kind: act.model.history.model for act in ACTS}.items() <= of_history.items()
    assert of_history.keys() - {act.kind for act in ACTS} == {"alert-rule", "key", "user"}


def test_who_may_not_read_the_audit_is_told_what_was_changed_but_not_who_and_why(viewer: Client, fleet: None) -> None:
    act(LadderSettings.objects.get(), at=MOMENT - HOUR, who="ines", why="a secret plan", exit_cutoff_percent=Decimal(3))
    html = page(viewer)
    assert "ladder settings changed a setting" in lines(html)[0]
    assert "ines" not in html
    assert "a secret plan" not in html


def test_the_list_is_filtered_by_cause_connection_and_rung(admin: Client, fleet: None) -> None:
    main, kiro = (Connection.objects.get(connection_id=name) for name in ("claude-main", "kiro-1"))
    add_flip(MOMENT - HOUR, rung="subscription", states=("usable", "stale"), cause="time", connection=main)
    add_flip(MOMENT - 2 * HOUR, rung="free", states=("usable", "stale"), cause="reading", connection=kiro)
    add_flip(MOMENT - 3 * HOUR, rung="free", states=("idle", "serving"), cause="reading")
    act(LadderSettings.objects.get(), at=MOMENT - 4 * HOUR, exit_cutoff_percent=Decimal(3))
    act(kiro, at=MOMENT - 5 * HOUR, is_enabled=False)
    act(RungBudget.objects.get(rung="cheap"), at=MOMENT - 6 * HOUR, amount_usd=Decimal(9))

    def hours(query: str) -> list[int]:
        return [11 - int(line.split()[1][:2]) for line in lines(page(admin, query))]

    assert hours("") == [2, 3, 4, 5, 6, 7]
    assert hours("?cause=time") == [2]
    assert hours("?cause=setting") == [5, 7]
    assert hours("?cause=operator") == [6]
    assert hours("?rung=free") == [3, 4]
    assert hours("?rung=cheap") == [7]
    assert hours("?connection=KIRO") == [3, 6]
    assert hours("?connection=kiro/kiro-1&cause=reading") == [3]
    assert hours("?connection=kiro/other") == []
    assert "Nothing in this range matches these filters" in page(admin, "?connection=kiro/other")


def test_the_list_is_paged_and_each_line_stands_on_one_page(admin: Client, fleet: None) -> None:
    row = Connection.objects.get(connection_id="claude-main")
    for number in range(120):
        add_flip(MOMENT - number * MINUTE - MINUTE, rung="subscription", states=("usable", "stale"), connection=row)
    seen, address = [], "?rung=subscription"
    while address:
        html = page(admin, address)
        seen += lines(html)
        following = re.search(r'id="events-next" href="([^"#]+)#h-events"', html)
        address = following[1].replace("&amp;", "&") if following else ""
    assert len(seen) == len(set(seen)) == 120
    assert "101 to 120 of 120" in page(admin, "?page=99&rung=subscription")


def test_the_way_back_leads_over_local_days_to_the_latest(viewer: Client) -> None:
    begin_timeline(MOMENT)
    first = page(viewer)
    assert 'id="earlier" href="?day=2026-08-26"' in first
    assert 'id="later"' not in first
    assert 'id="later" href="?day=2026-08-27"' in page(viewer, "?day=2026-08-26")
    assert 'id="later" href="?"' in page(viewer, "?day=2026-08-27")
    assert 'id="earlier" href="?range=7d&amp;day=2026-08-19"' in page(viewer, "?range=7d&day=2026-08-26")


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2025-10-26", 25), ("2026-08-20", 24)])
def test_a_day_of_the_zone_is_drawn_whole(viewer: Client, day: str, hours: int) -> None:
    begin_timeline(MOMENT)
    data = chart(page(viewer, f"?day={day}"))
    assert (data["end"] - data["start"]) / 3600 == hours


@pytest.mark.parametrize(
    "query",
    [
        "?range=1y", "?day=2026-02-30", "?day=yesterday", "?day=0001-01-01", "?day=9999-12-31", "?page=0", "?page=-1",
        "?page=99999999999999999999", "?page=١", "?cause=drop&rung=9&connection=%00%27%22%3Cb%3E", "?range=&day=",
        "?connection=" + "x" * 5000, "?connection=%F0%9F%92%A9/%E2%80%AE", "?range=7d&range=24h&day=2026-08-01&day=x",
    ],
)  # fmt: skip
def test_an_address_edited_by_hand_shows_a_page(admin: Client, fleet: None, query: str) -> None:
    html = page(admin, query)
    assert "<b>" not in html.split('id="h-events"')[1].split("</form>")[0]


def test_a_name_or_reason_of_markup_or_of_great_length_is_shown_as_text(admin: Client, fleet: None) -> None:
    act(
        LadderSettings.objects.get(), at=MOMENT - HOUR, who="<b>x</b>", why="<i>" * 3000, exit_cutoff_percent=Decimal(3)
    )
    html = page(admin)
    assert "&lt;b&gt;x&lt;/b&gt;" in html
    assert "<i>" not in html
    assert len(html) < 200_000


@pytest.mark.parametrize("role", ["viewer", "operator", "curator", "auditor", "administrator"])
def test_every_role_may_look(client: Client, django_user_model: Any, role: str) -> None:
    page(signed_in_as(role, client, django_user_model))


def test_nobody_else_may_look_and_nothing_is_changed_here(client: Client, django_user_model: Any) -> None:
    assert client.get("/timeline")["Location"] == "/login?next=/timeline"
    client.force_login(django_user_model.objects.create_user("nobody"))
    assert client.get("/timeline").status_code == 403
    assert client.post("/timeline").status_code == 403


def test_a_full_timeline_costs_no_more_queries_and_stays_small(admin: Client, fleet: None) -> None:
    def cost() -> tuple[int, int]:
        with CaptureQueriesContext(database) as queries:
            size = len(page(admin, "?range=7d").encode())
        return len(queries), size

    accounts = list(Connection.objects.all()[:5])
    add_flip(MOMENT - HOUR, rung="subscription", states=("usable", "stale"), connection=accounts[0])
    few, _ = cost()
    for number in range(1000):
        at = MOMENT - 2 * HOUR - number * timedelta(seconds=90)
        cause = ("reading", "reset", "time", "cooldown")[number % 4]
        add_flip(at, rung="subscription", states=("usable", "held"), cause=cause, connection=accounts[number % 5])
    changes = [
        (MOMENT - 2 * DAY + number * timedelta(minutes=3, seconds=1), ("free", "cheap")[number % 2], "reading")
        for number in range(900)
    ]
    add_story(start=MOMENT - 3 * DAY, end=MOMENT, serving="cheap", changes=changes)
    settings = LadderSettings.objects.get()
    for number in range(40):
        act(settings, at=MOMENT - number * HOUR, why="w" * 10_000, exit_cutoff_percent=Decimal(number))
    many, size = cost()
    assert many == few <= 15
    assert size < 200_000


def test_samples_that_age_thinned_are_no_gaps(viewer: Client) -> None:
    begin_timeline(MOMENT)
    add_samples(start=MOMENT - 61 * DAY, end=MOMENT - 59 * DAY, serving="free", step=HOUR)
    data = chart(page(viewer, f"?day={(MOMENT - 60 * DAY).date()}"))
    assert data["gaps"] == []
    assert [row for _, _, row in data["stretches"]] == [2]


def test_the_same_thing_done_to_many_at_one_instant_is_one_line_that_leads_to_each(admin: Client, fleet: None) -> None:
    at = MOMENT - HOUR
    for row in Connection.objects.filter(provider="claude"):
        add_flip(at, rung="subscription", states=("usable", "exhausted"), connection=row, cause="setting")
    add_flip(at, rung="cheap", states=("idle", "serving"), cause="setting")
    html = page(admin).replace("<wbr>", "")
    assert "3 connections" in html
    assert "and 2 more" in html
    assert "begins to serve" in html
    link = re.search(r'href="([?][^"]*at=[^"]*)#h-events">Show each', html)
    assert link is not None
    each = page(admin, unescape(link[1])).replace("<wbr>", "")
    assert sorted(re.findall(r">claude/(claude-\w+)</a>", each)) == ["claude-alt", "claude-main", "claude-team"]
    assert "begins to serve" in each
    assert page(admin, "?at=noon").count('<tr role="row">') == html.count('<tr role="row">')


def test_a_flood_of_prices_of_one_sync_does_not_hide_what_came_before(admin: Client, fleet: None) -> None:
    changes = SettingsChanges(exit_cutoff_percent=Decimal(3))
    update_settings(changes=changes, actor=Actor(name="mira"), reason="", now=MOMENT - HOUR)
    version = ModelPrice.history.model
    version.objects.bulk_create(
        version(
            id=number, provider="x", model=f"m{number}", source="list", effective_from=MOMENT, history_type="+",
            history_date=MOMENT - MINUTE, history_actor="sync_prices", history_change_reason="lists",
        )
        for number in range(120)
    )  # fmt: skip
    html = page(admin)
    assert "120 prices" in html
    assert "ladder settings" in html.split('id="h-events"')[1]


def test_the_page_says_where_the_retention_period_removed_what_it_would_show(viewer: Client) -> None:
    begin_timeline(MOMENT)
    add_samples(start=MOMENT - 61 * DAY, end=MOMENT - 59 * DAY, serving="free", step=HOUR)
    day = f"?day={(MOMENT - 60 * DAY).date()}"
    assert 'id="pruned"' not in page(viewer, day)
    prune_timeline(before=MOMENT - 59 * DAY, run=Run(now=MOMENT))
    html = page(viewer, day)
    assert "was removed by the retention period" in html.split('id="pruned">')[1].split("</p>")[0]
    assert 'id="no-samples"' in html
    assert 'id="pruned"' not in page(viewer)
