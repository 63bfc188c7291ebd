"""From an evaluate body to the values that the core takes; names are made canonical here (SPEC 1)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from billing_catalog.core.values import CatalogRow
from ladder.api.bodies import BudgetRung, CooldownBody, EvaluateBody, QuotaBody
from ladder.core.values import Candidate, Connection, Cooldown, LadderSettings, Rung, Window
from ladder.core.whatif import Given, Key
from ladder.services.reading_store import MOST_WINDOWS
from omniroute_admin.common.core.names import NOAUTH, canonical_name
from omniroute_admin.common.errors import BadRequest, FieldError

Item = TypeVar("Item", bound=Any)
T = TypeVar("T")
Resolve = Callable[[str], str]
"""Resolves a provider's name: case, blanks, alias."""

_SETTINGS = ("exit_cutoff_percent", "reentry_min_remaining_percent", "max_reading_age_seconds")
_BUDGET_RUNGS: dict[BudgetRung, Rung] = {"cheap": Rung.CHEAP, "premium": Rung.PREMIUM}


def resolve_candidates(*, candidates: Sequence[Candidate], resolve: Resolve) -> Sequence[Candidate]:
    """Return the candidates with canonical providers; those that are so already are not copied."""
    names = {name: resolve(name) for name in {one.provider for one in candidates}}
    if all(name == said for said, name in names.items()):
        return candidates
    return [
        Candidate(names[one.provider], one.model, one.connection_id, one.allowed_connection_ids, one.ref)
        for one in candidates
    ]


def settings_of(*, body: EvaluateBody, stored: LadderSettings) -> LadderSettings | None:
    """Return the stored settings with the given ones merged in, or None where none is given."""
    if isinstance(body.settings, UnsetType):
        return None
    given = {name: getattr(body.settings, name) for name in _SETTINGS}
    said = {name: value for name, value in given.items() if value is not UNSET}
    return msgspec.structs.replace(stored, **said) if said else None


def are_settings_full(body: EvaluateBody) -> bool:
    """Tell whether every setting is given, so that none of the stored ones acts."""
    given = body.settings
    return not isinstance(given, UnsetType) and all(getattr(given, name) is not UNSET for name in _SETTINGS)


def to_given(
    *, body: EvaluateBody, settings: LadderSettings | None, resolve: Resolve, stored: Sequence[Connection]
) -> Given:
    """Return what the body says, as the core takes it.

    Raises:
        BadRequest: something stands twice that there can be one of (each place is named), or a connection has more
            windows than MOST_WINDOWS.
    """
    _refuse_doubles(body, resolve)
    _refuse_crowds(body, resolve)
    connections = _connections(body, resolve)
    provider_of = {one.connection_id: one.provider for one in (stored if connections is None else connections)}
    return Given(
        settings=settings,
        catalog=_catalog(body, resolve),
        connections=connections,
        windows=_by_key(body.quota, _to_window, provider_of, resolve),
        cooldowns=_by_key(body.cooldowns, _to_cooldown, provider_of, resolve),
        breakers=_breakers(body, resolve),
        budget_usd=_by_rung(UNSET if isinstance(body.settings, UnsetType) else body.settings.rung_budget_usd),
        spend_usd=_by_rung(body.rung_spend_usd),
        tiers={_pair(key, resolve): tier for key, tier in _given(body.tiers).items()},
        capabilities={_pair(key, resolve): frozenset(words) for key, words in _given(body.capabilities).items()},
    )


def _catalog(body: EvaluateBody, resolve: Resolve) -> tuple[CatalogRow, ...] | None:
    if isinstance(body.catalog, UnsetType):
        return None
    return tuple(
        CatalogRow(resolve(row.provider), row.billing, row.overage, auth_type_of(row.auth_type)) for row in body.catalog
    )


def _breakers(body: EvaluateBody, resolve: Resolve) -> dict[str, datetime] | None:
    if isinstance(body.breakers, UnsetType):
        return None
    return {resolve(item.provider): item.open_until for item in body.breakers}


def auth_type_of(raw: str | None) -> str | None:
    """Return the canonical auth type; blank is none (B3)."""
    return canonical_name(raw) or None if raw is not None else None


def _given(mapping: dict[str, T] | UnsetType) -> dict[str, T]:
    return {} if isinstance(mapping, UnsetType) else mapping


