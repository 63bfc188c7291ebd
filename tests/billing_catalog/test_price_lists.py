"""T, I: what the lists say is read exactly, and what they do not say stays unknown."""

import json
import socket
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from genai_prices import data_snapshot
from genai_prices.types import (
    ClauseEquals,
    ConditionalPrice,
    ModelInfo,
    ModelPrice,
    StartDateConstraint,
    Tier,
    TieredPrices,
    TimeOfDateConstraint,
)

from billing_catalog.adapters import genai_prices, litellm
from billing_catalog.adapters.price_list import ListedModel, is_text_model, price_of
from billing_catalog.errors import CatalogFileError
from billing_catalog.selectors.sources import Lists
from billing_catalog.services.price_lists import AllLists, prices_of, read_all
from tests.shared import needs_shared, shared_path

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)


def listed(prices: Any, name: str = "m") -> ListedModel | None:
    model = ModelInfo(id=name, match=ClauseEquals(equals=name), prices=prices)
    return genai_prices._listed(model, now=NOW)


def priced(cost: str, **more: str) -> ModelPrice:
    return ModelPrice(input_mtok=Decimal(cost), output_mtok=Decimal(9), **{k: Decimal(v) for k, v in more.items()})


def map_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "map.json"
    path.write_text(text)
    return path


def read_one(tmp_path: Path, fields: str, key: str = "acme/m") -> ListedModel:
    text = f'{{"{key}": {{"litellm_provider": "acme", "mode": "chat"{fields}}}}}'
    return litellm.read_map(path=map_file(tmp_path, text))["acme"].models["m"]


def test_the_bundled_list_is_read_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket, "socket", no_network)
    monkeypatch.setattr(data_snapshot, "_custom_snapshot", None)
    lists = genai_prices.read_lists(now=NOW)
    assert len(lists) > 30
    sonnet = lists["anthropic"].models["claude-sonnet-4-5"]
    assert (sonnet.input_usd_per_million, sonnet.output_usd_per_million) == (Decimal(3), Decimal(15))
    assert sonnet.cached_input_usd_per_million == Decimal("0.3")


def test_a_price_that_rises_with_the_prompt_is_its_base() -> None:
    tiered = ModelPrice(
        input_mtok=TieredPrices(base=Decimal(3), tiers=[Tier(start=200_000, price=Decimal(6))]), output_mtok=Decimal(9)
    )
    found = listed(tiered)
    assert found is not None
    assert found.input_usd_per_million == 3


def test_of_prices_by_the_hour_the_dearest_counts() -> None:
    night = TimeOfDateConstraint(start_time=datetime(2026, 1, 1, 1, tzinfo=UTC).timetz(), end_time=NOW.timetz())
    found = listed([ConditionalPrice(prices=priced("0.1")), ConditionalPrice(night, prices=priced("2"))])
    assert found is not None
    assert found.input_usd_per_million == 2
    found = listed([ConditionalPrice(prices=priced("4")), ConditionalPrice(night, prices=priced("2"))])
    assert found is not None
    assert found.input_usd_per_million == 4


def test_of_prices_by_date_the_one_in_force_counts() -> None:
    def since(day: int, cost: str) -> ConditionalPrice:
        return ConditionalPrice(StartDateConstraint(datetime(2026, 11, day, tzinfo=UTC).date()), prices=priced(cost))

    found = listed([ConditionalPrice(prices=priced("7")), since(10, "5"), since(29, "3"), since(30, "1")])
    assert found is not None
    assert found.input_usd_per_million == 3


def test_a_model_without_any_price_is_unknown_and_not_free() -> None:
    found = listed(ModelPrice())
    assert found == ListedModel("m")


def test_only_a_variant_that_calls_itself_free_is_free_without_a_number() -> None:
    found = listed(ModelPrice(), name="vendor/m:free")
    assert found is not None
    assert found.input_usd_per_million == 0


@pytest.mark.parametrize(
    "name",
    ["text-embedding-3-small", "whisper-1", "gpt-image-1", "tts-1", "m:batch", "ft:gpt-4o", "lyria-3", "x" * 201, ""],
)
def test_what_is_no_text_model_of_a_router_is_left_out(name: str) -> None:
    assert listed(priced("1"), name=name) is None


def test_a_model_priced_by_anything_else_than_tokens_is_left_out() -> None:
    assert listed(ModelPrice(input_mtok=Decimal(1))) is None
    assert listed(ModelPrice(audio_hours=Decimal(1))) is None


def test_the_smallest_price_is_not_rounded_to_free() -> None:
    assert price_of(Decimal("0.0000001")) == Decimal("0.000001")
    assert price_of(Decimal(0)) == 0


@pytest.mark.parametrize("amount", ["-1", "NaN", "Infinity", "1e12"])
def test_a_number_that_cannot_be_a_price_is_unknown(amount: str) -> None:
    assert price_of(Decimal(amount)) is None


def test_usd_per_token_become_usd_per_million_without_a_float(tmp_path: Path) -> None:
    fields = ', "input_cost_per_token": 1.1e-06, "output_cost_per_token": 4.4e-6, "cache_read_input_token_cost": 3E-7'
    found = read_one(tmp_path, fields)
    assert str(found.input_usd_per_million) == "1.100000"
    assert str(found.output_usd_per_million) == "4.400000"
    assert str(found.cached_input_usd_per_million) == "0.300000"


