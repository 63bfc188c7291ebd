"""The spend page and its files, without a browser (SPEC 5, 5; M1 to M9)."""

import csv
import io
import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group
from django.db import connection as database
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext

from ladder.models import Connection, UsageEvent
from ladder.services.budgets import reset_budget
from ladder.services.connections import delete_connection
from ladder.services.folding import fold_ledger
from ladder.services.pruning import Run
from ladder.views.spend_query import asked_of, query_of
from tests.factories import ConnectionFactory, SpendHoldFactory, UsageEventFactory
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.services.booking import HOUR, SECOND, correct, event, make_ladder, record, set_budget, usd

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
NOTHING = ["$0.00"] * 5


@pytest.fixture(autouse=True)
def _stopped(settings: Any) -> Any:
    settings.TIME_ZONE_DISPLAY = "Europe/Berlin"
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture(autouse=True)
def ladder(db: None) -> None:
    make_ladder()


@pytest.fixture
def viewer(client: Client, django_user_model: Any) -> Client:
    user = django_user_model.objects.create_user("jonas")
    user.groups.add(Group.objects.get(name="viewer"))
    client.force_login(user)
    return client


def page(client: Client, query: str = "") -> str:
    answer = client.get(f"/spend{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def rows(html: str, kind: str) -> dict[str, list[str]]:
    """Return the rows of a table of money, each cell as plain text, by what the first says."""
    body = re.split(rf'class="cards {kind}[ "]', html)[1].split("<tbody")[1].split("</tbody>")[0]
    found = {}
    for row in re.findall(r"<tr .*?</tr>", body, re.DOTALL):
        cells = [_plain(cell) for cell in re.findall(r"<t[hd] .*?</t[hd]>", row, re.DOTALL)]
        found[cells[0]] = cells[1:]
    return found


def _plain(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html.replace("<wbr>", "")).split())


def sheet(client: Client, path: str) -> list[dict[str, str]]:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer.streaming
    return list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))  # type: ignore[arg-type]


def chart(html: str, rung: str) -> Any:
    return json.loads(re.search(rf'<script id="data-{rung}"[^>]*>(.*?)</script>', html)[1])


def test_each_rung_stands_beside_its_budget_with_its_money_apart_m5(viewer: Client) -> None:
    set_budget("cheap", "5.00")
    set_budget("premium", "0")
    record(
        event("e1", "1.20"),
        event("e2", input_tokens=1, model="unknown-to-all"),
        event("e3", "0.30", connection_id="plan", model="opus"),
        event("e4", "0.20", connection_id="plan", model="opus", is_overage=True),
    )
    SpendHoldFactory(connection=Connection.objects.get(connection_id="paid"), rung="cheap", amount_usd=usd("0.05"))
    found = rows(page(viewer), "money totals")
    day = "00:00 to Sun 00:00 UTC"
    assert found[f"0 subscription billed past the plan {day}"] == [
        "draws on no budget", "", "$0.00", "$0.00", "$0.00", "$0.20", "$0.30", "2",
    ]  # fmt: skip
    assert found[f"3 cheap {day}"] == [
        "$5.00 a day, UTC", "$3.75 left", "$1.20", "$0.00", "$0.05", "$0.00", "$0.00", "1",
    ]  # fmt: skip
    assert found[f"4 premium {day}"][:2] == ["off", "off"]
    assert found[f"4 premium {day}"][-1] == "1, 1 estimated"
    set_budget("premium", None)
    assert rows(page(viewer), "money totals")[f"4 premium {day}"][:2] == ["no limit", "no limit"]


def test_each_budget_is_told_in_its_own_zone_m3(viewer: Client) -> None:
    set_budget("cheap", "5.00", period="weekly", zone="Asia/Tokyo")
    html = page(viewer)
    assert "3 cheap Mon 00:00 to Mon 00:00 Asia/Tokyo" in rows(html, "money totals")
    data = chart(html, "cheap")
    assert data["zone"] == "Asia/Tokyo"
    assert (data["end"] - data["start"]) / 3600 == 7 * 24
    assert datetime.fromtimestamp(data["start"], UTC) == datetime(2026, 8, 16, 15, 0, tzinfo=UTC)


