"""Many prices at once come out as one call each would make them (SPEC 3: append-only)."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from billing_catalog.models import LoadedFact, ModelPrice
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services.price_batch import Wanted, set_prices
from billing_catalog.services.prices import create_price, end_price, update_price
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import NOW
from tests.factories import ModelPriceFactory

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)
CHANGES: dict[str, Any] = {"input_usd_per_million": Decimal("0.5"), "capabilities": ["vision"]}


def one_by_one(wanted: list[Wanted], act: dict[str, Any]) -> None:
    for one in wanted:
        values: Any = one.values
        if one.price is None:
            create_price(values=values, **act)
        else:
            update_price(price=one.price, changes=values, **act)


def at_once(wanted: list[Wanted], act: dict[str, Any]) -> None:
    set_prices(wanted=wanted, **act)


def outcome(write: Callable[..., None], act: dict[str, Any]) -> dict[str, Any]:
    """Make every case, write it, and return what stands afterwards."""
    with transaction.atomic():
        ModelPriceFactory(model="plain", rank=4)
        ModelPriceFactory(model="listed", source="genai-prices")
        ModelPriceFactory(model="ranked", source="genai-prices")
        ModelPriceFactory(model="followed", effective_to=NOW + DAY)
        ModelPriceFactory(model="followed", effective_from=NOW + DAY, input_usd_per_million=Decimal(9))
        ModelPriceFactory(model="begun", effective_from=NOW)
        ModelPriceFactory(model="planned", effective_from=NOW + DAY)
        gone = ModelPriceFactory(model="gone", source="genai-prices")
        end_price(price=gone, **act | {"now": NOW - DAY})
        wanted = [
            Wanted(row, {"rank": 1} if row.model == "ranked" else CHANGES)
            for row in prices_in_force(now=NOW).order_by("model")
        ]
        wanted += [
            Wanted(None, {"provider": "openai", "model": model, **CHANGES}) for model in ("fresh", "gone", "planned")
        ]
        write(wanted, act)
        names = [field.name for field in ModelPrice._meta.concrete_fields if field.name != "id"]
        rows = sorted(ModelPrice.objects.values_list(*names), key=str)
        past = ModelPrice.history.values_list("model", "history_type", "history_actor", "history_change_reason",
                                              "effective_from", "effective_to")  # fmt: skip
        found = {"rows": rows, "past": sorted(past, key=str), "marks": list(LoadedFact.objects.values_list("key"))}
        transaction.set_rollback(True)
    return found


def test_many_prices_at_once_come_out_as_one_call_each_makes_them(act: dict[str, Any]) -> None:
    assert outcome(at_once, act) == outcome(one_by_one, act)


def test_the_statements_do_not_grow_with_each_price_and_the_revision_moves_once(act: dict[str, Any]) -> None:
    def cost(name: str, number: int) -> int:
        rows = [ModelPriceFactory(model=f"{name}-{count}") for count in range(number)]
        before = current_revision()
        with CaptureQueriesContext(connection) as queries:
            set_prices(wanted=[Wanted(row, CHANGES) for row in rows], **act)
        assert current_revision() == before + 1
        return len(queries)

    # A database takes only so many parameters in one statement: some are cut in a few.
    assert cost("many", 100) < cost("few", 2) + 10
