import json

import pytest
import time_machine

from ladder.models import QuotaReading, QuotaWindow
from tests.factories import ConnectionFactory
from tests.factories_ladder import NOW
from tests.router import make_router

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/telemetry/readings"
OBSERVED = "2026-08-22T11:59:30Z"


@pytest.fixture(autouse=True)
def at_now(db):
    ConnectionFactory(connection_id="c1")
    with time_machine.travel(NOW, tick=False):
        yield


def item(**fields):
    return {"connection_id": "c1", "window": "5h", "observed_at": OBSERVED, "remaining_percent": 50} | fields


def told(router, *items, **rest):
    response = router.post(ADDRESS, {"readings": list(items)} | rest)
    assert response.status_code == 200, response.content
    return response.json()


def test_a_reading_is_committed_and_answered_with_four_counts_spec_4(router):
    assert told(router, item(remaining_percent=41.123456789)) == {
        "accepted": 1,
        "duplicates": 0,
        "superseded": 0,
        "rejected": [],
    }
    assert str(QuotaWindow.objects.get().remaining_percent) == "41.12345678"
    assert QuotaReading.objects.get().raw == "41.123456789"


def test_each_bad_item_is_told_by_index_and_the_good_ones_stand_spec_4(router):
    answer = told(
        router,
        item(),
        item(remaining_percent="50"),
        item(window=4, colour="red"),
        item(observed_at="2026-08-22T11:59:30"),
        item(reset_at="50000-01-01T00:00:00Z"),
        item(window="weekly", reset_at=1787418000),
        item(connection_id="nobody"),
        item(status="fine"),
        "not an object",
        {"connection_id": "c1"},
        item(observed_at="2026-08-22T12:01:00.000001Z"),
        item(used_percent=50),
    )
    assert answer["accepted"] == 2
    assert [(one["index"], one["code"]) for one in answer["rejected"]] == [
        (1, "invalid_item"),
        (2, "invalid_item"),
        (3, "invalid_item"),
        (4, "invalid_reset_at"),
        (6, "unknown_connection"),
        (7, "invalid_item"),
        (8, "invalid_item"),
        (9, "invalid_item"),
        (10, "observed_in_future"),
        (11, "conflicting_values"),
    ]
    details = {one["index"]: one["detail"] for one in answer["rejected"]}
    assert ("window" in details[2], "colour" in details[2]) == (True, True)
    assert ("window" in details[9], "observed_at" in details[9]) == (True, True)
    assert QuotaWindow.objects.count() == 2


def test_a_rejection_speaks_of_json_and_of_the_real_reason(router):
    answer = told(
        router,
        "not an object",
        item(window=4, unlimited="yes"),
        item(reset_at=1_515_709_728_000_000),
        item(reset_at="soon"),
        item(provider=""),
    )
    details = [one["detail"] for one in answer["rejected"]]
    assert details == [
        "Expected object, got text",
        "window: Expected text, got whole number; unlimited: Expected true or false or null, got text",
        "reset_at: too far in the future to be meant",
        "reset_at: give an ISO instant with a zone, or epoch seconds or milliseconds",
        "provider: give a provider's id, or leave it out",
    ]


def test_an_unreadable_item_still_names_its_window_in_a_complete_list_spec_4(router):
    told(router, item(), item(window="weekly"))
    bad = item(window="weekly", remaining_percent={}, colour="red", observed_at="2026-08-22T11:59:40Z")
    told(router, item(observed_at="2026-08-22T11:59:40Z"), bad, complete_for=["c1"])
    assert QuotaWindow.objects.filter(is_reported=True).count() == 2
    told(router, item(observed_at="2026-08-22T11:59:50Z"), complete_for=["c1"])
    assert QuotaWindow.objects.get(is_reported=True).window == "5h"


@pytest.mark.parametrize("body", ['{"readings": [{"remaining_percent": NaN}]}', "{", "", "[1", b"\xff", "[" * 100_000])
def test_what_is_no_json_is_refused_whole_spec_4(router, body):
    response = router.post(ADDRESS, body)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/readings"),
        ({"readings": {}}, "/readings"),
        ({"readings": [], "colour": "red"}, "/colour"),
        ({"readings": [], "complete_for": "c1"}, "/complete_for"),
        ({"readings": [], "complete_for": ["c1", 3]}, "/complete_for/1"),
        ([], ""),
    ],
)
def test_a_body_of_another_form_is_refused_by_name(router, body, pointer):
    response = router.post(ADDRESS, json.dumps(body))
    assert response.status_code == 400
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]


def test_5000_items_are_taken_and_one_more_is_413_spec_4(router):
    items = [
        item(window=f"w{number % 50}", observed_at=f"2026-08-22T11:{number // 50 % 60:02}:00Z")
        for number in range(5001)
    ]
    response = router.post(ADDRESS, {"readings": items})
    assert (response.status_code, QuotaReading.objects.count()) == (413, 0)
    answer = told(router, *items[:5000])
    assert answer["accepted"] + answer["duplicates"] + answer["superseded"] == 5000
    assert router.post(ADDRESS, {"readings": ["x"] * 5001}).status_code == 413
    assert router.post(ADDRESS, {"readings": [], "complete_for": ["c1"] * 5001}).status_code == 413


def test_an_empty_body_of_readings_is_no_error(router):
    assert told(router) == {"accepted": 0, "duplicates": 0, "superseded": 0, "rejected": []}


def test_reporting_needs_its_scope_spec_4(db):
    assert make_router("connections:write").post(ADDRESS, {"readings": []}).status_code == 403
    assert make_router("telemetry:write").post(ADDRESS, {"readings": []}).status_code == 200


def test_a_reading_counts_in_the_next_answer_of_the_api_spec_3(router):
    told(router, item(remaining_percent=1))
    assert router.get("/api/v1/connections/c1/windows").json()["results"][0]["verdict"] == "exhausted"
    told(router, item(observed_at="2026-08-22T11:59:40Z"))
    assert router.get("/api/v1/connections/c1/windows").json()["results"][0]["verdict"] == "usable"