def test_the_chart_grows_to_the_budget_and_marks_where_it_came_to_it_m2(viewer: Client) -> None:
    set_budget("cheap", "1.00")
    exact = NOW - HOUR + timedelta(seconds=17, microseconds=5)
    record(event("e1", "0.40", at=NOW - 3 * HOUR), event("e2", "0.70", at=exact), event("e3", "0.10", at=NOW - SECOND))
    html = page(viewer)
    data = chart(html, "cheap")
    assert data["limit"] == 1.0
    assert data["reached"] == exact.timestamp()
    assert [usd for _, usd in data["points"]] == [0, 0.4, 1.1, 1.2, 1.2]
    assert "The spend came to the budget at" in html
    numbers = html.split("The numbers of cheap")[1].split("</table>")[0]
    assert [_plain(cell) for cell in re.findall(r'<td class="num">.*?</td>', numbers)][:4] == [
        "$1.20", "$0.00", "$1.20", "$0.00",
    ]  # fmt: skip


def test_a_reset_starts_the_chart_and_the_left_anew_m9(viewer: Client) -> None:
    set_budget("cheap", "1.00")
    record(event("e1", "1.50", at=NOW - 3 * HOUR))
    reset_budget(rung="cheap", actor=OPERATOR, reason="paid by hand", now=NOW - HOUR)
    record(event("e2", "0.25", at=NOW - SECOND))
    html = page(viewer)
    assert [usd for _, usd in chart(html, "cheap")["points"]] == [0, 0.25, 0.25]
    assert chart(html, "cheap")["reached"] is None
    assert "$0.75 left" in html
    days = chart(page(viewer, "?period=today"), "cheap")["points"]
    assert [usd for _, usd in days] == [0, 0, 0, 1.5, 1.5, 0, 0.25, 0.25]


def test_over_days_the_line_begins_again_with_each_window_m4(viewer: Client) -> None:
    set_budget("cheap", "1.00")
    record(*(event(f"e{day}", f"0.{day}", at=NOW - day * DAY) for day in range(1, 4)))
    assert [usd for _, usd in chart(page(viewer, "?period=7d"), "cheap")["points"]].count(0) >= 3


@pytest.mark.parametrize(
    ("query", "events"),
    [
        ("?period=today", "e0"),
        ("?period=7d", "e0 e1 e6"),
        ("?period=30d", "e0 e1 e6 e7 e21 e22 e29"),
        ("?period=month", "e0 e1 e6 e7 e21"),
        ("?period=custom&from=2026-08-21&to=2026-08-21", "e1"),
    ],
)
def test_a_period_is_whole_days_of_the_zone_of_the_screen(viewer: Client, query: str, events: str) -> None:
    edge = datetime(2026, 8, 21, 22, 0, tzinfo=UTC)  # midnight of the 22nd in Berlin
    firsts = {"e0": 0, "e6": 6, "e21": 21, "e29": 29}
    lasts = {"e1": 0, "e7": 6, "e22": 21, "e30": 29}
    record(*(event(name, "0.01", at=edge - days * DAY) for name, days in firsts.items()))
    record(*(event(name, "0.01", at=edge - days * DAY - SECOND) for name, days in lasts.items()))
    found = [row["event_id"] for row in sheet(viewer, f"/spend/events.csv{query}")]
    assert " ".join(found) == events


def test_a_rung_without_spend_is_drawn_only_against_a_budget(viewer: Client) -> None:
    set_budget("cheap", "5.00")
    html = page(viewer)
    assert 'id="chart-cheap"' in html
    assert 'id="chart-premium"' not in html
    assert html.count("Nothing was spent on this rung in this time.") == 2


def test_a_day_of_25_hours_is_one_day_m3(viewer: Client) -> None:
    set_budget("cheap", "5.00")
    data = chart(page(viewer, "?period=custom&from=2025-10-26&to=2025-10-26"), "cheap")
    assert (data["end"] - data["start"]) / 3600 == 25


