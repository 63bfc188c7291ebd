"""SPEC 3: prices are append-only, with effective from and to."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from billing_catalog.errors import BadPricePeriod, PriceHasEnded
from billing_catalog.models import LoadedFact, ModelPrice
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services.prices import create_price, end_price, update_price
from omniroute_admin.common.errors import Conflict, NotFound
from omniroute_admin.common.selectors.revision import current_revision
from tests.billing_catalog.acting import ACTOR, NOW, overlapping_prices
from tests.factories import ModelPriceFactory, ProviderAliasFactory
from tests.factories_catalog import MADE_AT

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def values(**changes: Any) -> Any:
    return {"provider": "openai", "model": "gpt-5", "input_usd_per_million": Decimal("1.25")} | changes


def periods() -> list[tuple[datetime, datetime | None]]:
    rows = ModelPrice.objects.order_by("effective_from")
    return list(rows.values_list("effective_from", "effective_to"))


def test_the_first_price_of_a_model_acts_from_now_on(act: dict[str, Any]) -> None:
    price = create_price(values=values(provider=" OpenAI ", model=" gpt-5 "), **act)
    assert (price.provider, price.model, price.source) == ("openai", "gpt-5", "operator")
    assert (price.effective_from, price.effective_to, price.rank) == (NOW, None, None)
    assert price.history.get().history_actor == ACTOR.name


def test_a_new_price_ends_the_open_one_where_it_begins(act: dict[str, Any]) -> None:
    old = ModelPriceFactory(model="gpt-5")
    create_price(values=values(), **act)
    assert periods() == [(MADE_AT, NOW), (NOW, None)]
    old.refresh_from_db()
    assert old.history.order_by("-history_id")[0].history_change_reason == "because"


def test_a_price_planned_ahead_ends_the_present_one_then(act: dict[str, Any]) -> None:
    ModelPriceFactory(model="gpt-5")
    create_price(values=values(effective_from=NOW + DAY), **act)
    assert periods() == [(MADE_AT, NOW + DAY), (NOW + DAY, None)]
    assert prices_in_force(now=NOW).get().effective_from == MADE_AT
    assert prices_in_force(now=NOW + DAY).get().effective_from == NOW + DAY


def test_a_price_before_a_planned_one_ends_where_that_begins(act: dict[str, Any]) -> None:
    ModelPriceFactory(model="gpt-5")
    create_price(values=values(effective_from=NOW + DAY), **act)
    create_price(values=values(), **act)
    assert periods() == [(MADE_AT, NOW), (NOW, NOW + DAY), (NOW + DAY, None)]


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"effective_from": MADE_AT + DAY}, "/effective_from"),
        ({"effective_from": NOW, "effective_to": NOW + 2 * DAY}, "/effective_to"),
    ],
    ids=["inside history", "into a later one"],
)
def test_a_period_that_overlaps_is_refused_and_nothing_changes(
    changes: dict[str, Any], pointer: str, act: dict[str, Any]
) -> None:
    ModelPriceFactory(model="gpt-5", effective_to=MADE_AT + 2 * DAY)
    ModelPriceFactory(model="gpt-5", effective_from=MADE_AT + 2 * DAY, effective_to=NOW)
    ModelPriceFactory(model="gpt-5", effective_from=NOW + DAY)
    before = periods()
    with pytest.raises(BadPricePeriod) as caught:
        create_price(values=values(**changes), **act)
    assert [error.pointer for error in caught.value.errors] == [pointer]
    assert periods() == before


def test_a_second_price_of_one_start_is_in_conflict_with_the_first(act: dict[str, Any]) -> None:
    first = ModelPriceFactory(model="gpt-5", effective_from=NOW + DAY)
    with pytest.raises(Conflict, match=f"Price {first.pk} ") as caught:
        create_price(values=values(effective_from=NOW + DAY), **act)
    assert [error.pointer for error in caught.value.errors] == ["/provider", "/model", "/effective_from"]


def test_prices_of_one_model_never_overlap_whatever_order_they_come_in(act: dict[str, Any]) -> None:
    for days in (3, 1, 2, 0, 5, 4):
        create_price(values=values(effective_from=NOW + days * DAY), **act)
    assert periods() == [
        *[(NOW + day * DAY, NOW + (day + 1) * DAY) for day in range(5)],
        (NOW + 5 * DAY, None),
    ]
    assert overlapping_prices(provider="openai") == []


def test_a_change_is_a_new_row_from_now_and_the_old_one_keeps_its_numbers(act: dict[str, Any]) -> None:
    old = ModelPriceFactory(model="gpt-5", rank=4, capabilities=["vision"])
    new = update_price(price=old, changes={"input_usd_per_million": Decimal("0.5")}, **act)
    assert new.pk != old.pk
    assert (new.input_usd_per_million, new.output_usd_per_million) == (Decimal("0.5"), Decimal(15))
    assert (new.rank, new.capabilities, new.effective_from, new.effective_to) == (4, ["vision"], NOW, None)
    old.refresh_from_db()
    assert (old.input_usd_per_million, old.effective_to) == (Decimal(3), NOW)


@pytest.mark.parametrize("changes", [{"rank": 1}, {"capabilities": ["vision"]}, {"source": "contract"}])
def test_a_correction_of_anything_else_is_a_new_row_too(changes: dict[str, Any], act: dict[str, Any]) -> None:
    old = ModelPriceFactory(model="gpt-5")
    new = update_price(price=old, changes=changes, **act)
    assert (new.pk != old.pk, periods()) == (True, [(MADE_AT, NOW), (NOW, None)])


def test_numbers_of_an_operator_are_the_operators_and_a_rank_alone_is_not(act: dict[str, Any]) -> None:
    listed = ModelPriceFactory(model="a", source="litellm")
    assert update_price(price=listed, changes={"rank": 1}, **act).source == "litellm"
    listed = ModelPriceFactory(model="b", source="litellm")
    assert update_price(price=listed, changes={"output_usd_per_million": None}, **act).source == "operator"
    listed = ModelPriceFactory(model="c", source="litellm")
    assert update_price(price=listed, changes={"capabilities": ["vision"]}, **act).source == "operator"
    listed = ModelPriceFactory(model="d", source="litellm")
    assert update_price(price=listed, changes={"source": "litellm", "rank": 2}, **act).source == "litellm"


def test_no_one_writes_under_the_name_of_a_list(act: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="sync_prices"):
        create_price(values=values(source="genai-prices"), **act)
    with pytest.raises(ValidationError, match="sync_prices"):
        update_price(price=ModelPriceFactory(), changes={"source": "litellm"}, **act)


def test_a_change_that_changes_nothing_writes_nothing(act: dict[str, Any]) -> None:
    old = ModelPriceFactory(model="gpt-5", capabilities=["reasoning", "vision"])
    before = current_revision()
    same = {"input_usd_per_million": Decimal("3.0"), "capabilities": [" Vision", "reasoning"], "effective_to": None}
    assert update_price(price=old, changes=same, **act) == old
    assert (current_revision(), ModelPrice.objects.count(), old.history.count()) == (before, 1, 1)


def test_a_price_that_has_ended_is_history(act: dict[str, Any]) -> None:
    old = ModelPriceFactory(model="gpt-5", effective_to=NOW)
    new = ModelPriceFactory(model="gpt-5", effective_from=NOW)
    with pytest.raises(PriceHasEnded, match=f"the present one is {new.pk}"):
        update_price(price=old, changes={"rank": 1}, **act)
    with pytest.raises(PriceHasEnded):
        end_price(price=old, **act)


def test_a_price_that_has_not_begun_is_changed_as_it_is(act: dict[str, Any]) -> None:
    planned = create_price(values=values(effective_from=NOW + DAY), **act)
    changed = update_price(price=planned, changes={"input_usd_per_million": Decimal(9)}, **act)
    assert (changed.pk, changed.input_usd_per_million, periods()) == (planned.pk, 9, [(NOW + DAY, None)])


def test_two_changes_in_one_instant_leave_one_row(act: dict[str, Any]) -> None:
    old = ModelPriceFactory(model="gpt-5")
    new = update_price(price=old, changes={"rank": 1}, **act)
    again = update_price(price=new, changes={"rank": 2}, **act)
    assert (again.pk, again.rank, periods()) == (new.pk, 2, [(MADE_AT, NOW), (NOW, None)])


def test_the_end_of_a_price_can_be_planned_and_taken_back(act: dict[str, Any]) -> None:
    price = ModelPriceFactory(model="gpt-5")
    assert update_price(price=price, changes={"effective_to": NOW + DAY}, **act).pk == price.pk
    assert periods() == [(MADE_AT, NOW + DAY)]
    update_price(price=price, changes={"effective_to": None}, **act)
    assert periods() == [(MADE_AT, None)]
    with pytest.raises(BadPricePeriod, match="is past"):
        update_price(price=price, changes={"effective_to": NOW}, **act)


def test_an_end_never_lies_behind_the_start_of_the_next_row(act: dict[str, Any]) -> None:
    price = ModelPriceFactory(model="gpt-5", effective_to=NOW + DAY)
    ModelPriceFactory(model="gpt-5", effective_from=NOW + DAY)
    for end in (None, NOW + 2 * DAY):
        with pytest.raises(BadPricePeriod):
            update_price(price=price, changes={"effective_to": end}, **act)


def test_deleting_a_price_ends_it_now_and_keeps_it_in_the_books(act: dict[str, Any]) -> None:
    price = ModelPriceFactory(model="gpt-5")
    end_price(price=price, **act)
    assert periods() == [(MADE_AT, NOW)]
    assert not prices_in_force(now=NOW).exists()


def test_deleting_a_price_that_has_not_begun_gives_the_one_before_it_its_time_back(act: dict[str, Any]) -> None:
    ModelPriceFactory(model="gpt-5")
    planned = create_price(values=values(effective_from=NOW + DAY), **act)
    end_price(price=planned, **act)
    assert periods() == [(MADE_AT, None)]
    assert ModelPrice.history.filter(id=planned.pk, history_type="-").exists()
    with pytest.raises(NotFound):
        end_price(price=planned, **act)


def test_only_the_end_of_a_list_price_is_remembered_and_a_new_price_forgets_it(act: dict[str, Any]) -> None:
    end_price(price=ModelPriceFactory(model="own"), **act)
    end_price(price=ModelPriceFactory(model="GPT-5", source="litellm"), **act)
    assert list(LoadedFact.objects.values_list("kind", "key")) == [("ended-price", "openai gpt-5")]
    create_price(values=values(model="gpt-5"), **act)
    assert not LoadedFact.objects.exists()


def test_every_bad_field_is_named_at_once(act: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        create_price(
            values=values(
                provider="", model="", input_usd_per_million="dear", output_usd_per_million=-1, capabilities=["a", "a"]
            ),
            **act,
        )
    assert set(caught.value.message_dict) == {
        "provider",
        "model",
        "input_usd_per_million",
        "output_usd_per_million",
        "capabilities",
    }


def test_a_price_finer_than_a_millionth_is_refused_not_rounded(act: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="6 decimal places"):
        create_price(values=values(input_usd_per_million=Decimal("0.0000001")), **act)


def test_an_alias_is_resolved_on_the_way_in(act: dict[str, Any]) -> None:
    ProviderAliasFactory(alias="oa", provider="openai")
    assert create_price(values=values(provider="OA"), **act).provider == "openai"
