"""What pool calls and evaluate take on the wire (SPEC 4), decoded by msgspec in one pass."""

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from billing_catalog.core.values import Billing, Overage, Tier
from ladder.core.values import Candidate, Combine, CooldownCause, MixedRungs, ReadingStatus
from omniroute_admin.common.bodies import MAX_ITEMS, decimal_meta
from omniroute_admin.common.core.names import (
    AUTH_TYPE_PATTERN,
    NOAUTH,
    canonical_name,
    is_auth_type,
    is_connection_id,
    is_provider,
)
from omniroute_admin.common.errors import FieldError, escape_pointer, field

Text = Annotated[str, Meta(min_length=1, max_length=300)]
Percent = Annotated[Decimal, decimal_meta(ge=0, le=100)]
Usd = Annotated[Decimal, decimal_meta(ge=0)]
SignedUsd = Annotated[Decimal, decimal_meta()]
Instant = Annotated[datetime, Meta(tz=True)]
BudgetRung = Literal["cheap", "premium"]
Globs = Annotated[list[Text], Meta(max_length=200)]

_EARLIEST, _LATEST = 1970, 9998


class CandidateBody(Candidate, frozen=True, forbid_unknown_fields=True, gc=False):
    """(provider, model) with exactly one of `connection_id` and `allowed_connection_ids`."""

    provider: Text
    model: Text
    connection_id: Text | None = None
    allowed_connection_ids: Annotated[tuple[Text, ...], Meta(max_length=MAX_ITEMS)] | None = None
    ref: Annotated[str, Meta(max_length=1000)] | None = None

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong across the fields; an empty list of connections is P7, no error."""
        if not canonical_name(self.provider):
            yield field("provider", "A provider is not blank.")
        if (self.connection_id is None) is (self.allowed_connection_ids is None):
            yield field("connection_id", "Give exactly one of connection_id and allowed_connection_ids.")
        ids = self.allowed_connection_ids or ()
        seen: set[str] = set()
        for index, connection_id in enumerate(ids):
            if connection_id in seen:
                yield FieldError(f"/allowed_connection_ids/{index}", f"{connection_id!r} stands twice in the list.")
            seen.add(connection_id)


Candidates = Annotated[list[CandidateBody], Meta(max_length=MAX_ITEMS)]


class PoolBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /api/v1/pools/{id}`."""

    candidates: Candidates
    mixed_rungs: MixedRungs = MixedRungs.SPLIT
    lowest_rung_only: bool = False
    explain: bool = False


class SettingsBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings to evaluate with; what is left out is as stored."""

    exit_cutoff_percent: Percent | UnsetType = UNSET
    reentry_min_remaining_percent: Percent | UnsetType = UNSET
    max_reading_age_seconds: Annotated[int, Meta(ge=10, le=3600)] | UnsetType = UNSET
    rung_budget_usd: dict[BudgetRung, Usd | None] | UnsetType = UNSET


class CatalogBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of the billing catalogue."""

    provider: Text
    billing: Billing
    overage: Overage
    auth_type: str | None = None

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong with the names."""
        yield from _name_problems(self.provider, self.auth_type)


class ConnectionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A connection to evaluate with."""

    connection_id: Text
    provider: Text
    auth_type: str | None = None
    overage_override: Overage | None = None
    is_enabled: bool = True
    excluded_models: Globs = []

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong with the names; `noauth` has the auth type `none`."""
        yield from _name_problems(self.provider, self.auth_type)
        yield from _id_problems(self.connection_id)
        if self.connection_id == NOAUTH and self.auth_type is not None and canonical_name(self.auth_type) != "none":
            yield field("auth_type", "The connection noauth has the auth type none.")


class QuotaBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A quota window with its reading. `held` says that it dropped out and was not seen above the floor since (Q5)."""

    connection_id: Text
    observed_at: Instant
    provider: Text | None = None
    window: Text = "default"
    status: ReadingStatus = ReadingStatus.SAFE
    remaining_percent: Percent | None = None
    unlimited: bool = False
    reset_at: Instant | None = None
    held: bool = False
    combine: Combine = Combine.LIMIT
    model: Text | None = None
    is_muted: bool = False
    exit_cutoff_percent: Percent | None = None

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong: `noauth` needs its provider, a number and `unlimited` exclude each other."""
        yield from _reference_problems(self.connection_id, self.provider)
        if self.unlimited and self.remaining_percent is not None:
            yield field("remaining_percent", "Give one of remaining_percent and unlimited.")
        yield from _instant_problems(self, "observed_at", "reset_at")


class CooldownBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cooldown to evaluate with."""

    connection_id: Text
    effective_until: Instant
    provider: Text | None = None
    model: Text | None = None
    cause: CooldownCause = CooldownCause.OPERATOR

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong: `noauth` needs its provider."""
        yield from _reference_problems(self.connection_id, self.provider)
        yield from _instant_problems(self, "effective_until")


class BreakerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An open breaker."""

    provider: Text
    open_until: Instant

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong with the name."""
        yield from _name_problems(self.provider, None)
        yield from _instant_problems(self, "open_until")


class EvaluateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of `POST /api/v1/evaluate`: what is given replaces what is stored; nothing is stored."""

    id: str
    candidates: Candidates | UnsetType = UNSET
    mixed_rungs: MixedRungs = MixedRungs.SPLIT
    lowest_rung_only: bool = False
    explain: bool = False
    now: Instant | UnsetType = UNSET
    settings: SettingsBody | UnsetType = UNSET
    catalog: Annotated[list[CatalogBody], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET
    connections: Annotated[list[ConnectionBody], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET
    quota: Annotated[list[QuotaBody], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET
    cooldowns: Annotated[list[CooldownBody], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET
    breakers: Annotated[list[BreakerBody], Meta(max_length=MAX_ITEMS)] | UnsetType = UNSET
    tiers: dict[str, Tier] | UnsetType = UNSET
    capabilities: dict[str, Annotated[list[Text], Meta(max_length=100)]] | UnsetType = UNSET
    rung_spend_usd: dict[BudgetRung, SignedUsd | None] | UnsetType = UNSET

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong across the fields: the keys of the maps, and an instant no budget window can hold."""
        for name in ("tiers", "capabilities"):
            given = getattr(self, name)
            for key in given or {} if given is not UNSET else {}:
                if not all(part.strip() for part in (*key.partition("/")[::2],)):
                    yield FieldError(f"/{name}/{escape_pointer(key)}", "A key is provider/model.")
        yield from _instant_problems(self, "now")


def _name_problems(provider: str, auth_type: str | None) -> Iterable[FieldError]:
    if not is_provider(canonical_name(provider)):
        yield field("provider", "A provider is letters, digits and ._:@+-, beginning with a letter or digit.")
    if auth_type is not None and canonical_name(auth_type) and not is_auth_type(canonical_name(auth_type)):
        yield field("auth_type", f"An auth type matches {AUTH_TYPE_PATTERN}.")


def _id_problems(connection_id: str) -> Iterable[FieldError]:
    if not is_connection_id(connection_id):
        yield field(
            "connection_id",
            "A connection id is at most 128 of letters, digits and ._:@+-, beginning with a letter or digit.",
        )


def _reference_problems(connection_id: str, provider: str | None) -> Iterable[FieldError]:
    yield from _id_problems(connection_id)
    if provider is not None:
        yield from _name_problems(provider, None)
    elif connection_id == NOAUTH:
        yield field("provider", "Where noauth is named, its provider is named too.")


def _instant_problems(body: msgspec.Struct, *names: str) -> Iterable[FieldError]:
    """Yield the instants whose year is outside of what a window can be worked out for."""
    for name in names:
        instant = getattr(body, name)
        if isinstance(instant, datetime) and not _EARLIEST <= instant.year <= _LATEST:
            yield field(name, f"An instant lies in the years {_EARLIEST} to {_LATEST}.")


POOL_DECODER = msgspec.json.Decoder(PoolBody)
EVALUATE_DECODER = msgspec.json.Decoder(EvaluateBody)
