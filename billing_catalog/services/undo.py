"""Take an import back: what it made goes, what it changed says again what it said before (SPEC 5, 4).

An import is known by its instant, which every version that it wrote bears. A row that was changed since stays, and then
nothing is taken back. Prices are append-only: the old numbers come back as a new price from now on.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.db import models
from django.db.models import Max

from billing_catalog.errors import ImportChanged
from billing_catalog.models import ModelPrice
from billing_catalog.services.imports import Change, Outcome, Report
from billing_catalog.services.kinds import ALIASES, FILES, PRICES, By, Kind, text_of
from billing_catalog.services.price_batch import Wanted, set_prices
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.horizons import audit_horizons
from omniroute_admin.common.services.revision import deciding_write

MOST_ROWS = 1_000
"""An import that wrote more is taken back by importing what was exported before it."""

_REWRITTEN = "An alias has rewritten rows for good: delete it by hand."
_CHANGED = "It was changed since."
_PRUNED = "The retention period has removed what stood before: it cannot be told any more."


class _Step(msgspec.Struct, frozen=True):
    """What is done to one row: `values` None is that it goes."""

    kind: Kind
    row: models.Model | None
    values: Mapping[str, Any] | None
    outcome: Outcome


def preview_undo(*, at: datetime) -> Report:
    """Return what would be taken back of what was written at an instant.

    Its rows are `removed`, `changed`, `refused`, or `unchanged`: those that stand as before the import already.
    """
    return Report(tuple(step.outcome for step in _plan(at)))


def undo_import(*, at: datetime, shown: str, actor: Actor, reason: str, now: datetime) -> Report:
    """Take back what was written at an instant, all of it or nothing; `shown` is the digest of its preview.

    Where all of it stands as before already (sent twice), nothing is written.

    Raises:
        ImportChanged: something of it was changed since, or is not what was shown; nothing is written.
    """
    with deciding_write() as write:
        steps = _plan(at)
        report = Report(tuple(step.outcome for step in steps))
        if report.is_undone:
            write.changed = False
            return report
        if report.is_refused or not steps or report.digest != shown:
            raise ImportChanged(report)
        _write(steps, By(actor=actor, reason=reason, now=now))
    return report


def _write(steps: Iterable[_Step], by: By) -> None:
    wanted = []
    for step in steps:
        if step.outcome.what == "unchanged":
            continue
        if step.values is None:
            step.kind.delete(step.row, by)
        elif isinstance(step.row, ModelPrice):
            wanted.append(Wanted(step.row, step.values))
        else:
            step.kind.update(step.row, dict(step.values), by)
    set_prices(wanted=wanted, **by)


def _plan(at: datetime) -> list[_Step]:
    # Of an import that is older than the history of any kind, some of what it wrote may no longer be told.
    is_pruned = any(at < one.before for one in audit_horizons().values())
    return [step for kind in FILES.values() for step in _Past(kind, at).steps(is_pruned=is_pruned)]


class _Past:
    """The versions of one sort that were written at an instant, with those around them."""

    def __init__(self, kind: Kind, at: datetime) -> None:
        past: Any = kind.model.history.model.objects  # type: ignore[attr-defined]
        self._kind, self._at = kind, at
        self._versions = list(past.filter(history_date=at).order_by("history_id"))
        ids = {version.id for version in self._versions}
        self._newest = dict(past.filter(id__in=ids).order_by().values_list("id").annotate(last=Max("history_id")))
        self._rows = kind.model._default_manager.in_bulk(ids)
        self._before = {row.id: row for row in past.filter(id__in=ids, history_date__lt=at).order_by("history_id")}

    def steps(self, *, is_pruned: bool) -> list[_Step]:
        """Return what takes each of them back."""
        if is_pruned:
            return [self._refused(version, _PRUNED) for version in self._versions]
        if self._kind is PRICES:
            # The end of the price before belongs to the price that came after it.
            return [self._price(version) for version in self._versions if version.history_type == "+"]
        return [self._step(version) for version in self._versions]

    def _step(self, version: Any) -> _Step:
        row = self._rows.get(version.id)
        if self._kind is ALIASES:
            return self._refused(version, _REWRITTEN)
        before = self._before.get(version.id)
        if self._is_as_before(version, row, before):
            return _Step(self._kind, row, None, Outcome(self._kind.file, "", self._name(version), "unchanged"))
        if row is None or self._newest[version.id] != version.history_id:
            return self._refused(version, _CHANGED)
        if version.history_type == "+":
            return self._told(version, row, None)
        return self._told(version, row, before) if before is not None else self._refused(version, _CHANGED)

    def _is_as_before(self, version: Any, row: Any | None, before: Any | None) -> bool:
        """Tell whether a row stands as it stood before the import: it is gone again, or says the same again."""
        if version.history_type == "+":
            return row is None
        if row is None or before is None or self._newest[version.id] == version.history_id:
            return False
        return all(getattr(row, name) == getattr(before, name) for name in self._kind.names)

    def _price(self, version: Any) -> _Step:
        row = self._rows.get(version.id)
        if row is None or self._newest[version.id] != version.history_id:
            return self._refused(version, _CHANGED)
        ended = (one for one in self._rows.values() if isinstance(one, ModelPrice) and one.effective_to == self._at)
        return self._told(version, row, next((one for one in ended if _is_same_model(one, row)), None))

    def _told(self, version: Any, row: models.Model, before: Any | None) -> _Step:
        names = [name for name in self._kind.names if self._kind is not PRICES or name not in self._kind.identity]
        values = None if before is None else {name: getattr(before, name) for name in names}
        labels = {column.name: column.label for column in self._kind.columns}
        changes = () if values is None else tuple(
            Change(name, labels[name], text_of(getattr(row, name)), text_of(value))
            for name, value in values.items() if getattr(row, name) != value
        )  # fmt: skip
        what = "removed" if values is None else "changed"
        return _Step(self._kind, row, values, Outcome(self._kind.file, "", self._name(version), what, changes))

    def _refused(self, version: Any, words: str) -> _Step:
        outcome = Outcome(self._kind.file, "", self._name(version), "refused", problems=(("", words),))
        return _Step(self._kind, None, None, outcome)

    def _name(self, version: Any) -> str:
        return " ".join(filter(None, (text_of(getattr(version, name)) for name in self._kind.identity)))


def _is_same_model(one: ModelPrice, other: Any) -> bool:
    return one.provider == other.provider and one.model == other.model