def _by_rung(mapping: Mapping[BudgetRung, Decimal | None] | UnsetType) -> dict[Rung, Decimal | None]:
    return {} if isinstance(mapping, UnsetType) else {_BUDGET_RUNGS[word]: usd for word, usd in mapping.items()}


def _pair(key: str, resolve: Resolve) -> tuple[str, str]:
    provider, _, model = key.partition("/")
    return resolve(provider), model


def _connections(body: EvaluateBody, resolve: Resolve) -> tuple[Connection, ...] | None:
    if isinstance(body.connections, UnsetType):
        return None
    return tuple(
        Connection(
            connection_id=one.connection_id,
            provider=resolve(one.provider),
            auth_type="none" if one.connection_id == NOAUTH else auth_type_of(one.auth_type),
            is_enabled=one.is_enabled,
            overage_override=one.overage_override,
            excluded_models=tuple(one.excluded_models),
        )
        for one in body.connections
    )


def _by_key(
    items: Sequence[Item] | UnsetType, build: Callable[[Item], T], provider_of: Mapping[str, str], resolve: Resolve
) -> dict[Key, tuple[T, ...]] | None:
    """Return what is said of each connection; an item without provider speaks of the connection of that id."""
    if isinstance(items, UnsetType):
        return None
    found: dict[Key, list[T]] = {}
    for item in items:
        provider = provider_of.get(item.connection_id, "") if item.provider is None else resolve(item.provider)
        found.setdefault((provider, item.connection_id), []).append(build(item))
    return {key: tuple(values) for key, values in found.items()}


def _to_window(item: QuotaBody) -> Window:
    return Window(
        window=item.window,
        observed_at=item.observed_at,
        remaining_percent=item.remaining_percent,
        unlimited=item.unlimited,
        status=item.status,
        reset_at=item.reset_at,
        held=item.held,
        combine=item.combine,
        model=item.model,
        is_muted=item.is_muted,
        exit_cutoff_percent=item.exit_cutoff_percent,
    )


def _to_cooldown(item: CooldownBody) -> Cooldown:
    return Cooldown(item.cause, item.effective_until, item.model)


def _refuse_doubles(body: EvaluateBody, resolve: Resolve) -> None:
    """Refuse what stands twice although there is one of it: stored, a constraint would refuse it."""
    errors = [
        *_doubles("catalog", body.catalog, lambda row: (resolve(row.provider), auth_type_of(row.auth_type))),
        *_doubles("connections", body.connections, lambda one: _identity(one.connection_id, resolve(one.provider))),
        *_doubles("quota", body.quota, lambda item: (*_reference(item, resolve), item.window)),
        *_doubles("breakers", body.breakers, lambda item: resolve(item.provider)),
    ]
    if errors:
        raise BadRequest("Something stands twice that there can be one of.", errors=errors)


def _refuse_crowds(body: EvaluateBody, resolve: Resolve) -> None:
    """Refuse more windows of one connection than a stored one may have; the first too many of each is named."""
    counts: dict[tuple[str, str], int] = {}
    errors = []
    for index, item in enumerate([] if isinstance(body.quota, UnsetType) else body.quota):
        key = _reference(item, resolve)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == MOST_WINDOWS + 1:
            detail = f"A connection has at most {MOST_WINDOWS} windows."
            errors.append(FieldError(f"/quota/{index}", detail, "too_many_windows"))
    if errors:
        raise BadRequest("A connection has too many windows.", errors=errors)


def _identity(connection_id: str, provider: str) -> tuple[str, str]:
    """Return what is unique: the id alone, for `noauth` the id at its provider (SPEC 1)."""
    return connection_id, provider if connection_id == NOAUTH else ""


def _reference(item: QuotaBody, resolve: Resolve) -> tuple[str, str]:
    return _identity(item.connection_id, resolve(item.provider or ""))


def _doubles(name: str, items: Iterable[Item] | UnsetType, key_of: Callable[[Item], object]) -> list[FieldError]:
    if isinstance(items, UnsetType):
        return []
    seen: set[object] = set()
    errors = []
    for index, item in enumerate(items):
        key = key_of(item)
        if key in seen:
            errors.append(FieldError(f"/{name}/{index}", "This stands in the list already.", "duplicate"))
        seen.add(key)
    return errors
