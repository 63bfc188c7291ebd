"""Bring list prices into our own rows: append-only, an operator's word untouched (SPEC 3)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from billing_catalog.choices import LIST_SOURCES
from billing_catalog.models import LoadedFact, ModelPrice
from billing_catalog.selectors.prices import prices_ahead
from billing_catalog.selectors.sources import lists_by_provider, providers_in_use
from billing_catalog.services.bulk import create_rows, update_rows
from billing_catalog.services.price_lists import AllLists, ListPrice, prices_of
from billing_catalog.services.prices import ENDED_PRICE, ended_key
from billing_catalog.services.rows import refused_as_conflict
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

REASON = "price lists"

Key = tuple[str, str]
"""Provider, and model in lower case."""


class PriceChange(msgspec.Struct, frozen=True):
    """One line of the difference: `what` is added, changed or ended; prices in USD per million tokens."""

    what: str
    provider: str
    model: str
    before: Decimal | None
    after: Decimal | None


class SyncReport(msgspec.Struct, frozen=True):
    """What a run did, or would do; counts are models."""

    changes: tuple[PriceChange, ...]
    unchanged: int
    kept_operator: int
    left_ended: int
    unpriced: tuple[str, ...]
    """`provider/model` that are listed without an input price: premium, never free (T)."""
    uncovered: tuple[str, ...]
    """Providers in use of which neither a list nor an operator knows a model."""

    def count(self, what: str) -> int:
        """Return how many models were added, changed or ended."""
        return sum(change.what == what for change in self.changes)


class _Plan(msgspec.Struct):
    """The rows to write: `ended` get their end now, `rewritten` begin now and are changed as they are."""

    added: list[ModelPrice] = []
    ended: list[ModelPrice] = []
    rewritten: list[ModelPrice] = []
    changes: list[PriceChange] = []
    unchanged: int = 0
    kept_operator: int = 0
    left_ended: int = 0


def wanted_prices(*, read: AllLists, only: Iterable[str] = ()) -> dict[str, dict[str, ListPrice]]:
    """Return by provider what the lists say; of the named providers only, where some are named.

    Raises:
        NotFound: no list serves one of the named providers.
    """
    served = lists_by_provider(price_lists=read.priced, capability_lists=read.capable)
    missing = sorted(set(only) - served.keys())
    if missing:
        raise NotFound(f"No price list serves {', '.join(missing)}; a price source says which one does.")
    chosen = {name: served[name] for name in only} or served
    return {name: prices_of(provider=name, lists=lists, read=read) for name, lists in chosen.items()}


def sync_prices(
    *,
    wanted: Mapping[str, Mapping[str, ListPrice]],
    actor: Actor,
    now: datetime,
    dry_run: bool = False,
    written: Callable[[int], object] = bool,
) -> SyncReport:
    """Make the stored list prices what the lists say, in one transaction.

    A changed price ends now and a new row with the same rank begins; a model that left a list that was read ends; a
    row that no list made is never touched, and a list price that an operator ended stays ended. `written` hears how
    many rows each batch wrote.

    Raises:
        Conflict: another writer gave one of the models a price at the same moment; nothing is written.
    """
    if dry_run or not _plan(wanted=wanted, now=now).changes:
        return _report(plan=_plan(wanted=wanted, now=now), wanted=wanted, now=now)
    with refused_as_conflict(), deciding_write(wide_at=now):
        plan = _plan(wanted=wanted, now=now)
        for rows, fields in ((plan.ended, ["effective_to"]), (plan.rewritten, [*_FIELDS, "source"])):
            update_rows(
                model=ModelPrice, rows=rows, fields=fields, actor=actor, reason=REASON, now=now, written=written
            )
        create_rows(model=ModelPrice, rows=plan.added, actor=actor, reason=REASON, now=now, written=written)
        return _report(plan=plan, wanted=wanted, now=now)


_FIELDS = ("input_usd_per_million", "output_usd_per_million", "cached_input_usd_per_million", "capabilities")


def _plan(*, wanted: Mapping[str, Mapping[str, ListPrice]], now: datetime) -> _Plan:
    stored: dict[Key, list[ModelPrice]] = {}
    for row in prices_ahead(now=now, providers=wanted):
        stored.setdefault((row.provider, row.model.lower()), []).append(row)
    ended = set(LoadedFact.objects.filter(kind=ENDED_PRICE).values_list("key", flat=True))
    plan = _Plan()
    for provider, prices in wanted.items():
        for name, price in prices.items():
            rows = stored.pop((provider, name), [])
            if not rows and ended_key(provider=provider, model=name) in ended:
                plan.left_ended += 1
            else:
                _plan_one(plan=plan, rows=rows, price=price, now=now)
    for rows in stored.values():
        _plan_gone(plan=plan, rows=rows, has_list=bool(wanted[rows[0].provider]), now=now)
    return plan


def _plan_one(*, plan: _Plan, rows: Sequence[ModelPrice], price: ListPrice, now: datetime) -> None:
    if not rows:
        plan.added.append(_row(price=price, model=price.listed.name, rank=None, now=now))
        plan.changes.append(_change(what="added", old=None, new=plan.added[-1]))
        return
    old = rows[-1]
    if not _is_ours(rows):
        plan.kept_operator += 1
        return
    new = _row(price=price, model=old.model, rank=old.rank, now=now)
    if all(getattr(old, field) == getattr(new, field) for field in _FIELDS):
        plan.unchanged += 1
        return
    plan.changes.append(_change(what="changed", old=old, new=new))
    if old.effective_from >= now:
        for field in (*_FIELDS, "source"):
            setattr(old, field, getattr(new, field))
        plan.rewritten.append(old)
        return
    old.effective_to = now
    plan.ended.append(old)
    plan.added.append(new)


def _plan_gone(*, plan: _Plan, rows: Sequence[ModelPrice], has_list: bool, now: datetime) -> None:
    # An empty list is more likely a broken one than a provider without models.
    if not _is_ours(rows):
        plan.kept_operator += 1
    elif has_list and rows[-1].effective_from < now:
        plan.changes.append(_change(what="ended", old=rows[-1], new=None))
        rows[-1].effective_to = now
        plan.ended.append(rows[-1])


def _is_ours(rows: Sequence[ModelPrice]) -> bool:
    # One open row that a list made. An operator who set an end, or planned a row, has spoken.
    return len(rows) == 1 and rows[0].source in LIST_SOURCES and rows[0].effective_to is None


def _row(*, price: ListPrice, model: str, rank: int | None, now: datetime) -> ModelPrice:
    listed = price.listed
    return ModelPrice(
        provider=price.provider,
        model=model,
        input_usd_per_million=listed.input_usd_per_million,
        output_usd_per_million=listed.output_usd_per_million,
        cached_input_usd_per_million=listed.cached_input_usd_per_million,
        capabilities=sorted(listed.capabilities),
        rank=rank,
        source=price.source,
        effective_from=now,
    )


def _change(*, what: str, old: ModelPrice | None, new: ModelPrice | None) -> PriceChange:
    row = new or old
    if row is None:
        raise ValueError("a change has a row before or after it")
    return PriceChange(
        what=what,
        provider=row.provider,
        model=row.model,
        before=old.input_usd_per_million if old else None,
        after=new.input_usd_per_million if new else None,
    )


def _report(*, plan: _Plan, wanted: Mapping[str, Mapping[str, ListPrice]], now: datetime) -> SyncReport:
    unpriced = sorted(
        f"{provider}/{price.listed.name}"
        for provider, prices in wanted.items()
        for price in prices.values()
        if price.listed.input_usd_per_million is None
    )
    in_use = providers_in_use()
    covered = {provider for provider, prices in wanted.items() if prices}
    covered |= {row.provider for row in prices_ahead(now=now, providers=in_use)}
    return SyncReport(
        changes=tuple(plan.changes),
        unchanged=plan.unchanged,
        kept_operator=plan.kept_operator,
        left_ended=plan.left_ended,
        unpriced=tuple(unpriced),
        uncovered=tuple(sorted(in_use - covered)),
    )
