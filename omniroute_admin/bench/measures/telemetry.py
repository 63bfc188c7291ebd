"""Bulk telemetry over HTTP, beside a bare `bulk_create` of the rows it wrote, into the same tables."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

from django.db import connection as database
from django.db import models, transaction

from ladder.models import QuotaReading, UsageEvent
from omniroute_admin.bench.bodies import readings_body, usage_body
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.measures.pools import stage_client
from omniroute_admin.bench.results import Result
from omniroute_admin.bench.stage import Stage, alternately, beside_floor
from omniroute_admin.common import clock
from omniroute_admin.common.services.statements import quoted

ITEMS = 1_000
TARGET = 4.0
_LONG_BEFORE = timedelta(days=30)
_FLOOR_IS = "a bare bulk_create of the same rows"


def measure_readings(stage: Stage) -> Iterator[Result]:
    """Measure readings in one call, each with a new percent."""
    sent: list[datetime] = []

    def make(turn: int) -> bytes:
        sent.append(clock.now())
        return readings_body(readers=stage.fleet.readers, count=ITEMS, turn=turn, now=sent[-1])

    def again(_: int) -> list[models.Model]:
        rows = list(QuotaReading.objects.filter(observed_at__gte=sent[-1]))
        return [_copy(row, observed_at=row.observed_at - _LONG_BEFORE) for row in rows]

    yield _measure(stage, "readings-1000", "/api/v1/telemetry/readings", make, again)


def measure_usage(stage: Stage) -> Iterator[Result]:
    """Measure usage events in one call, all of them new."""
    start = clock.now()

    def make(turn: int) -> bytes:
        name = f"{start.timestamp():.0f}-{turn}"
        return usage_body(places=stage.fleet.places, count=ITEMS, turn=name, now=clock.now())

    def again(turn: int) -> list[models.Model]:
        rows = UsageEvent.objects.filter(event_id__startswith=f"bench-{start.timestamp():.0f}-{turn}-")
        return [_copy(row, event_id=f"floor-{row.event_id}") for row in rows]

    yield _measure(stage, "usage-1000", "/api/v1/telemetry/usage", make, again)


def _measure(
    stage: Stage,
    name: str,
    path: str,
    make: Callable[[int], bytes],
    again: Callable[[int], list[models.Model]],
) -> Result:
    with stage_client(stage) as client:

        def send(turn: int) -> float:
            answer = client.expect(stage.post(path, make(turn)))
            if answer.json()["accepted"] != ITEMS:
                raise BenchError(f"{path}: not all of {ITEMS} items were accepted: {answer.body[:300]!r}")
            return answer.seconds

        def insert(turn: int) -> float:
            return _insert(again(turn))

        timings = alternately(stage.options.few_rounds, name, send, insert, warm_up=1, may_swap=False)
    return beside_floor(name=name, timings=timings, floor_is=_FLOOR_IS, target=TARGET)


def _copy(row: models.Model, **changes: Any) -> models.Model:
    values = {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if not field.primary_key
    }
    return type(row)(**{**values, **changes})


def _insert(rows: list[models.Model]) -> float:
    """Insert rows as one transaction, return the seconds, and take them out again."""
    model = type(rows[0])
    last = model._default_manager.order_by("-pk").values_list("pk", flat=True)[0]
    began = perf_counter()
    with transaction.atomic():
        model._default_manager.bulk_create(rows)
    seconds = perf_counter() - began
    with database.cursor() as cursor:
        # The ledger's own manager deletes nothing.
        cursor.execute(f"DELETE FROM {quoted(model._meta.db_table)} WHERE id > %s", [last])  # noqa: S608
    return seconds
