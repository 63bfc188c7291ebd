"""Read the price lists that come with the installed package genai-prices; the network is never asked."""

from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from functools import reduce

from genai_prices import types
from genai_prices.data import providers

from billing_catalog.adapters.price_list import ListedModel, PriceList, dearer, is_text_model, price_of

BATCH_SUFFIX = ":batch"
"""Prices of jobs that are answered hours later; a router cannot ask for them."""

FREE_SUFFIX = ":free"
"""The upstream's own word for a variant that costs nothing; the list then has no numbers at all."""


def read_lists(*, now: datetime) -> dict[str, PriceList]:
    """Return every list by its id, with the prices that are in force at `now`."""
    return {provider.id: PriceList(models=_models(provider, now=now)) for provider in providers}


def matcher(*, list_id: str) -> Callable[[str], str | None]:
    """Return a function that tells which model of a list (lower case) another spelling of its name means."""
    provider = next((provider for provider in providers if provider.id == list_id), None)

    def match(name: str) -> str | None:
        model = provider.find_model(name) if provider else None
        return model.id.lower() if model else None

    return match


def _models(provider: types.Provider, *, now: datetime) -> dict[str, ListedModel]:
    models: dict[str, ListedModel] = {}
    for model in provider.models:
        listed = _listed(model, now=now)
        if listed:
            models[listed.name.lower()] = listed
    return models


def _listed(model: types.ModelInfo, *, now: datetime) -> ListedModel | None:
    """Return the model with its price, or None where it is no text model that a router can ask for."""
    name = model.id.strip()
    priced = reduce(dearer, [_priced(name, prices) for prices in _in_force(model.prices, now=now)])
    unpriced = priced == ListedModel(name)
    if name.endswith(BATCH_SUFFIX) or not is_text_model(name):
        return None
    if priced.output_usd_per_million is None and not (unpriced and _has_no_price_at_all(model.prices)):
        return None
    if unpriced and name.endswith(FREE_SUFFIX):
        return ListedModel(name, Decimal(0), Decimal(0), Decimal(0))
    return priced


def _in_force(prices: types.ModelPrice | list[types.ConditionalPrice], *, now: datetime) -> list[types.ModelPrice]:
    """Return the prices that can apply on the day of `now`.

    Of prices that begin on a date the last begun one counts. Prices of a time of day all count, as the caller takes
    the dearest: a tier must not change with the hour, and the product fails towards not spending.
    """
    if isinstance(prices, types.ModelPrice):
        return [prices]
    dated = [price for price in prices if not isinstance(price.constraint, types.TimeOfDateConstraint)]
    begun = [price for price in dated if price.constraint is None or price.constraint.active(now)]
    hourly = [price.prices for price in prices if isinstance(price.constraint, types.TimeOfDateConstraint)]
    return [*[price.prices for price in (begun or dated)[-1:]], *hourly] or [types.ModelPrice()]


def _priced(name: str, prices: types.ModelPrice) -> ListedModel:
    return ListedModel(
        name=name,
        input_usd_per_million=price_of(_base(prices.input_mtok)),
        output_usd_per_million=price_of(_base(prices.output_mtok)),
        cached_input_usd_per_million=price_of(_base(prices.cache_read_mtok)),
    )


def _base(price: Decimal | types.TieredPrices | None) -> Decimal | None:
    # A price that rises with the length of the prompt: the base is what a request of usual length pays, and what the
    # vendor calls the model's price. It is never below the true price of a short request, and T speaks of that one.
    return price.base if isinstance(price, types.TieredPrices) else price


def _has_no_price_at_all(prices: types.ModelPrice | list[types.ConditionalPrice]) -> bool:
    # A model priced by the hour or the page has other numbers; one without any is "not known", as a seat's models are.
    return isinstance(prices, types.ModelPrice) and prices == types.ModelPrice()