@pytest.mark.parametrize("cost", ["null", "true", '"dear"', "[]", "-1e-6", "{}", "NaN", "Infinity"])
def test_an_odd_cost_is_unknown(cost: str, tmp_path: Path) -> None:
    assert read_one(tmp_path, f', "input_cost_per_token": {cost}').input_usd_per_million is None


def test_only_a_known_yes_is_a_capability(tmp_path: Path) -> None:
    fields = ', "supports_vision": true, "supports_reasoning": false, "supports_pdf_input": "yes"'
    assert read_one(tmp_path, fields).capabilities == {"vision"}


def test_models_are_named_as_a_router_names_them(tmp_path: Path) -> None:
    entry = '{"litellm_provider": "vertex_ai-language-models", "mode": "chat"}'
    other = '{"litellm_provider": "xai", "mode": "responses"}'
    path = map_file(tmp_path, f'{{"vertex_ai/g": {entry}, "h": {entry}, "xai/k/l": {other}, "sample_spec": {other}}}')
    lists = litellm.read_map(path=path)
    assert sorted(lists["vertex_ai-language-models"].models) == ["g", "h"]
    assert sorted(lists["xai"].models) == ["k/l"]


def test_of_two_keys_for_one_model_the_dearer_price_counts(tmp_path: Path) -> None:
    def entry(cost: str, ability: str) -> str:
        return f'{{"litellm_provider":"a","mode":"chat","input_cost_per_token":{cost},"supports_{ability}":true}}'

    text = f'{{"a/m": {entry("2e-6", "vision")}, "m": {entry("1e-6", "reasoning")}}}'
    found = litellm.read_map(path=map_file(tmp_path, text))["a"].models["m"]
    assert (found.input_usd_per_million, found.capabilities) == (2, {"vision", "reasoning"})


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "{}", '{"a": 1}', '{"a": {"mode": "chat"}}', "[" * 100_000],
    ids=["empty", "broken", "a list", "no entry", "no object", "no provider", "nested without end"],
)
def test_a_file_that_is_no_price_map_is_refused_with_a_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(CatalogFileError, match=r"is no (JSON|LiteLLM price map)"):
        litellm.read_map(path=map_file(tmp_path, text))


def test_a_file_that_is_not_there_or_not_text_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CatalogFileError, match="cannot be read"):
        litellm.read_map(path=tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{}")
    with pytest.raises(CatalogFileError, match="is no JSON"):
        litellm.read_map(path=tmp_path / "bytes.json")


@needs_shared
def test_the_shipped_map_is_the_real_one() -> None:
    real = json.loads(shared_path("prices/litellm_price_map.json").read_text())
    assert json.loads(litellm.SHIPPED.read_text()) == real


def test_genai_prices_comes_first_and_litellm_fills_in(tmp_path: Path) -> None:
    def entry(cost: str, more: str = "") -> str:
        return f'{{"litellm_provider":"zai","mode":"chat","input_cost_per_token":{cost}{more}}}'

    text = (
        f'{{"zai/glm-4.5": {entry("9e-6", ", " + chr(34) + "supports_vision" + chr(34) + ": true")},'
        f' "zai/only-here": {entry("1e-6")}}}'
    )
    read = read_all(litellm_file=map_file(tmp_path, text), now=NOW)
    found = prices_of(provider="glm", lists=Lists("zai", "zai"), read=read)
    both, second = found["glm-4.5"], found["only-here"]
    assert both.listed.name == "glm-4.5"
    assert (both.source, both.listed.input_usd_per_million) == ("genai-prices", Decimal("0.6"))
    assert both.listed.capabilities == {"vision"}
    assert (second.source, second.listed.input_usd_per_million) == ("litellm", 1)
    assert "glm-4.6" in found


def test_a_price_that_the_first_list_lacks_comes_from_the_second() -> None:
    read = read_all(litellm_file=None, now=NOW)
    found = prices_of(provider="gemini", lists=Lists("google", "gemini"), read=read)["gemma-4-31b-it"]
    assert (found.source, found.listed.input_usd_per_million) == ("litellm", 0)


def test_a_model_that_the_map_knows_for_something_else_is_left_out() -> None:
    read = AllLists(
        priced={"a": genai_prices.PriceList(models={"m": ListedModel("m", Decimal(1))})},
        capable={"a": genai_prices.PriceList(models={}, other_modes=frozenset({"m"}))},
    )
    assert prices_of(provider="a", lists=Lists("a", "a"), read=read) == {}


def test_a_dated_name_lends_its_capabilities_to_the_name_without_a_date(tmp_path: Path) -> None:
    def entry(abilities: str) -> str:
        return f'{{"litellm_provider":"anthropic","mode":"chat"{abilities}}}'

    both, one = ', "supports_vision":true, "supports_reasoning":true', ', "supports_vision":true'
    text = f'{{"claude-opus-4-1-20250805": {entry(both)}, "claude-opus-4.1": {entry(one)}}}'
    read = read_all(litellm_file=map_file(tmp_path, text), now=NOW)
    found = prices_of(provider="claude", lists=Lists("anthropic", "anthropic"), read=read)
    assert found["claude-opus-4-1"].listed.capabilities == {"vision"}
    assert found["claude-opus-4-0"].listed.capabilities == frozenset()


@pytest.mark.parametrize("name", ["gpt-5", "claude-sonnet-4-5", "llama-3.3-70b", "gpt-4o-audio-preview"])
def test_ordinary_names_are_text_models(name: str) -> None:
    assert is_text_model(name)
