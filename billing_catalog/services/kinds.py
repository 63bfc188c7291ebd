"""The sorts of curated rows that pages and files write: their columns, and the calls that write them."""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, TypedDict

import msgspec
from django.db import models

from billing_catalog.choices import BILLING_CHOICES, OVERAGE_CHOICES, TIER_CHOICES
from billing_catalog.core.sheets import Columns, list_of, list_text
from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice, PriceSource, ProviderAlias, TierOverride
from billing_catalog.services import aliases, entries, prices, sources, tiers
from omniroute_admin.common.core.numbers import decimal_text
from omniroute_admin.common.history import Actor


class By(TypedDict):
    """Who writes, why and when: what every service takes."""

    actor: Actor
    reason: str
    now: datetime


class Column(msgspec.Struct, frozen=True):
    """A column: its field on the model, its label, how its text is read, and words beside it.

    `form` is `name`, `pattern`, `text`, `choice`, `url`, `date`, `truth`, `number`, `whole` or `list`; a `nullable` one
    is null where it is empty.
    """

    name: str
    label: str
    form: str = "text"
    help: str = ""
    choices: tuple[str, ...] = ()
    nullable: bool = False


class Kind(msgspec.Struct, frozen=True):
    """A sort of curated rows. `key` is its name in the history and in addresses, `file` its name in files."""

    key: str
    file: str
    one: str
    many: str
    model: type[models.Model]
    columns: tuple[Column, ...]
    identity: tuple[str, ...]
    create: Callable[[dict[str, Any], By], models.Model]
    update: Callable[[Any, dict[str, Any], By], models.Model]
    delete: Callable[[Any, By], None]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its columns."""
        return tuple(column.name for column in self.columns)

    @property
    def sheet(self) -> Columns:
        """Return its columns as files have them."""
        lists, truths = (frozenset(one.name for one in self.columns if one.form == form) for form in ("list", "truth"))
        return Columns(self.names, self.identity, lists, truths)


PROVIDER = Column("provider", "Provider", "name", "Lower-case id, as claude. An alias is resolved.")

BILLING = Kind(
    key="billing",
    file="billing",
    one="billing entry",
    many="billing entries",
    model=BillingEntry,
    columns=(
        PROVIDER,
        Column("auth_type", "Auth type", "name", "As oauth or apikey. Empty: provider-wide.", nullable=True),
        Column(
            "billing",
            "Billing",
            "choice",
            "unknown is consumed as metered everywhere.",
            tuple(word for word, _ in BILLING_CHOICES),
        ),
        Column(
            "overage",
            "Overage",
            "choice",
            "What happens past a plan's allowance. unknown is consumed as meters-to-paid.",
            tuple(word for word, _ in OVERAGE_CHOICES),
        ),
        Column("reason", "Based on", "text", "What this entry is based on; it stays with the entry."),
        Column("source_url", "Source", "url", "Where it says so: http or https."),
        Column("reviewed_on", "Reviewed on", "date", "As 2026-08-22. Empty: never.", nullable=True),
        Column("reviewed_by", "Reviewed by", "line"),
    ),
    identity=("provider", "auth_type"),
    create=lambda values, by: entries.create_entry(values=values, **by),  # type: ignore[arg-type]
    update=lambda row, changes, by: entries.update_entry(entry=row, changes=changes, **by),  # type: ignore[arg-type]
    delete=lambda row, by: entries.delete_entry(entry=row, **by),
)

TIER_OVERRIDES = Kind(
    key="tier-override",
    file="tier_overrides",
    one="tier override",
    many="tier overrides",
    model=TierOverride,
    columns=(
        PROVIDER,
        Column("model_pattern", "Models", "pattern", "* stands for any run of characters. Empty: the whole provider.",
               nullable=True),
        Column("tier", "Tier", "choice", choices=tuple(word for word, _ in TIER_CHOICES)),
    ),
    identity=("provider", "model_pattern"),
    create=lambda values, by: tiers.create_override(values=values, **by),  # type: ignore[arg-type]
    update=lambda row, changes, by: tiers.update_override(override=row, changes=changes, **by),  # type: ignore[arg-type]
    delete=lambda row, by: tiers.delete_override(override=row, **by),
)  # fmt: skip

FREE_PROVIDERS = Kind(
    key="free-provider",
    file="free_providers",
    one="free provider",
    many="free providers",
    model=FreeProvider,
    columns=(PROVIDER, Column("reason", "Based on", "text", "Why its models cost nothing.")),
    identity=("provider",),
    create=lambda values, by: tiers.create_free_provider(values=values, **by),  # type: ignore[arg-type]
    update=lambda row, changes, by: tiers.update_free_provider(free_provider=row, changes=changes, **by),  # type: ignore[arg-type]
    delete=lambda row, by: tiers.delete_free_provider(free_provider=row, **by),
)

ALIASES = Kind(
    key="alias",
    file="aliases",
    one="alias",
    many="aliases",
    model=ProviderAlias,
    columns=(
        Column("alias", "Alias", "name", "The other name."),
        Column("provider", "Provider", "name", "The provider it means; not itself an alias."),
    ),
    identity=("alias",),
    create=lambda values, by: aliases.create_alias(values=values, **by),  # type: ignore[arg-type]
    update=lambda row, changes, by: aliases.update_alias(alias=row, changes=changes, **by),  # type: ignore[arg-type]
    delete=lambda row, by: aliases.delete_alias(alias=row, **by),
)

PRICE_SOURCES = Kind(
    key="price-source",
    file="price_sources",
    one="price source",
    many="price sources",
    model=PriceSource,
    columns=(
        PROVIDER,
        Column("price_list", "Price list", "name", "Its id in genai-prices. Empty: none."),
        Column("capability_list", "Capability list", "name", "Its id in the LiteLLM price map. Empty: none."),
        Column("sells_seats", "Sells seats", "truth", "Then a price of 0 is no price."),
    ),
    identity=("provider",),
    create=lambda values, by: sources.create_source(values=values, **by),  # type: ignore[arg-type]
    update=lambda row, changes, by: sources.update_source(source=row, changes=changes, **by),  # type: ignore[arg-type]
    delete=lambda row, by: sources.delete_source(source=row, **by),
)

_NOT_KNOWN = "USD per million tokens. Empty: not known, which is never free."

PRICES = Kind(
    key="price",
    file="prices",
    one="price",
    many="prices",
    model=ModelPrice,
    columns=(
        PROVIDER,
        Column("model", "Model", "pattern"),
        Column("input_usd_per_million", "Input", "number", _NOT_KNOWN, nullable=True),
        Column("output_usd_per_million", "Output", "number", _NOT_KNOWN, nullable=True),
        Column("cached_input_usd_per_million", "Cached input", "number", _NOT_KNOWN, nullable=True),
        Column("capabilities", "Capabilities", "list", "Known ones only, parted by commas: vision, reasoning."),
        Column("rank", "Rank", "whole", "Place in a stored pool. Empty: last.", nullable=True),
    ),
    identity=("provider", "model"),
    create=lambda values, by: prices.create_price(values=values, **by),  # type: ignore[arg-type]
    update=lambda row, changes, by: prices.update_price(price=row, changes=changes, **by),  # type: ignore[arg-type]
    delete=lambda row, by: prices.end_price(price=row, **by),
)

EDITED: Mapping[str, Kind] = {
    kind.key: kind for kind in (BILLING, TIER_OVERRIDES, FREE_PROVIDERS, ALIASES, PRICE_SOURCES)
}
"""The sorts whose rows have a form each, by key; prices are append-only and have pages of their own."""

# Aliases first: the rows after them are read with the names resolved.
FILES: Mapping[str, Kind] = {
    kind.file: kind for kind in (ALIASES, BILLING, TIER_OVERRIDES, FREE_PROVIDERS, PRICE_SOURCES, PRICES)
}
"""The sorts that files hold, by their name there, in the order in which they are written."""

OFFERED = (BILLING, PRICES, TIER_OVERRIDES, FREE_PROVIDERS, ALIASES, PRICE_SOURCES)
"""The same in the order in which people are offered them."""


def _truth(text: str) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
    if text.strip().lower() not in words:
        raise ValueError("This is true or false.")
    return words[text.strip().lower()]


def _number(text: str) -> Decimal:
    if "," in text:
        raise ValueError("Write decimals with a point and no commas, as 1250.50.")
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError("Give a number.") from None
    if not number.is_finite():
        raise ValueError("Give a number.")
    return number


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text.strip(), re.ASCII):
        raise ValueError("Give a whole number from 0.")
    return int(text)


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("Give a date as 2026-08-22.") from None


def _list(text: str) -> list[str]:
    try:
        return sorted(word.strip().lower() for word in list_of(text))
    except ValueError:
        raise ValueError("Give words parted by commas.") from None


_READERS: Mapping[str, Callable[[str], Any]] = {
    "truth": _truth,
    "number": _number,
    "whole": _whole,
    "date": _date,
    "list": _list,
    "pattern": str.strip,
    "choice": str.strip,
    "url": str.strip,
}


def value_of(column: Column, text: str) -> Any:
    """Return the value that a text means.

    Raises:
        ValueError: it means none; the words say why.
    """
    if column.nullable and not text.strip():
        return None
    return _READERS.get(column.form, str)(text)


def text_of(value: Any) -> str:
    """Return a column's value as a form and a file show it; null is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, list):
        return list_text(sorted(value))
    return value.isoformat() if isinstance(value, date) else str(value)


def texts_of(kind: Kind, row: models.Model) -> dict[str, str]:
    """Return what a row says, as texts."""
    return {name: text_of(getattr(row, name)) for name in kind.names}
