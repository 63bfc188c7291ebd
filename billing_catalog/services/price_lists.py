"""Join the lists that serve a provider into the prices it should have; no database here."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from billing_catalog.adapters import genai_prices, litellm
from billing_catalog.adapters.price_list import ListedModel, PriceList
from billing_catalog.choices import GENAI_SOURCE, LITELLM_SOURCE
from billing_catalog.selectors.sources import Lists

EMPTY = PriceList(models={})


class ListPrice(msgspec.Struct, frozen=True):
    """What the lists say of one model of one provider: USD per million tokens, None is "not known"."""

    provider: str
    listed: ListedModel
    source: str


class AllLists(msgspec.Struct, frozen=True):
    """Everything that was read: both kinds of lists by their ids."""

    priced: Mapping[str, PriceList]
    capable: Mapping[str, PriceList]


def read_all(*, litellm_file: Path | None, now: datetime) -> AllLists:
    """Read the lists of genai-prices, and the LiteLLM map that is shipped or the one that is named.

    Raises:
        CatalogFileError: the map cannot be read.
    """
    return AllLists(
        priced=genai_prices.read_lists(now=now), capable=litellm.read_map(path=litellm_file or litellm.SHIPPED)
    )


def prices_of(*, provider: str, lists: Lists, read: AllLists) -> dict[str, ListPrice]:
    """Return the prices of a provider by the model's name in lower case.

    genai-prices comes first; LiteLLM fills in the models and the prices that it lacks, spells the names (its keys are
    what the upstream is called with) and knows the capabilities.
    """
    first = read.priced.get(lists.price_list, EMPTY)
    second = read.capable.get(lists.capability_list, EMPTY)
    abilities = _abilities(list_id=lists.price_list, first=first, second=second)
    names = sorted((first.models.keys() | second.models.keys()) - second.other_modes)
    return {
        name: _joined(
            provider=provider,
            first=first.models.get(name),
            second=second.models.get(name),
            capabilities=abilities.get(name, frozenset()),
        )
        for name in names
    }


def _joined(
    *, provider: str, first: ListedModel | None, second: ListedModel | None, capabilities: frozenset[str]
) -> ListPrice:
    priced = first if first and (first.input_usd_per_million is not None or not second) else second
    if priced is None:
        raise ValueError("a model is in one of the two lists")
    listed = msgspec.structs.replace(priced, name=(second or priced).name, capabilities=capabilities)
    return ListPrice(provider=provider, listed=listed, source=GENAI_SOURCE if priced is first else LITELLM_SOURCE)


def _abilities(*, list_id: str, first: PriceList, second: PriceList) -> dict[str, frozenset[str]]:
    """Return what is known of each model: under its own name, else under dated names of it that all agree."""
    known = {name: model.capabilities for name, model in second.models.items()}
    unknown = first.models.keys() - known.keys()
    if not unknown or not known:
        return known
    match = genai_prices.matcher(list_id=list_id)
    under: dict[str, list[frozenset[str]]] = {}
    for name, words in known.items():
        meant = match(name)
        if meant in unknown:
            under.setdefault(meant, []).append(words)
    return known | {name: frozenset.intersection(*found) for name, found in under.items()}
