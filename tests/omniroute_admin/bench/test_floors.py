"""The floors take and give what the product does, let in whom it lets in, and the fleet is what it says."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client, override_settings

from ladder.core.occupancy import build_occupancy
from ladder.selectors.state import get_snapshot
from omniroute_admin.bench import floors
from omniroute_admin.bench.bodies import pool_body, recurring_candidates
from omniroute_admin.bench.fleet import make_session, write_fleet
from omniroute_admin.bench.plan import MIX, plan_fleet
from omniroute_admin.bench.stage import read_fleet
from omniroute_admin.common import clock
from tests.router import make_router

pytestmark = pytest.mark.django_db
HEADERS = ("ETag", "Cache-Control", "X-Ladder-Revision", "Content-Type")
PRODUCT, FLOOR = "/api/v1/pools/auto/thrifty", "/api/v1/bench/pools/auto/thrifty"
UNCHANGED = "/api/v1/bench/unchanged/auto/thrifty"


@pytest.fixture(autouse=True)
def _bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(floors, "_kept", {})
    write_fleet(plan_fleet(connections=60, models=20, providers=10, mix=MIX), now=clock.now())
    with override_settings(ROOT_URLCONF="omniroute_admin.bench.urls"):
        yield


def without_instants(answer: Any) -> dict[str, Any]:
    return {name: value for name, value in answer.json().items() if name != "evaluated_at"}


def test_the_floor_of_get_sends_the_bytes_and_headers_of_the_product() -> None:
    router = make_router()
    product, floor = router.get(PRODUCT), router.get(FLOOR)
    assert without_instants(floor) == without_instants(product)
    assert len(floor.content) == len(product.content) > 1000
    assert [floor[name] for name in HEADERS] == [product[name] for name in HEADERS]


def test_the_floor_of_post_sends_as_many_bytes_as_the_product() -> None:
    router, fleet = make_router(), read_fleet(now=clock.now())
    body = pool_body(recurring_candidates(models=fleet.models, connections=fleet.connections, count=20, each=3))
    product = router.client.post(PRODUCT, body, content_type="application/json", headers=router.headers)
    for _ in range(2):  # the first is kept, the second is encoded from what was kept
        floor = router.client.post(FLOOR, body, content_type="application/json", headers=router.headers)
        assert without_instants(floor) == without_instants(product)
        assert len(floor.content) == len(product.content)


def test_the_floor_of_304_has_the_headers_and_no_content() -> None:
    router = make_router()
    etag = router.get(FLOOR)["ETag"]
    product, floor = (router.get(path, **{"If-None-Match": etag}) for path in (PRODUCT, UNCHANGED))
    assert (floor.status_code, floor.content) == (product.status_code, product.content) == (304, b"")
    own = {"Allow": "GET, POST, HEAD, OPTIONS", "X-Request-Id": product["X-Request-Id"]}
    assert {**dict(floor.items()), **own} == dict(product.items())


@pytest.mark.parametrize("path", [FLOOR, UNCHANGED])
def test_a_floor_checks_the_key_and_its_scope_as_the_product_does(path: str) -> None:
    assert Client().get(path).status_code == 401
    assert make_router("telemetry:write").get(path).status_code == 403


def test_the_floor_of_the_poll_is_for_who_is_signed_in() -> None:
    client = Client()
    assert client.get("/live/bench").status_code == 401
    user, session = make_session()
    client.cookies["sessionid"] = session
    assert client.get("/live/bench").status_code == 204
    assert client.get("/").status_code == 200
    assert get_user_model().objects.get() == user
    assert not user.has_usable_password()


def test_every_connection_of_the_fleet_is_on_the_rung_of_its_kind() -> None:
    now = clock.now()
    places = build_occupancy(snapshot=get_snapshot(now=now), now=now).places
    rungs = {(place.provider.partition("-")[0], place.rung) for place in places}
    kinds = {"subscription": "subscription", "overage": "subscription", "free": "free", "cheap": "cheap"}
    assert rungs == {*kinds.items(), ("premium", "premium")}
    assert len({place.connection_id for place in places}) == 60
