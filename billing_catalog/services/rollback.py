"""What of the catalogue the one history keeps, how it is told, and how one goes back to a version of it (SPEC 3, 5)."""

from datetime import datetime
from typing import Any

from billing_catalog.choices import LIST_SOURCES
from billing_catalog.models import (
    BillingEntry,
    FreeProvider,
    ModelPrice,
    PriceSource,
    ProviderAlias,
    TierOverride,
    TierThresholds,
)
from billing_catalog.selectors.aliases import resolve_provider
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services.aliases import create_alias, update_alias
from billing_catalog.services.prices import NUMBERS, create_price, update_price
from billing_catalog.services.rows import create_row, update_row
from omniroute_admin.common.core.changes import nothing_is, tell_usd
from omniroute_admin.common.history import Actor
from omniroute_admin.common.kinds import Kind, Present, RollBack, Told, TurnBack, register_kind

RIGHT = "catalog:write"
_RETURNS = "A row that was deleted comes back under its old number, so that it keeps its place and its history."
_UNTIL = nothing_is("further notice")
_PRICE = nothing_is("not known", then=tell_usd)


def register_kinds() -> None:
    """Register them; called when the app is ready."""
    for kind in (BILLING, PRICE, TIER_OVERRIDE, FREE_PROVIDER, ALIAS, PRICE_SOURCE, THRESHOLDS):
        register_kind(kind)


def _row_of(model: Any) -> Present:
    """Return what finds the row of a version by its number."""

    def present(version: Any, *, now: datetime, lock: bool) -> Any | None:
        rows = model._default_manager.all()
        return (rows.select_for_update() if lock else rows).filter(pk=version.id).first()

    return present