def test_the_breakdown_tells_connections_models_rungs_providers_and_windows_apart(viewer: Client) -> None:
    record(
        event("e1", "0.10"),
        event("e2", "0.20", model="big"),
        event("e3", "0.30", connection_id="plan", model="opus", at=NOW - DAY),
    )
    month = "?period=30d"
    assert rows(page(viewer, month), "money lines") == {
        "openrouter/paid": ["$0.30", "$0.00", "$0.00", "$0.00", "$0.00", "2"],
        "claude/plan": ["$0.00", "$0.00", "$0.00", "$0.00", "$0.30", "1"],
    }
    assert set(rows(page(viewer, f"{month}&by=model"), "money lines")) == {"small", "big", "opus"}
    assert set(rows(page(viewer, f"{month}&by=rung"), "money lines")) == {"0 subscription", "3 cheap", "4 premium"}
    assert set(rows(page(viewer, f"{month}&by=provider"), "money lines")) == {"openrouter", "claude"}
    windows = page(viewer, f"{month}&by=window&rung=cheap")
    assert "00:00 to Sun 00:00 UTC" in windows
    assert "1 to 31 of 31" in windows
    assert "1 to 5 of 5" in page(viewer, "?by=window")


def test_present_windows_break_down_each_rung_in_its_own_window(viewer: Client) -> None:
    set_budget("cheap", "9.00", period="monthly")
    record(event("e1", "0.10", at=NOW - 5 * DAY), event("e2", "0.20", at=NOW - 5 * DAY, model="big"))
    assert rows(page(viewer, "?by=model"), "money lines") == {"small": ["$0.10", *NOTHING[1:], "1"]}
    assert [row["event_id"] for row in sheet(viewer, "/spend/events.csv")] == ["e1"]


def test_the_breakdown_is_ordered_as_asked_and_the_head_leads_the_other_way(viewer: Client) -> None:
    record(event("e1", "0.10", model="big"), event("e2", "0.40"), event("e3", "0.20", model="mid"))
    html = page(viewer, "?period=today&by=model&order=-settled_usd")
    assert list(rows(html, "money lines")) == ["small", "mid", "big"]
    assert 'aria-sort="descending"' in html
    assert "order=settled_usd" in html
    assert list(rows(page(viewer, "?period=today&by=model&order=model"), "money lines")) == ["big", "mid", "small"]


def test_filters_hold_for_breakdown_events_and_files_alike(viewer: Client) -> None:
    plan = event("e3", "0.30", connection_id="plan", model="opus")
    record(event("e1", "0.10"), event("e2", "0.20", model="big"), plan)
    for query, events in {
        "rung=cheap": ["e1"],
        "model=big": ["e2"],
        "connection=plan": ["e3"],
        "connection=claude/plan": ["e3"],
        "connection=openrouter/plan": [],
        "provider=openrouter": ["e2", "e1"],
        "provider=openrouter&connection=claude/plan": [],
    }.items():
        html = page(viewer, f"?period=today&{query}")
        assert re.findall(r'<span class="code">(e\d)</span>', html) == events, query
        assert [row["event_id"] for row in sheet(viewer, f"/spend/events.csv?period=today&{query}")] == events
        assert ("matches these filters" in html) == (events == [])


def test_an_event_is_told_as_it_counts_now_with_what_its_corrections_did(viewer: Client) -> None:
    record(event("e1", "0.10"), event("e2"))
    record(correct("fix-1", "e1", "0.25"), correct("fix-0", "e1", "0.15", at=NOW), correct("fix-2", "e2", "0.40"))
    listed = page(viewer, "?period=today").split('class="cards events ledger"')[1]
    second, first = sorted((_plain(row) for row in re.findall(r"<tr .*?</tr>", listed, re.DOTALL)[1:]), key=len)
    assert "$0.25 was $0.10 budget e1" in first
    assert "corrected by fix-1: $0.25 in full, changes it by $0.15" in first
    assert "corrected by fix-0: $0.15 in full, changes nothing" in first
    assert "$0.40 was $0.00 budget e2" in second
    assert "estimated" not in second


