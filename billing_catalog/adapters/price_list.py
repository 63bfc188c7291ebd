"""What the readers of price lists hand on: frozen values, prices exact, nothing of the lists' own types."""

from collections.abc import Mapping
from decimal import ROUND_UP, Decimal

import msgspec

MICRO = Decimal("0.000001")
LARGEST = Decimal(10) ** 9
"""What fifteen digits with six places can hold, in USD per million tokens."""


NO_TEXT_MODELS = (
    "embed",
    "whisper",
    "tts",
    "transcribe",
    "transcription",
    "moderation",
    "realtime",
    "rerank",
    "ocr",
    "lyria",
    "dall-e",
    "-image",
    "nano-banana",
    "orpheus",
    "speech",
)
"""The lists hardly say what a model is for; with these parts in its name it answers with something else than text."""

NO_MODELS = ("ft:", "together-ai-", "fireworks-ai-", "container")
"""How the names of things begin that are no model (fine-tuning, classes by size), which no router can ask for."""


LONGEST_NAME = 200


class ListedModel(msgspec.Struct, frozen=True):
    """One model of a list: USD per million tokens, None is "not known"; `capabilities` holds the known ones only."""

    name: str
    input_usd_per_million: Decimal | None = None
    output_usd_per_million: Decimal | None = None
    cached_input_usd_per_million: Decimal | None = None
    capabilities: frozenset[str] = frozenset()


class PriceList(msgspec.Struct, frozen=True):
    """The models one list has for one upstream, by their name in lower case.

    `other_modes` are the names (lower case) that the list knows as something else than a text model.
    """

    models: Mapping[str, ListedModel]
    other_modes: frozenset[str] = frozenset()


def is_text_model(name: str) -> bool:
    """Tell whether a name can be that of a model which a router asks for text."""
    folded = name.lower()
    return (
        0 < len(folded) <= LONGEST_NAME
        and not folded.startswith(NO_MODELS)
        and not any(part in folded for part in NO_TEXT_MODELS)
    )


def price_of(amount: Decimal | None) -> Decimal | None:
    """Return a price in six places, or None for what cannot be one (negative, not finite, too large).

    Rounded up: the smallest price above 0 must not become 0, which is free (T).
    """
    if amount is None or not amount.is_finite() or not 0 <= amount < LARGEST:
        return None
    return amount.quantize(MICRO, rounding=ROUND_UP)


def dearer(one: ListedModel, other: ListedModel) -> ListedModel:
    """Return the one of two prices for the same model that costs more; an unknown price counts as dearest (T)."""

    def cost(model: ListedModel) -> tuple[Decimal, Decimal]:
        unknown = Decimal("Infinity")
        prices = (model.input_usd_per_million, model.output_usd_per_million)
        return tuple(unknown if price is None else price for price in prices)  # type: ignore[return-value]

    return max(one, other, key=cost)