def _turn_row(model: Any, fields: tuple[str, ...]) -> TurnBack:
    """Return what writes the fields of a version to its row, or brings the row back."""

    def turn_back(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
        values = {name: getattr(version, name) for name in fields}
        if present is not None:
            update_row(row=present, changes=values, actor=actor, reason=reason, now=now)
        else:
            create_row(model=model, values={"id": version.id, **values}, actor=actor, reason=reason, now=now)

    return turn_back


def _turn_alias(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
    """Write the alias as it was; the rows under its name move again (SPEC 1)."""
    values: Any = {"alias": version.alias, "provider": version.provider}
    if present is not None:
        update_alias(alias=present, changes=values, actor=actor, reason=reason, now=now)
    else:
        create_alias(values={"id": version.id} | values, actor=actor, reason=reason, now=now)


def _present_price(version: Any, *, now: datetime, lock: bool) -> ModelPrice | None:
    """Return the price that acts: prices are append-only, what has ended is history (SPEC 3)."""
    provider = resolve_provider(raw=version.provider)
    rows = prices_in_force(now=now).filter(provider=provider, model=version.model)
    return (rows.select_for_update() if lock else rows).first()


def _turn_price(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
    """Give the model the numbers of a version from now on: a new price, which ends the one that acts.

    A list's name is kept for what sync_prices reads: what an operator brings back is the operator's.
    """
    values: Any = {name: getattr(version, name) for name in (*NUMBERS, "rank")}
    if version.source not in LIST_SOURCES:
        values["source"] = version.source
    if present is not None:
        update_price(price=present, changes=values, actor=actor, reason=reason, now=now)
    else:
        names: Any = {"provider": version.provider, "model": version.model}
        create_price(values=names | values, actor=actor, reason=reason, now=now)


def _deletion_of_price(version: Any, before: Any | None) -> str | None:
    if version.history_type == "-":
        return "taken back"
    ends_now = version.effective_to is not None and (before is None or before.effective_to != version.effective_to)
    return "ended" if ends_now and version.history_type == "~" else None


def _row(*, fields: tuple[str, ...], model: Any, note: str = _RETURNS) -> RollBack:
    return RollBack(right=RIGHT, fields=fields, present=_row_of(model), turn_back=_turn_row(model, fields), note=note)


_ENTRY = ("provider", "auth_type", "billing", "overage", "reason", "source_url", "reviewed_on", "reviewed_by")
BILLING = Kind(
    key="billing",
    word="billing entry",
    model=BillingEntry.history.model,
    fields={
        "provider": Told("provider"),
        "auth_type": Told("auth type", nothing_is("provider-wide")),
        "billing": Told("billing class"),
        "overage": Told("overage"),
        "reason": Told("what it is based on"),
        "source_url": Told("source"),
        "reviewed_on": Told("reviewed", nothing_is("never")),
        "reviewed_by": Told("reviewed by"),
    },
    name=lambda version: f"{version.provider} {version.auth_type or 'provider-wide'}",
    searched=("provider", "auth_type"),
    roll_back=_row(fields=_ENTRY, model=BillingEntry),
)
PRICE = Kind(
    key="price",
    word="price",
    model=ModelPrice.history.model,
    fields={
        "provider": Told("provider"),
        "model": Told("model"),
        "input_usd_per_million": Told("input, USD per million tokens", _PRICE),
        "output_usd_per_million": Told("output, USD per million tokens", _PRICE),
        "cached_input_usd_per_million": Told("cached input, USD per million tokens", _PRICE),
        "capabilities": Told("capabilities"),
        "rank": Told("rank", nothing_is("last")),
        "source": Told("source"),
        "effective_from": Told("from"),
        "effective_to": Told("until", _UNTIL),
    },
    name=lambda version: f"{version.provider}/{version.model}",
    searched=("provider", "model"),
    did=_deletion_of_price,
    roll_back=RollBack(
        right=RIGHT,
        fields=(*NUMBERS, "rank"),
        present=_present_price,
        turn_back=_turn_price,
        note="Prices are append-only: this makes a new price from now on, and the one that acts ends. What was booked "
        "stays as it was booked.",
    ),
)
TIER_OVERRIDE = Kind(
    key="tier-override",
    word="tier override",
    model=TierOverride.history.model,
    fields={
        "provider": Told("provider"),
        "model_pattern": Told("models", nothing_is("the whole provider")),
        "tier": Told("tier"),
    },
    name=lambda version: f"{version.provider}/{version.model_pattern or '*'}",
    searched=("provider", "model_pattern"),
    roll_back=_row(fields=("provider", "model_pattern", "tier"), model=TierOverride),
)
FREE_PROVIDER = Kind(
    key="free-provider",
    word="free provider",
    model=FreeProvider.history.model,
    fields={"provider": Told("provider"), "reason": Told("what it is based on")},
    name=lambda version: version.provider,
    searched=("provider",),
    roll_back=_row(fields=("provider", "reason"), model=FreeProvider),
)
ALIAS = Kind(
    key="alias",
    word="alias",
    model=ProviderAlias.history.model,
    fields={"alias": Told("alias"), "provider": Told("provider")},
    name=lambda version: f"{version.alias} means {version.provider}",
    searched=("alias", "provider"),
    roll_back=RollBack(
        right=RIGHT,
        fields=("alias", "provider"),
        present=_row_of(ProviderAlias),
        turn_back=_turn_alias,
        note="The rows under the alias move to the provider that it means; rows that moved before stay where they are.",
    ),
)
PRICE_SOURCE = Kind(
    key="price-source",
    word="price source",
    model=PriceSource.history.model,
    fields={
        "provider": Told("provider"),
        "price_list": Told("price list"),
        "capability_list": Told("capability list"),
        "sells_seats": Told("sells seats"),
    },
    name=lambda version: version.provider,
    searched=("provider", "price_list", "capability_list"),
    roll_back=_row(fields=("provider", "price_list", "capability_list", "sells_seats"), model=PriceSource),
)
THRESHOLDS = Kind(
    key="thresholds",
    word="tier thresholds",
    model=TierThresholds.history.model,
    fields={"free": Told("free up to", tell_usd), "cheap": Told("cheap up to", tell_usd)},
    name=lambda version: "tier thresholds",
    roll_back=RollBack(
        right="settings:write",
        fields=("free", "cheap"),
        present=_row_of(TierThresholds),
        turn_back=_turn_row(TierThresholds, ("free", "cheap")),
    ),
)
