"""Read a LiteLLM price map: prices in USD per token, and what each model can do."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from billing_catalog.adapters.price_list import ListedModel, PriceList, dearer, is_text_model, price_of
from billing_catalog.errors import CatalogFileError

SHIPPED = Path(__file__).resolve().parent.parent / "data" / "litellm_price_map.json"

TEXT_MODES = frozenset({"chat", "responses", "completion"})
MILLION = 1_000_000
PREFIXES = {
    "bedrock_converse": "bedrock",
    "cohere_chat": "cohere",
    "vertex_ai-language-models": "vertex_ai",
}
"""First part of a model's key where it is not the list's id: `vertex_ai/...` of `vertex_ai-language-models`."""


def read_map(*, path: Path) -> dict[str, PriceList]:
    """Return the map's lists by their id (`litellm_provider`).

    Raises:
        CatalogFileError: the file cannot be read, is no JSON, or holds no model.
    """
    models: dict[str, dict[str, ListedModel]] = {}
    other_modes: dict[str, set[str]] = {}
    for list_id, name, entry in _entries(_load(path), path=path):
        if entry.get("mode") not in TEXT_MODES or not is_text_model(name):
            other_modes.setdefault(list_id, set()).add(name.lower())
            continue
        known = models.setdefault(list_id, {})
        known[name.lower()] = _merged(known.get(name.lower()), _listed(name, entry))
    return {
        list_id: PriceList(models=models.get(list_id, {}), other_modes=frozenset(other_modes.get(list_id, ())))
        for list_id in {**models, **other_modes}
    }


def _load(path: Path) -> Mapping[str, Any]:
    try:
        # Decimal from the digits in the file: 3e-07 is exact, as a float it would not be.
        document = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise CatalogFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise CatalogFileError(f"{path} is no JSON: {error}.") from error
    if not isinstance(document, dict):
        raise CatalogFileError(f"{path} is no LiteLLM price map: it should be an object with a model per key.")
    return document


def _entries(document: Mapping[str, Any], *, path: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    found = False
    for key, entry in document.items():
        list_id = entry.get("litellm_provider") if isinstance(entry, dict) else None
        name = _name(key, list_id) if isinstance(list_id, str) else ""
        if not isinstance(list_id, str) or not name or key == "sample_spec":
            continue
        found = True
        yield list_id.strip().lower(), name, entry
    if not found:
        raise CatalogFileError(f"{path} is no LiteLLM price map: no entry names its litellm_provider.")


def _name(key: str, list_id: str) -> str:
    """Return the model's name as a router says it: without the list's own prefix."""
    first, slash, rest = key.strip().partition("/")
    return rest if slash and first in {list_id, PREFIXES.get(list_id)} else key.strip()


def _listed(name: str, entry: Mapping[str, Any]) -> ListedModel:
    return ListedModel(
        name=name,
        input_usd_per_million=_per_million(entry.get("input_cost_per_token")),
        output_usd_per_million=_per_million(entry.get("output_cost_per_token")),
        cached_input_usd_per_million=_per_million(entry.get("cache_read_input_token_cost")),
        # A missing supports_* is unknown, and so is a false one here: only a known yes is kept (I).
        capabilities=frozenset(
            word.removeprefix("supports_")
            for word, says in entry.items()
            if word.startswith("supports_") and says is True
        ),
    )


def _merged(known: ListedModel | None, found: ListedModel) -> ListedModel:
    """Return one model of two keys that mean the same one: the dearer price, everything either is known to do."""
    if known is None:
        return found
    chosen = dearer(known, found)
    return ListedModel(
        name=chosen.name,
        input_usd_per_million=chosen.input_usd_per_million,
        output_usd_per_million=chosen.output_usd_per_million,
        cached_input_usd_per_million=chosen.cached_input_usd_per_million,
        capabilities=known.capabilities | found.capabilities,
    )


def _per_million(cost: object) -> Decimal | None:
    if isinstance(cost, bool) or not isinstance(cost, int | str | Decimal):
        return None
    try:
        return price_of(Decimal(cost) * MILLION)
    except InvalidOperation:
        return None
