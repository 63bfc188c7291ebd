"""What the first page of each screen costs, for a small fleet and for a large one (SPEC 5)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection as database
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from ladder.models import Connection, QuotaReading, RungFlip, RungSample, TimelineCursor, UsageEvent
from ladder.selectors import drawn
from omniroute_admin.bench.fleet import write_fleet
from omniroute_admin.bench.plan import MIX, PlannedProvider, plan_fleet
from tests.factories import UsageEventFactory

pytestmark = pytest.mark.django_db(transaction=True)

SMALL = {"connections": 40, "models": 12, "providers": 8}
LARGE = {"connections": 2_000, "models": 60, "providers": 40}
MOST_QUERIES, MOST_BYTES = 15, 200_000
OF_ONE = 20
"""The page of one connection tells windows, cooldowns, history, spend and pools of it: more tables, still a number."""

PAGES = (
    "/", "/?state=usable&sort=reset", "/?rung=subscription&page=2", "/pools/auto/thrifty", "/connections",
    "/connections?q=cheap&sort=provider", "/tuning", "/catalogue", "/catalogue/prices", "/catalogue/tier-overrides",
    "/catalogue/free-providers", "/catalogue/aliases", "/catalogue/price-sources", "/catalogue/uncurated",
    "/catalogue/files", "/spend", "/timeline", "/timeline?range=7d", "/audit", "/audit?what=subscription", "/keys",
    "/connections/new", "/keys/new",
)  # fmt: skip


def named(prefix: str, plan: Sequence[PlannedProvider]) -> list[PlannedProvider]:
    """Return a plan under names of its own, so that it stands beside another."""
    return [
        msgspec.structs.replace(
            one,
            name=f"{one.name}-{prefix}",
            models=tuple(f"{prefix}-{model}" for model in one.models),
            connections=tuple(
                msgspec.structs.replace(each, connection_id=f"{prefix}-{each.connection_id}")
                for each in one.connections
            ),
        )
        for one in plan
    ]


def fill(prefix: str, sizes: dict[str, int], *, now: datetime) -> None:
    """Store a fleet, and of each of its connections two changes, two flips and three events."""
    QuotaReading.objects.all().delete()  # the fleet's own are written of every window there is
    write_fleet(named(prefix, plan_fleet(**sizes, mix=MIX)), now=now)
    rows = list(Connection.objects.filter(connection_id__startswith=f"{prefix}-"))
    add_history(rows, now=now)
    add_flips(rows, now=now)
    UsageEvent.objects.bulk_create(
        UsageEventFactory.build(
            event_id=f"{prefix}-{row.pk}-{number}", connection=row, occurred_at=now - timedelta(minutes=number)
        )
        for row in rows
        for number in range(3)
    )


def add_history(rows: list[Connection], *, now: datetime) -> None:
    version = Connection.history.model
    fields = [field.attname for field in Connection._meta.concrete_fields if hasattr(version, field.attname)]
    version.objects.bulk_create(
        version(
            **{name: getattr(row, name) for name in fields} | {"label": f"{number}"},
            history_date=now - timedelta(seconds=row.pk, minutes=number),
            history_type="~",
            history_actor="mira",
        )
        for row in rows
        for number in range(2)
    )


def add_flips(rows: list[Connection], *, now: datetime) -> None:
    RungFlip.objects.bulk_create(
        RungFlip(
            at=now - timedelta(seconds=row.pk, minutes=number), kind="connection", connection=row, rung="subscription",
            from_state="usable", to_state="exhausted", code="quota_exhausted", cause="reading", revision=1,
        )
        for row in rows
        for number in range(2)
    )  # fmt: skip


def costs(client: Client, pages: Sequence[str]) -> dict[str, int]:
    """Return how many queries each page makes once the process has the snapshot; no page is too large."""
    found = {}
    for page in pages:
        client.get(page)
        with CaptureQueriesContext(database) as queries:
            answer = client.get(page)
        assert answer.status_code == 200, page
        assert len(answer.content) < MOST_BYTES, page
        found[page] = len(queries)
    return found


@pytest.fixture
def administrator(client: Client, django_user_model: Any) -> Client:
    client.force_login(django_user_model.objects.create_superuser("ada"))
    return client


def test_each_page_costs_the_same_few_queries_for_a_small_fleet_and_a_large_one(
    administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Sums of many rows are remembered, for one query more: here those of few are too.
    monkeypatch.setattr(drawn, "KEPT_FROM", 1)
    now = timezone.now()
    TimelineCursor.objects.create(pk=1, at=now, revision=1, picture=[], prints={})
    RungSample.objects.create(at=now.replace(second=0, microsecond=0), rung="cheap", usable=1, total=1, is_serving=True)
    fill("few", SMALL, now=now)
    one = Connection.objects.filter(provider__startswith="subscription").order_by("pk").first()
    assert one is not None
    page_of_one = f"/connections/{one.provider}/{one.connection_id}"
    few = costs(administrator, [*PAGES, page_of_one])
    fill("many", LARGE, now=now)
    many = costs(administrator, [*PAGES, page_of_one])
    assert {page: (few[page], many[page]) for page in few if few[page] < many[page]} == {}
    assert many.pop(page_of_one) < OF_ONE
    assert {page: count for page, count in many.items() if count >= MOST_QUERIES} == {}
