"""Import the catalogue from a file: a dry run that shows every difference, then just that, in one transaction (SPEC 5).

The dry run is the import itself, rolled back: what it tells of a row is what the same services will do. Only prices,
of which there are thousands, are checked there and not written. A row that is not in the file stays as it is.

django-import-export was weighed and left: its rows are saved past our services, it ignores unknown columns, and what it
writes against formulas does not read back the same.
"""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.core.exceptions import ValidationError
from django.db import models, transaction

from billing_catalog.core.sheets import Problem, Sheet, SheetRow
from billing_catalog.errors import ImportChanged
from billing_catalog.models import ModelPrice
from billing_catalog.selectors.aliases import alias_map
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services.drafts import draft_of, field_problems, problems_in, read_texts
from billing_catalog.services.kinds import FILES, PRICES, By, Kind, text_of
from billing_catalog.services.price_batch import Wanted, set_prices
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write


class Change(msgspec.Struct, frozen=True):
    """One field of a row: what it says, and what it would say."""

    name: str
    label: str
    old: str
    new: str


class Outcome(msgspec.Struct, frozen=True):
    """What becomes of one row of the file: `what` is new, changed, unchanged or refused."""

    kind: str
    place: str
    name: str
    what: str
    changes: tuple[Change, ...] = ()
    problems: tuple[Problem, ...] = ()


class Report(msgspec.Struct, frozen=True):
    """What a file does to the catalogue; `problems` are those of the file itself."""

    outcomes: tuple[Outcome, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        """Tell whether something is wrong with it: then nothing of it is written."""
        return bool(self.problems) or any(one.what == "refused" for one in self.outcomes)

    @property
    def is_undone(self) -> bool:
        """Tell whether every row that was imported stands as before already: there is nothing left to take back."""
        return bool(self.outcomes) and all(one.what == "unchanged" for one in self.outcomes)

    @property
    def digest(self) -> str:
        """Return a mark of just this difference."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def of(self, what: str) -> list[Outcome]:
        """Return the rows of which this becomes."""
        return [one for one in self.outcomes if one.what == what]

    @property
    def written(self) -> int:
        """Return how many rows it writes."""
        return len(self.of("new")) + len(self.of("changed"))


def preview_import(*, sheets: Iterable[Sheet], now: datetime) -> Report:
    """Return what an import would do; nothing is written."""
    with deciding_write() as write:
        report = _apply(sheets, By(actor=Actor(name="dry run"), reason="", now=now), is_dry=True)
        write.changed = False
        transaction.set_rollback(True)
    return report


def import_sheets(*, sheets: Iterable[Sheet], shown: str, actor: Actor, reason: str, now: datetime) -> Report:
    """Import a file whose dry run was shown; `shown` is the digest of that difference.

    Raises:
        ImportChanged: the difference is another one by now, or is refused; nothing is written.
    """
    with deciding_write() as write:
        report = _apply(sheets, By(actor=actor, reason=reason, now=now))
        if report.is_refused or report.digest != shown:
            raise ImportChanged(report)  # which rolls back what was written
        write.changed = bool(report.written)
    return report


def _apply(sheets: Iterable[Sheet], by: By, *, is_dry: bool = False) -> Report:
    given = {sheet.kind: sheet for sheet in sheets}
    problems = tuple(problem for sheet in given.values() for problem in sheet.problems)
    if problems:
        return Report(problems=problems)
    outcomes: list[Outcome] = []
    for name, kind in FILES.items():
        if name in given:
            writing = _WritingPrices(kind, by) if kind is PRICES else _Writing(kind, by)
            outcomes += writing.all_of(given[name].rows)
            if not is_dry:
                writing.finish()
    return Report(tuple(outcomes))


class _Writing:
    """Writes the rows of one sort, one after another; a row that is refused leaves the others as they are."""

    def __init__(self, kind: Kind, by: By) -> None:
        self._kind, self._by = kind, by
        self._aliases = alias_map()
        rows = prices_in_force(now=by["now"]) if kind is PRICES else kind.model._default_manager.order_by("pk")
        self._stored = {self._key({name: getattr(row, name) for name in kind.identity}): row for row in rows}
        self._places: dict[tuple[Any, ...], str] = {}

    def all_of(self, rows: Iterable[SheetRow]) -> list[Outcome]:
        return [self._one(row) for row in rows]

    def finish(self) -> None:
        """Write what was put off."""

    def _key(self, values: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple(values.get(name) for name in self._kind.identity)

    def _one(self, row: SheetRow) -> Outcome:
        values, problems = read_texts(kind=self._kind, texts=row.texts, aliases=self._aliases)
        problems = [*row.problems, *problems]
        key = self._key(values)
        stored = self._stored.get(key)
        if not problems and (first := self._places.setdefault(key, row.place)) != row.place:
            problems = [("", f"The same row stands at {first}.")]
        if problems:
            return self._refused(row, [*problems, *self._others(stored, values, problems)])
        changes = self._changes(stored, values)
        what = "unchanged" if not changes else "changed" if stored is not None else "new"
        if changes and (refused := self._write(stored, values)):
            return self._refused(row, refused)
        return Outcome(self._kind.file, row.place, self._name(row), what, changes)

    def _others(self, stored: models.Model | None, values: Mapping[str, Any], problems: list[Problem]) -> list[Problem]:
        """Return what else is wrong: every bad field is named at once, unless the whole row is none."""
        if any(not name for name, _ in problems):
            return []
        draft = draft_of(kind=self._kind, row=stored, values=values)
        return field_problems(kind=self._kind, draft=draft, but=[name for name, _ in problems])

    def _changes(self, stored: models.Model | None, values: Mapping[str, Any]) -> tuple[Change, ...]:
        labels = {column.name: column.label for column in self._kind.columns}
        olds = {name: "" if stored is None else text_of(getattr(stored, name)) for name in values}
        news = {name: text_of(value) for name, value in values.items()}
        return tuple(
            Change(name, labels[name], olds[name], new)
            for name, new in news.items()
            if stored is None or olds[name] != new
        )

    def _write(self, stored: models.Model | None, values: dict[str, Any]) -> list[Problem]:
        try:
            with transaction.atomic():
                if stored is None:
                    self._kind.create(values, self._by)
                else:
                    self._kind.update(stored, values, self._by)
        except (ValidationError, ProductError) as error:
            return problems_in(error=error)
        return []

    def _refused(self, row: SheetRow, problems: list[Problem]) -> Outcome:
        return Outcome(self._kind.file, row.place, self._name(row), "refused", problems=tuple(problems))

    def _name(self, row: SheetRow) -> str:
        return " ".join(filter(None, (row.texts.get(name, "") for name in self._kind.identity)))[:300]


class _WritingPrices(_Writing):
    """Checks prices one by one, and writes them together."""

    def __init__(self, kind: Kind, by: By) -> None:
        super().__init__(kind, by)
        self._wanted: list[Wanted] = []

    def finish(self) -> None:
        set_prices(wanted=self._wanted, **self._by)

    def _write(self, stored: models.Model | None, values: dict[str, Any]) -> list[Problem]:
        draft = draft_of(kind=self._kind, row=stored, values=values)
        problems = field_problems(kind=self._kind, draft=draft, but=[])
        if not problems:
            self._wanted.append(Wanted(stored if isinstance(stored, ModelPrice) else None, values))
        return problems
