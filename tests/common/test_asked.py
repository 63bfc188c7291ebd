"""Every answer has an id, every request is counted by the template of its address, and access lines hold no secret."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client, override_settings

from omniroute_admin.common import meters
from omniroute_admin.common.asked import request_id_of
from omniroute_admin.common.logs import JSON, LINE, formatter
from tests.router import make_router


def requests() -> dict[tuple[str, ...], float]:
    return {labels: sum(numbers[1:]) for labels, numbers in meters.totals()[meters.REQUESTS.name].items()}


def counted_in(work: Any) -> dict[tuple[str, ...], float]:
    """Return how many requests were counted, by labels, while something was done."""
    before = requests()
    work()
    return {
        labels: number - before.get(labels, 0) for labels, number in requests().items() if number != before.get(labels)
    }


@pytest.mark.parametrize("given", ["a", "A-b_c.9", "x" * 64])
def test_an_id_that_came_with_a_request_goes_back_with_its_answer(client: Client, given: str) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": given})["X-Request-Id"] == given


@pytest.mark.parametrize("given", ["", "x" * 65, "a b", "a\nb: c", "caf\u00e9", "<b>", "a/b", "a\x00"])
def test_an_id_that_cannot_stand_in_a_header_or_a_log_is_replaced(given: str) -> None:
    made = request_id_of(given)
    assert made != given
    assert request_id_of(made) == made


def test_ids_that_are_made_are_never_the_same() -> None:
    assert len({request_id_of(None) for _ in range(1_000)}) == 1_000


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        ("get", "/healthz", ("healthz", "GET", "2xx")),
        ("post", "/healthz", ("healthz", "POST", "4xx")),
        ("get", "/api/v1/pools/auto/thrifty", ("api/v1/pools/<path:pool_id>", "GET", "4xx")),
        (
            "get",
            "/api/v1/connections/orl_secret/explain",
            ("api/v1/connections/<str:connection_id>/explain", "GET", "4xx"),
        ),
        ("get", "/no/such/page", ("unmatched", "GET", "4xx")),
        ("get", "/static/no-such-file.css", ("static", "GET", "4xx")),
        ("get", "/connections", ("connections", "GET", "3xx")),
    ],
)
def test_a_request_is_counted_once_by_template_method_and_class(
    client: Client, method: str, path: str, labels: tuple[str, ...]
) -> None:
    assert counted_in(lambda: getattr(client, method)(path)) == {labels: 1}


def test_methods_that_nobody_knows_share_one_label(client: Client) -> None:
    calls = counted_in(lambda: [client.generic(name, "/healthz") for name in ("BREW", "PROPFIND", "X" * 99)])
    assert calls == {("healthz", "other", "4xx"): 3}


@pytest.mark.django_db
def test_a_refusal_is_counted_by_its_code() -> None:
    def denials() -> dict[tuple[str, ...], list[float]]:
        return meters.totals()[meters.PROBLEMS.name]

    before = denials()
    make_router("pools:read").get("/api/v1/settings")
    Client().get("/api/v1/settings")
    after = denials()
    grown = {key[0]: numbers[0] - before.get(key, [0.0])[0] for key, numbers in after.items()}
    assert {code: number for code, number in grown.items() if number} == {"scope_lacking": 1, "unauthenticated": 1}


# --- a line for each request -----------------------------------------------------------------------------------------
@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Iterator[Any]:
    """Return what the log holds, as JSON, while access lines are wanted."""
    caplog.set_level(logging.INFO, logger="omniroute_admin.access")
    with override_settings(ACCESS_LOG=True):
        yield lambda: [json.loads(formatter(form=JSON).format(one)) for one in caplog.records]


@pytest.mark.django_db
def test_a_line_tells_who_asked_what_and_how_long_it_took(lines: Any) -> None:
    router = make_router("pools:read")
    answer = router.get("/v1/models?pairs=true", **{"X-Request-Id": "find-me"})
    assert answer.status_code == 200
    found = next(one for one in lines() if one["logger"] == "omniroute_admin.access")
    assert found.items() >= {
        "request_id": "find-me", "method": "GET", "path": "/v1/models", "route": "v1/models", "status": 200,
    }.items()  # fmt: skip
    assert found["actor"].startswith("key a router (orl_")
    assert found["duration_ms"] > 0


@pytest.mark.django_db
def test_no_line_holds_what_follows_the_question_mark_or_a_key(lines: Any, caplog: pytest.LogCaptureFixture) -> None:
    router = make_router("pools:read")
    secret = router.headers["Authorization"].removeprefix("Bearer ")
    for path in (f"/v1/models?key={secret}", f"/api/v1/connections/{secret}?token=hidden", f"/{secret}%0Aforged"):
        router.get(path)
    written = json.dumps(lines())
    assert len(lines()) >= 3
    assert secret[:13] not in written
    assert "hidden" not in written
    assert not any("\n" in formatter(form=LINE).format(one) for one in caplog.records)


def test_no_line_is_written_unless_it_is_wanted(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="omniroute_admin.access")
    client.get("/healthz")
    assert caplog.records == []