def test_a_files_money_is_exact_and_its_sum_is_the_truth(viewer: Client) -> None:
    record(event("e1", "0.000001", input_tokens=7), event("e2", "1234.654321", model="big"), event("e3"))
    record(correct("fix", "e1", "0.25"), correct("down", "e2", "0.10", model="big"))
    found = {row["event_id"]: row for row in sheet(viewer, "/spend/events.csv?period=today")}
    assert found["e1"] == {
        "event_id": "e1", "occurred_at": "2026-08-22T12:00:00Z", "booked_at": "2026-08-22T12:00:00Z",
        "received_at": "2026-08-22T12:00:30Z", "rung": "cheap", "provider": "openrouter", "connection_id": "paid",
        "model": "small", "input_tokens": "7", "output_tokens": "", "cached_input_tokens": "",
        "reported_cost_usd": "0.000001", "full_cost_usd": "0.000001", "adds_usd": "0.000001", "money": "budget",
        "is_estimated": "no", "corrects_event_id": "", "hold_id": "", "sum_of_events": "",
    }  # fmt: skip
    assert (found["fix"]["corrects_event_id"], found["fix"]["adds_usd"]) == ("e1", "0.249999")
    assert found["down"]["adds_usd"] == "-1234.554321"
    assert (found["e3"]["reported_cost_usd"], found["e3"]["is_estimated"]) == ("", "yes")
    assert sum(Decimal(row["adds_usd"]) for row in found.values()) == usd("0.35")
    lines = {row["model"]: row for row in sheet(viewer, "/spend/breakdown.csv?period=today&by=rung-connection-model")}
    assert lines["small"] == {
        "rung": "cheap", "provider": "openrouter", "connection_id": "paid", "model": "small",
        "settled_usd": "0.25", "estimated_usd": "0", "held_usd": "0", "overage_usd": "0",
        "plan_value_usd": "0", "events": "2", "estimated_events": "1",
    }  # fmt: skip


def test_a_file_of_windows_names_each_window(viewer: Client) -> None:
    record(event("e1", "0.10", at=NOW - DAY))
    found = sheet(viewer, "/spend/breakdown.csv?by=window&period=7d&rung=cheap")
    assert [(row["window_start"], row["settled_usd"]) for row in found][:2] == [
        ("2026-08-22T00:00:00Z", "0"),
        ("2026-08-21T00:00:00Z", "0.10"),
    ]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "'quoted"])
def test_no_cell_of_a_file_is_a_formula(viewer: Client, name: str) -> None:
    UsageEventFactory(event_id=name, model=name, booked_at=NOW, occurred_at=NOW)
    (row,) = sheet(viewer, "/spend/events.csv?period=today")
    assert (row["event_id"], row["model"]) == (f"'{name}", f"'{name}")
    (line,) = sheet(viewer, "/spend/breakdown.csv?period=today&by=model")
    assert line["model"] == f"'{name}"


def test_what_a_deleted_connection_spent_stays_and_leads_nowhere_spec_3(viewer: Client) -> None:
    record(event("e1", "0.10"))
    delete_connection(connection=Connection.objects.get(connection_id="paid"), actor=OPERATOR, reason="left", now=NOW)
    html = page(viewer, "?period=today")
    assert rows(html, "money lines")["openrouter/paid deleted"][0] == "$0.10"
    assert "/connections/openrouter/paid" not in html


def test_an_empty_ledger_says_so_and_how_it_is_filled(viewer: Client) -> None:
    html = page(viewer)
    assert "Nothing was booked in this time" in html
    assert "POST /api/v1/telemetry/usage" in html
    assert sheet(viewer, "/spend/events.csv") == []


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("?period=custom", "Give both days"),
        ("?period=custom&from=2026-08-01&to=2026-02-30", "Give both days"),
        ("?period=custom&from=2026-08-09&to=2026-08-01", "before they begin"),
        ("?period=custom&from=2001-01-01&to=2026-08-01", "are too many"),
        ("?period=custom&from=1999-12-31&to=1999-12-31", "from the year 2000 on"),
    ],
)
def test_days_that_are_none_are_refused_in_words(viewer: Client, query: str, complaint: str) -> None:
    html = page(viewer, query)
    assert complaint in html
    assert "present windows are shown" in html


