"""The state a decision stands on, read in one consistent view, and the snapshot prepared from it."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from time import perf_counter
from typing import Any, TypeVar

import msgspec
from django.db import connection as database
from django.db.models import QuerySet

from billing_catalog.mapping import read_catalog_rows, read_prices, read_thresholds, read_tier_rules
from billing_catalog.models import FreeProvider, PriceSource, ProviderAlias
from ladder.core.instants import NEVER
from ladder.core.snapshot import Snapshot
from ladder.core.values import PAID_RUNGS, Budget, Connection, Facts, LadderSettings, Rung
from ladder.mapping import (
    CONNECTION_FIELDS,
    COOLDOWN_FIELDS,
    WINDOW_FIELDS,
    to_connections,
    to_settings,
)
from ladder.models import Breaker, Cooldown, QuotaWindow, RungBudget
from ladder.models import Connection as ConnectionRow
from ladder.models import LadderSettings as LadderSettingsRow
from ladder.selectors.drawn import forget_drawn
from ladder.selectors.held import with_dropped_out
from ladder.selectors.ledger import budgets_of, read_budgets
from ladder.selectors.settings import BudgetSettings
from omniroute_admin.common.meters import REBUILDS
from omniroute_admin.common.selectors.compiled import Compiled
from omniroute_admin.common.selectors.revision import (
    current_revision,
    read_present,
    read_snapshot,
    touched_since,
)

Read = TypeVar("Read")


class Prepared(msgspec.Struct, frozen=True):
    """A snapshot, and the span in which the rows it was read from say the same: [loaded_at, reload_at).

    `places` tells where each connection stands among the facts'.
    """

    snapshot: Snapshot
    revision: int
    loaded_at: datetime
    reload_at: datetime
    places: Mapping[tuple[str, str], int]

    def is_current(self, *, revision: int, now: datetime) -> bool:
        """Tell whether reading again would give the same."""
        return self.revision == revision and self.loaded_at <= now < self.reload_at


_prepared: Prepared | None = None
STEPS_AT_MOST = 200
"""How many steps of the revision are made good one by one; behind more of them everything is read again."""

_TRIES = 3
"""How often money and snapshot are read again where a write came between the two."""


def get_snapshot(*, now: datetime, revision: int | None = None) -> Snapshot:
    """Return the snapshot of the present revision, prepared anew where the one at hand is not current.

    `revision` is what the caller has read of it already, for this same question: no statement is needed then where the
    snapshot at hand is of that one.

    The revision is the first thing read, and the rows are read in the same view of the database, so a snapshot is
    never older than a write that was committed before the call (SPEC 3). A clock stepped back, and the end of a budget
    window, prepare it anew too (SPEC 6).
    """
    global _prepared  # noqa: PLW0603 - one snapshot per process is what this module is for
    # Inside a transaction that may still be undone, the revision does not name what is read.
    is_undoable = database.in_atomic_block
    held = None if is_undoable else _prepared
    if held is not None and revision is not None:
        renewed = held if held.is_current(revision=revision, now=now) else _renewed_alone(held, revision, now)
        if renewed is not None:
            _prepared = renewed
            return renewed.snapshot
    with read_snapshot() as present:
        if held is not None and held.is_current(revision=present, now=now):
            return held.snapshot
        prepared = _prepare(held, revision=present, now=now)
    if not is_undoable:
        _prepared = prepared
    return prepared.snapshot


def _renewed_alone(held: Prepared, revision: int, now: datetime) -> Prepared | None:
    """Return what `_renewed` does without a transaction around what is read; None where a write came between.

    The revision is moved in the transaction of every write that a decision could tell: where it is the same before and
    after, what was read between is of that revision. On PostgreSQL that spares four ways there and back.
    """
    began, renewed = perf_counter(), _renewed(held, revision=revision, now=now)
    if renewed is None or current_revision() != revision:
        return None
    REBUILDS.observe(("renewed",), perf_counter() - began)
    return renewed


def _prepare(held: Prepared | None, *, revision: int, now: datetime) -> Prepared:
    """Return what is at hand renewed, or all of it read again; how long that took is counted."""
    began, how = perf_counter(), "renewed"
    prepared = None if held is None else _renewed(held, revision=revision, now=now)
    if prepared is None:
        how, facts = "whole", read_facts(revision=revision, now=now)
        prepared = Prepared(Snapshot(facts), revision, now, _reload_at(facts), _places(facts))
    REBUILDS.observe((how,), perf_counter() - began)
    return prepared


def _renewed(held: Prepared, *, revision: int, now: datetime) -> Prepared | None:
    """Return what is at hand with the connections read again that were touched since; None where that is not enough."""
    if not held.loaded_at <= now < held.reload_at or not 0 < revision - held.revision <= STEPS_AT_MOST:
        return None
    keys = touched_since(revision=held.revision, now_at=revision)
    if keys is None:
        return None
    facts = held.snapshot.facts
    changed = read_accounts(settings=facts.settings, keys=keys)
    if len(changed) != len(keys):
        return None
    listed = list(facts.connections)
    for one in changed.values():
        place = held.places.get((one.provider, one.connection_id))
        if place is None:
            return None
        listed[place] = one
    facts = msgspec.structs.replace(facts, revision=str(revision), connections=tuple(listed))
    snapshot = held.snapshot.with_connections(facts=facts, changed=changed.values())
    return msgspec.structs.replace(held, snapshot=snapshot, revision=revision)


def get_present(*, now: datetime) -> tuple[Snapshot, Mapping[Rung, Budget], int]:
    """Return the snapshot, the budgets as they are, and the token of what screens show beyond decisions (SPEC 3).

    Spend that crosses no line moves no revision, so that the budgets of a snapshot may tell less than was spent since.
    """
    snapshot, budgets, shown, _ = get_present_with(now=now, also=lambda rows: None)
    return snapshot, budgets, shown


def get_present_with(
    *, now: datetime, also: Callable[[Sequence[RungBudget]], Read]
) -> tuple[Snapshot, Mapping[Rung, Budget], int, Read]:
    """Return what `get_present` does and what `also` reads in the same view, given the rows of the budgets."""
    for _ in range(_TRIES):
        with read_present() as (revision, shown):
            rows = list(RungBudget.objects.filter(rung__in=[rung.word for rung in PAID_RUNGS]))
            budgets, read = budgets_of(rows=rows, now=now), also(rows)
        snapshot = get_snapshot(now=now, revision=revision)
        if str(revision) == snapshot.facts.revision:
            break
    return snapshot, budgets, shown, read


def forget_snapshot() -> None:
    """Drop the snapshot of this process, and the sums of the ledger that it stands on."""
    global _prepared  # noqa: PLW0603 - see get_snapshot
    _prepared = None
    forget_drawn()


def _places(facts: Facts) -> dict[tuple[str, str], int]:
    return {(one.provider, one.connection_id): place for place, one in enumerate(facts.connections)}


def _reload_at(facts: Facts) -> datetime:
    return min((budget.window_end or NEVER for budget in facts.budgets.values()), default=NEVER)


def read_facts(
    *,
    revision: int | str,
    now: datetime,
    settings: LadderSettings | None = None,
    budgets: Mapping[Rung, BudgetSettings] | None = None,
) -> Facts:
    """Read everything a decision stands on; a constant number of queries.

    `settings`, where given, replace the stored ones, so that the held state is derived with them (Q5); so do `budgets`
    with the spend of their windows (M4).
    """
    acting = settings or to_settings(LadderSettingsRow.objects.get(pk=1))
    return Facts(
        revision=str(revision),
        settings=acting,
        connections=read_connections(settings=acting),
        catalog=read_catalog_rows(),
        prices=read_prices(now=now),
        tier_rules=read_tier_rules(),
        free_providers=frozenset(FreeProvider.objects.values_list("provider", flat=True)),
        seat_sellers=frozenset(PriceSource.objects.filter(sells_seats=True).values_list("provider", flat=True)),
        thresholds=read_thresholds(),
        breakers=read_breakers(),
        budgets=read_budgets(now=now, instead=budgets),
        aliases=dict(ProviderAlias.objects.values_list("alias", "provider")),
    )


def read_connections(*, settings: LadderSettings) -> tuple[Connection, ...]:
    """Read the live connections with windows, held state and cooldowns; three queries."""
    return tuple(read_accounts(settings=settings).values())


def read_accounts(*, settings: LadderSettings, keys: Collection[int] | None = None) -> dict[int, Connection]:
    """Read the live connections among these rows (None: all of them) by the keys of their rows; three queries."""
    if keys is not None:
        among = sorted(keys)
        return _by_key(_CONNECTIONS.rows(among), _WINDOWS.rows(among, settings), _COOLDOWNS.rows(among))
    live = ConnectionRow.objects.live()
    of_live = live.order_by().values("pk")
    return _by_key(_connections_of(live), _windows_of(of_live, settings), _cooldowns_of(of_live))


def _connections_of(live: "QuerySet[ConnectionRow]") -> "QuerySet[ConnectionRow, Any]":
    return live.order_by("provider", "connection_id").values_list(*CONNECTION_FIELDS)


def _windows_of(keys: Any, settings: LadderSettings) -> "QuerySet[Any, Any]":
    """Return the windows, and whether the connection dropped out on each (Q5)."""
    windows = QuotaWindow.objects.filter(connection__in=keys).order_by("window")
    return with_dropped_out(windows=windows, settings=settings).values_list(*WINDOW_FIELDS, "dropped_out")


def _cooldowns_of(keys: Any) -> "QuerySet[Cooldown, Any]":
    return Cooldown.objects.filter(connection__in=keys).order_by("id").values_list(*COOLDOWN_FIELDS)


_CONNECTIONS = Compiled(lambda keys: _connections_of(ConnectionRow.objects.live().filter(pk__in=keys)))
_WINDOWS = Compiled(_windows_of)
_COOLDOWNS = Compiled(_cooldowns_of)


def _by_key(
    connections: Iterable[tuple[Any, ...]], windows: Iterable[tuple[Any, ...]], cooldowns: Iterable[tuple[Any, ...]]
) -> dict[int, Connection]:
    rows, read = list(connections), list(windows)
    held = {row[0] for row in read if row[-1]}
    found = to_connections(connections=rows, windows=[row[:-1] for row in read], cooldowns=cooldowns, held=held)
    return dict(zip((row[0] for row in rows), found, strict=True))


def read_breakers() -> dict[str, datetime]:
    """Read until when each provider's breaker is open."""
    rows = Breaker.objects.values_list("provider", "open_until")
    return {provider: open_until for provider, open_until in rows if open_until is not None}
