"""What pool calls and evaluate take on the wire (SPEC 4), decoded by msgspec in one pass."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from billing_catalog.core.values import Billing, Overage, Tier
from ladder.core.values import Candidate, Combine, CooldownCause, MixedRungs, ReadingStatus
from omniroute_admin.common.bodies import MAX_ITEMS, check, check_meta, decimal_meta
from omniroute_admin.common.core.names import (
    AUTH_TYPE_PATTERN,
    NOAUTH,
    canonical_name,
    is_auth_type,
    is_connection_id,
    is_provider,
)
from omniroute_admin.common.errors import FieldError, TooLarge, field

MOST_PAIRS = 50_000
"""Most pairs that the candidates of one call may have together."""

_EARLIEST, _LATEST = 1970, 9998


def _provider_problem(text: str) -> str | None:
    if is_provider(canonical_name(text)):
        return None
    return "A provider is letters, digits and ._:@+-, beginning with a letter or digit."


def _id_problem(text: str) -> str | None:
    if is_connection_id(text):
        return None
    return "A connection id is at most 128 of letters, digits and ._:@+-, beginning with a letter or digit."


def _auth_type_problem(text: str) -> str | None:
    """Tell what is wrong with an auth type; blank is none (B3)."""
    name = canonical_name(text)
    return None if not name or is_auth_type(name) else f"An auth type matches {AUTH_TYPE_PATTERN}."


def _pair_problem(text: str) -> str | None:
    provider, _, model = text.partition("/")
    return None if provider.strip() and model.strip() else "A key is provider/model."


def _instant_problem(instant: datetime) -> str | None:
    """Tell whether the year of an instant is outside of what a window can be worked out for."""
    if _EARLIEST <= instant.year <= _LATEST:
        return None
    return f"An instant lies in the years {_EARLIEST} to {_LATEST}."


Text = Annotated[str, Meta(min_length=1, max_length=300)]
Provider = Annotated[str, Meta(min_length=1, max_length=300), check_meta(_provider_problem)]
ConnectionId = Annotated[str, Meta(min_length=1, max_length=300), check_meta(_id_problem)]
AuthType = Annotated[str, check_meta(_auth_type_problem)]
PairKey = Annotated[str, check_meta(_pair_problem)]
Percent = Annotated[Decimal, decimal_meta(ge=0, le=100)]
Usd = Annotated[Decimal, decimal_meta(ge=0)]
SignedUsd = Annotated[Decimal, decimal_meta()]
Instant = Annotated[datetime, Meta(tz=True), check_meta(_instant_problem)]
BudgetRung = Literal["cheap", "premium"]
Globs = Annotated[list[Text], Meta(max_length=200)]


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


def check_pairs(candidates: Sequence[Candidate]) -> None:
    """Check that the candidates have not more pairs together than one call judges.

    Raises:
        TooLarge: they have.
    """
    count = sum(1 if one.allowed_connection_ids is None else len(one.allowed_connection_ids) for one in candidates)
    if count > MOST_PAIRS:
        raise TooLarge(
            f"The candidates of one call have at most {MOST_PAIRS} connections together.",
            errors=[field("candidates", f"{count} connections in all of them together", code="too_large")],
        )


def check_candidates(candidates: Sequence[CandidateBody], body: msgspec.Struct) -> None:
    """Check the candidates of a body, and its other rules only where a candidate breaks one.

    A good list, as nearly all are, is passed over once and quickly: that is the way to every pool.

    Raises:
        TooLarge: they have more pairs together than one call judges.
        BadRequest: a rule is broken; every one is named.
    """
    check_pairs(candidates)
    if not all(map(_is_plain, candidates)):
        check(body)


def _is_plain(one: CandidateBody) -> bool:
    """Tell whether nothing is wrong across a candidate's fields: what `problems` finds, without telling it."""
    ids = one.allowed_connection_ids
    if ids is None:
        return one.connection_id is not None and not one.provider.isspace()
    return one.connection_id is None and len(set(ids)) == len(ids) and not one.provider.isspace()


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

    provider: Provider
    billing: Billing
    overage: Overage
    auth_type: AuthType | None = None


class ConnectionBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A connection to evaluate with."""

    connection_id: ConnectionId
    provider: Provider
    auth_type: AuthType | None = None
    overage_override: Overage | None = None
    is_enabled: bool = True
    excluded_models: Globs = []

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong across the names: `noauth` has the auth type `none`."""
        if self.connection_id == NOAUTH and canonical_name(self.auth_type or "none") not in {"", "none"}:
            yield field("auth_type", "The connection noauth has the auth type none.")


class QuotaBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A quota window with its reading. `held` says that it dropped out and was not seen above the floor since (Q5)."""

    connection_id: ConnectionId
    observed_at: Instant
    provider: Provider | None = None
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


class CooldownBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A cooldown to evaluate with."""

    connection_id: ConnectionId
    effective_until: Instant
    provider: Provider | None = None
    model: Text | None = None
    cause: CooldownCause = CooldownCause.OPERATOR

    def problems(self) -> Iterable[FieldError]:
        """Yield what is wrong: `noauth` needs its provider."""
        yield from _reference_problems(self.connection_id, self.provider)


class BreakerBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An open breaker."""

    provider: Provider
    open_until: Instant


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
    tiers: dict[PairKey, Tier] | UnsetType = UNSET
    capabilities: dict[PairKey, Annotated[list[Text], Meta(max_length=100)]] | UnsetType = UNSET
    rung_spend_usd: dict[BudgetRung, SignedUsd | None] | UnsetType = UNSET


def _reference_problems(connection_id: str, provider: str | None) -> Iterable[FieldError]:
    if provider is None and connection_id == NOAUTH:
        yield field("provider", "Where noauth is named, its provider is named too.")


POOL_DECODER = msgspec.json.Decoder(PoolBody)
EVALUATE_DECODER = msgspec.json.Decoder(EvaluateBody)