@pytest.mark.parametrize(
    "query",
    [
        "?period=eternity&by=weather&order=;drop&rung=9&page=-1&events=x", "?page=999999&events=999999",
        "?period=custom&from=9999-12-31&to=9999-12-31", "?period=custom&from=9999-12-29&to=9999-12-29",
        "?provider=%00&model=%F0%9F%92%A9%E2%80%AE&connection=%3Cb%3E/%22", "?model=" + "x" * 9000,
        "?period=custom&from=2000-01-01&to=2000-01-01&by=window", "?by=window&page=7&period=30d",
        "?by=window&connection=nobody", "?page=99999999999", "?connection=/", "?connection=a/",
    ],
)  # fmt: skip
def test_an_address_edited_by_hand_shows_a_page_and_gives_a_file(viewer: Client, query: str) -> None:
    record(event("e1", "0.10"))
    assert "<b>/" not in page(viewer, query)
    sheet(viewer, f"/spend/breakdown.csv{query}")
    sheet(viewer, f"/spend/events.csv{query}")


def test_what_is_asked_comes_back_from_its_own_query() -> None:
    text = "period=custom&from=2026-08-01&to=2026-08-03&by=model&order=model&rung=cheap&model=a%2Fb&page=2&events=3"
    asked = asked_of(QueryDict(text), today=date(2026, 8, 22))
    assert query_of(asked) == text
    assert query_of(asked_of(QueryDict(""), today=date(2026, 8, 22))) == ""


def test_long_lists_are_paged_and_past_the_end_the_last_page_stands(viewer: Client) -> None:
    paid = Connection.objects.get(connection_id="paid")
    UsageEvent.objects.bulk_create(
        UsageEventFactory.build(event_id=f"e{n}", connection=paid, model=f"m{n:03}", booked_at=NOW, occurred_at=NOW)
        for n in range(120)
    )
    html = page(viewer, "?period=today&by=model&order=model&page=3&events=3")
    assert list(rows(html, "money lines")) == [f"m{n}" for n in range(100, 120)]
    assert html.count("101 to 120 of 120") == 2
    assert "101 to 120 of 120" in page(viewer, "?period=today&by=model&page=9")
    assert len(sheet(viewer, "/spend/breakdown.csv?period=today&by=model&page=3")) == 120


@pytest.mark.parametrize("role", ["viewer", "operator", "curator", "auditor", "administrator"])
def test_every_role_may_look(client: Client, django_user_model: Any, role: str) -> None:
    user = django_user_model.objects.create_user("ana")
    user.groups.add(Group.objects.get(name=role))
    client.force_login(user)
    page(client)


@pytest.mark.parametrize("path", ["/spend", "/spend/breakdown.csv", "/spend/events.csv"])
def test_nobody_else_may_look_and_nothing_is_changed_here(client: Client, django_user_model: Any, path: str) -> None:
    assert client.get(path)["Location"] == f"/login?next={path}"
    client.force_login(django_user_model.objects.create_user("nobody"))
    assert client.get(path).status_code == 403
    user = django_user_model.objects.create_superuser("root")
    client.force_login(user)
    assert client.post(path).status_code == 405


@pytest.mark.parametrize("query", ["", "?period=30d", "?period=30d&by=rung-connection-model", "?period=30d&by=window"])
def test_a_full_ledger_costs_no_more_queries_and_stays_small(viewer: Client, query: str) -> None:
    def cost() -> tuple[int, int]:
        with CaptureQueriesContext(database) as queries:
            size = len(page(viewer, query).encode())
        return len(queries), size

    set_budget("cheap", "1.00")
    record(event("first", "1.10"), event("second", "0.10", connection_id="plan", model="opus"))
    few, _ = cost()
    connections = [
        ConnectionFactory.build(connection_id=f"c-{n:04}-4a8c-8976-0632721a65aa", provider=f"provider-{n % 40}")
        for n in range(400)
    ]
    Connection.objects.bulk_create(connections)
    UsageEvent.objects.bulk_create(
        UsageEventFactory.build(
            event_id=f"e{n}", connection=connections[n % 400], model=f"models/a-model-of-many-{n % 60}",
            booked_at=NOW - n * timedelta(minutes=17), occurred_at=NOW - n * timedelta(minutes=17),
        )
        for n in range(2000)
    )  # fmt: skip
    many, size = cost()
    assert many == few < 15
    assert size < 200_000


