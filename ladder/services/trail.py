"""Keep what a write changes as it stood before, in the write's own transaction, for the timeline to tell (SPEC 3).

A service says what it is about to change (`remember_…`) before it does, under the locks of those rows. When the
outermost write ends, what turned out to be another is written as one trace. Nothing reads it but the timeline.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime

import msgspec
from django.db import connection as database

from billing_catalog.core.values import Thresholds
from ladder.core.timeline.causes import Cause
from ladder.core.timeline.trail import (
    AccountImage,
    BreakerImage,
    BudgetImage,
    Catalogue,
    CatalogueImage,
    Image,
    SettingsImage,
    catalogue_before,
    looks_alike,
)
from ladder.core.values import Budget, Connection, LadderSettings, Rung
from ladder.mapping import to_settings
from ladder.models import LadderSettings as LadderSettingsRow
from ladder.models import RungBudget, TimelineTrace
from ladder.selectors.state import read_accounts, read_breakers
from ladder.selectors.trail import read_catalogue, read_providers, told_up_to
from omniroute_admin.common.services.revision import DecidingWrite, Watcher, lock_revision, present_write


class _Wide(msgspec.Struct, frozen=True):
    """What a wide write may change, as it was before: the catalogue, and names that an alias rewrites."""

    since: datetime
    catalogue: Catalogue
    providers: Mapping[int, str]
    breakers: Mapping[str, datetime]


class _Kept(msgspec.Struct):
    """What is remembered of one write; `at` is the instant that its services act at."""

    at: datetime | None = None
    judged_by: LadderSettings | None = None
    accounts: dict[int, Connection | None] = {}
    causes: dict[int, list[Cause]] = {}
    breakers: dict[str, datetime | None] = {}
    budgets: dict[Rung, tuple[Budget, ...]] = {}
    settings: LadderSettings | None = None
    thresholds: Thresholds | None = None
    wide: _Wide | None = None

    @property
    def settings_before(self) -> LadderSettings:
        """Return the settings before the write, by which connections are judged; read once."""
        if self.settings is not None:
            return self.settings
        if self.judged_by is None:
            self.judged_by = to_settings(LadderSettingsRow.objects.get(pk=1))
        return self.judged_by


def remember_accounts(*, keys: Collection[int], cause: Cause, now: datetime) -> None:
    """Remember connections as they are, all that is their own, before a write changes them for this cause.

    The caller holds their locks. Five queries, where any of them is not remembered yet.
    """
    kept = _kept(now)
    missing = [key for key in keys if key not in kept.accounts]
    if missing:
        kept.accounts |= dict.fromkeys(missing)
        kept.accounts |= read_accounts(settings=kept.settings_before, keys=missing)
    _add_cause(kept, keys, cause)


def remember_new(*, key: int, cause: Cause, now: datetime) -> None:
    """Remember that a connection was not there before this write."""
    kept = _kept(now)
    kept.accounts.setdefault(key, None)
    _add_cause(kept, [key], cause)


def _add_cause(kept: _Kept, keys: Iterable[int], cause: Cause) -> None:
    for key in keys:
        causes = kept.causes.setdefault(key, [])
        if cause not in causes:
            causes.append(cause)


def remember_breakers(*, breakers: Mapping[str, datetime | None], now: datetime) -> None:
    """Remember until when the breakers of providers were open (None: closed) before a write; it holds their locks."""
    kept = _kept(now)
    kept.breakers = {**breakers, **kept.breakers}


def remember_budgets(*, budgets: Mapping[Rung, tuple[Budget, ...]], now: datetime) -> None:
    """Remember budgets before a write, each in its windows since it was last told; the caller holds their locks."""
    kept = _kept(now)
    kept.budgets = {**budgets, **kept.budgets}


def remember_settings(*, settings: LadderSettings, now: datetime) -> None:
    """Remember the settings before a write; the caller holds their lock."""
    kept = _kept(now)
    kept.settings = kept.settings or settings


def remember_thresholds(*, thresholds: Thresholds, now: datetime) -> None:
    """Remember the tier thresholds before a write; the caller holds their lock."""
    kept = _kept(now)
    kept.thresholds = kept.thresholds or thresholds


def _kept(now: datetime) -> _Kept:
    """Return what is remembered of the outermost write; outside of one it is remembered for nobody."""
    write = present_write()
    kept = _kept_of(write) if write is not None else _Kept()
    kept.at = kept.at or now
    return kept


def _kept_of(write: DecidingWrite) -> _Kept:
    if not isinstance(write.kept, _Kept):
        write.kept = _Kept()
    return write.kept


def look_before(write: DecidingWrite) -> None:
    """Look at all that a wide write may change. Two of them come one after the other (lock of the settings)."""
    rows = LadderSettingsRow.objects.filter(pk=1)
    list(rows.select_for_update() if database.features.has_select_for_update else rows)
    at, since = write.wide_at, told_up_to()
    if at is not None and since is not None:
        since = min(since, at)
        _kept_of(write).wide = _Wide(since, read_catalogue(since=since), read_providers(), read_breakers())


def write_trace(write: DecidingWrite) -> None:
    """Write the trace of what is remembered and is another now; nothing where nothing is, one statement else."""
    if not isinstance(write.kept, _Kept):
        return
    kept = write.kept
    at = kept.at or write.wide_at
    wide = kept.wide if write.changed else None
    images = [] if at is None else [*_changed_accounts(kept, wide, at), *_changed_common(kept, wide)]
    # Before the first look there is nothing to tell: it takes the picture that the others compare with.
    if at is None or not (images or kept.settings) or told_up_to() is None:
        return
    revision = lock_revision() + 1
    if kept.settings is not None:
        # Under the lock, which whoever else changes a connection waits for: they are as this write found them.
        images.append(SettingsImage(kept.settings, read_accounts(settings=kept.settings)))
    TimelineTrace.objects.create(at=at, revision=revision, before=msgspec.json.encode(images))
    traced = [rung.word for rung in kept.budgets]
    if traced:
        RungBudget.objects.filter(rung__in=traced).update(traced_at=at)


def _changed_accounts(kept: _Kept, wide: _Wide | None, at: datetime) -> Iterator[Image]:
    """Yield the images of the connections that look another way now; five queries, none where none is remembered."""
    moved = {} if wide is None else _moved_by_alias(wide)
    keys = [*kept.accounts, *(key for key in moved if key not in kept.accounts)]
    if not keys:
        return
    settings = kept.settings_before
    after = read_accounts(settings=settings, keys=keys)
    for key in keys:
        became = after.get(key)
        was = kept.accounts[key] if key in kept.accounts else _with_provider(became, moved[key])
        if not looks_alike(before=was, after=became, settings=settings, now=at):
            yield AccountImage(key, was, tuple(kept.causes.get(key, (Cause.CATALOGUE,))))


def _moved_by_alias(wide: _Wide) -> dict[int, str]:
    """Return by connection the provider it had, where a wide write gave it another one (SPEC 1)."""
    after = read_providers()
    return {key: was for key, was in wide.providers.items() if after.get(key, was) != was}


def _with_provider(one: Connection | None, provider: str) -> Connection | None:
    return None if one is None else msgspec.structs.replace(one, provider=provider)


def _changed_common(kept: _Kept, wide: _Wide | None) -> Iterator[Image]:
    yield from (BudgetImage(rung, windows) for rung, windows in kept.budgets.items())
    breakers = dict(kept.breakers)
    if wide is not None:
        before, after = wide.breakers, read_breakers()
        names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        breakers = {**{name: before.get(name) for name in names}, **breakers}
        changed = catalogue_before(before=wide.catalogue, after=read_catalogue(since=wide.since))
        yield from [changed] if changed is not None else []
    elif kept.thresholds is not None:
        yield CatalogueImage(thresholds=kept.thresholds)
    yield from (BreakerImage(provider, until) for provider, until in breakers.items())


WATCHER = Watcher(before_wide=look_before, before_end=write_trace)