@pytest.mark.parametrize("query", ["?period=30d", "?period=custom&from=2026-08-01&to=2026-08-22&by=model"])
def test_indices_find_the_rows_of_the_list_and_of_the_chart(viewer: Client, query: str) -> None:
    record(event("e1", "0.10"))
    with CaptureQueriesContext(database) as asked:
        page(viewer, query)
    listed = next(q["sql"] for q in asked if "LIMIT 50" in q["sql"])
    drawn = next(q["sql"] for q in asked if '"slot"' in q["sql"])
    is_postgres = database.vendor == "postgresql"
    with database.cursor() as cursor:
        if is_postgres:
            # Of a ledger of one row it finds reading all of it, and sorting that, as good as an index.
            cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        plans = []
        for statement in (listed, drawn):
            cursor.execute(f"{'EXPLAIN' if is_postgres else 'EXPLAIN QUERY PLAN'} {statement}")
            plans.append(" ".join(str(row[-1]) for row in cursor.fetchall()))
    assert "usage_by_instant" in plans[0]
    # Of a ledger of one row PostgreSQL finds one index as good as the other.
    assert ("usage_" if is_postgres else "COVERING INDEX usage_totals") in plans[1]


def test_events_that_are_kept_as_sums_stand_in_every_total_and_the_page_says_so(viewer: Client) -> None:
    at = NOW - 3 * DAY
    record(
        event("e1", "1.00", at=at),
        event("e2", None, at=at, model="nobody-knows", input_tokens=1_000_000),
        event("e3", "2.00"),
    )
    before = page(viewer, "?period=7d")
    told = {kind: rows(before, kind) for kind in ("money totals", "money lines")}
    fold_ledger(before=NOW - 2 * DAY, run=Run(now=NOW))
    html = page(viewer, "?period=7d")
    assert {kind: rows(html, kind) for kind in told} == told
    said = _plain(html.split('id="folded">')[1].split("</p>")[0])
    assert said.startswith("2 events of this time are kept as sums only")
    assert "Events before Thu 14:00 were folded by the retention period, last on 14:00" in said
    assert "1 to 1 of 1" in html.split('id="h-events"')[1]
    assert 'id="folded"' not in page(viewer, "?period=today")


def test_a_file_of_events_tells_sums_in_rows_of_their_own_and_adds_up_as_before(viewer: Client) -> None:
    at = NOW - 3 * DAY + timedelta(minutes=7)
    record(
        event("e1", "1.00", at=at), event("e2", "0.50", at=at),
        event("e3", None, at=at, model="nobody-knows", input_tokens=1_000_000),
        event("e4", None, at=at, model="nobody-knows"), event("e5", "2.00"),
    )  # fmt: skip

    def total() -> Decimal:
        return sum((Decimal(row["adds_usd"]) for row in sheet(viewer, "/spend/events.csv?period=7d")), Decimal(0))

    before = total()
    fold_ledger(before=NOW - 2 * DAY, run=Run(now=NOW))
    assert total() == before
    found = {row["sum_of_events"] + row["model"]: row for row in sheet(viewer, "/spend/events.csv?period=7d")}
    assert set(found) == {"small", "2small", "2nobody-knows"}
    one = found["2small"]
    assert (one["event_id"], one["booked_at"], one["received_at"]) == ("", "2026-08-19T12:00:00Z", "")
    assert (one["adds_usd"], one["full_cost_usd"], one["is_estimated"]) == ("1.50", "1.50", "no")
    assert found["2nobody-knows"]["is_estimated"] == "yes"
