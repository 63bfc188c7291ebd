"""The one history of everything that is changed by hand or by key: one list over the tables of all kinds (SPEC 3, 5).

A version is told by what differs from the version before it of the same row. One query finds the versions of all kinds
in their order, one more per kind that is among them reads them together with those before.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

import msgspec
from django.db.models import CharField, Count, Max, Min, OuterRef, Q, QuerySet, Subquery, Value

from omniroute_admin.common.core.changes import CHANGED, EMPTY, NOTHING, FieldChange, HistoryEntry
from omniroute_admin.common.kinds import Kind, all_kinds, find_kind
from omniroute_admin.common.selectors.horizons import audit_name, horizon_within

NOBODY_NAMED = "nobody named"
"""Who made a change of which the history knows no name: the installation itself, or a shell."""

_ALIKE = 2
"""Two changes of one act are shown as two; from three on they are one line."""

Place = tuple[str, int]
"""Where a version stands: key of the kind, id of the version."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes are asked for; what is left empty does not narrow.

    `kinds` are keys, `act` is one of ACTS; `who`, `what` and `reason` are parts of a text in any letter case. `since`
    is inclusive, `until` exclusive, both aware; `at` is one instant, to the microsecond. `owner` is the primary key of
    a connection: only what belongs to it.
    """

    kinds: tuple[str, ...] = ()
    act: str = ""
    who: str = ""
    what: str = ""
    reason: str = ""
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None
    owner: int | None = None


class Act(msgspec.Struct, frozen=True):
    """What one act did to rows of one kind: the last of its changes, and how many there are (`count`)."""

    entry: HistoryEntry
    count: int = 1


def find_acts(*, asked: Asked, limit: int, offset: int = 0) -> list[Act]:
    """Return the acts that made the changes that are asked for, the newest first.

    A command or a file writes thousands of rows at one instant: the changes of one kind and instant are one act.
    Where there are but two, each stands for itself, so that there may be twice `limit`.
    """
    found = _merged(asked, _instants)
    shown = [] if found is None else list(found.order_by("-history_date", "kind")[offset : offset + limit])
    counts: dict[Place, int] = {}
    for kind, newest, oldest, count in _acts_at(asked, shown):
        counts[kind, newest] = count if count > _ALIKE else 1
        if count == _ALIKE:
            counts[kind, oldest] = 1
    entries = entries_at(places=list(counts))
    return [Act(one, counts[one.kind, one.history_id]) for one in entries]


def count_acts(*, asked: Asked) -> int:
    """Return how many acts made the changes that are asked for; one query."""
    found = _merged(asked, _instants)
    return 0 if found is None else found.count()


def _acts_at(asked: Asked, shown: Sequence[tuple[str, datetime]]) -> list[tuple[str, int, int, int]]:
    """Return (kind, newest, oldest, count) of the acts of these kinds and instants, in their order; one query."""
    if not shown:
        return []
    # Only what a page shows is counted, between its ends: a history may be long.
    until = shown[0][1] + timedelta(microseconds=1)
    found = _merged(msgspec.structs.replace(asked, since=shown[-1][1], until=until), _of_acts)
    told = {(kind, at): (newest, oldest, count) for kind, at, newest, oldest, count in found or ()}
    return [(kind, *told[kind, at]) for kind, at in shown if (kind, at) in told]


def find_entries(*, asked: Asked, limit: int, offset: int = 0) -> list[HistoryEntry]:
    """Return the changes that are asked for, the newest first."""
    return entries_at(places=find_places(asked=asked, limit=limit, offset=offset))


def count_entries(*, asked: Asked) -> int:
    """Return how many changes are asked for; one query."""
    found = _merged(asked, _each)
    return 0 if found is None else found.count()


def find_places(*, asked: Asked, limit: int | None = None, offset: int = 0) -> list[Place]:
    """Return where the changes stand that are asked for, the newest first; one query."""
    found = _merged(asked, _each)
    if found is None:
        return []
    ordered = found.order_by("-history_date", "-history_id", "kind")
    end = None if limit is None else offset + limit
    return [(kind, history_id) for kind, history_id, _ in ordered[offset:end]]


def entries_at(*, places: Sequence[Place]) -> list[HistoryEntry]:
    """Return the changes at these places, in their order; one query per kind among them."""
    wanted = sorted(places)
    told: dict[Place, HistoryEntry] = {}
    for key, group in groupby(wanted, key=lambda place: place[0]):
        kind = find_kind(key)
        if kind is not None:
            told |= {(key, one.history_id): one for one in _read(kind, [history_id for _, history_id in group])}
    return [told[place] for place in places if place in told]


def entries_of(*, kind: str, rows: Sequence[int], limit: int) -> list[HistoryEntry]:
    """Return the last changes of these rows (primary keys) of one kind, the newest first; two queries."""
    known = find_kind(kind)
    if known is None or not rows:
        return []
    found = known.versions.filter(id__in=rows).order_by("-history_date", "-history_id")
    ids = found.values_list("history_id", flat=True)[:limit]
    return entries_at(places=[(kind, one) for one in ids])


def find_entry(*, kind: str, history_id: int) -> HistoryEntry | None:
    """Return one change; None where there is none of that number."""
    return next(iter(entries_at(places=[(kind, history_id)])), None)


def find_version(*, kind: Kind, history_id: int) -> Any | None:
    """Return the stored version itself; None where there is none of that number."""
    return kind.versions.select_related(*kind.related).filter(history_id=history_id).first()


def _merged(asked: Asked, told: Callable[[Kind, Asked], QuerySet[Any, Any]]) -> QuerySet[Any, Any] | None:
    """Return what is told of each kind that is asked for as one union, in no order."""
    chosen = [kind for kind in all_kinds() if not asked.kinds or kind.key in asked.kinds]
    if asked.owner is not None:
        chosen = [kind for kind in chosen if kind.owner]
    parts = [told(kind, asked) for kind in chosen]
    return parts[0].union(*parts[1:], all=True) if parts else None


def _each(kind: Kind, asked: Asked) -> QuerySet[Any, Any]:
    """Return (kind, history_id, history_date) of every change of a kind."""
    return _asked_of(kind, asked).values_list("kind", "history_id", "history_date")


def _instants(kind: Kind, asked: Asked) -> QuerySet[Any, Any]:
    """Return (kind, history_date) of every act on a kind: an index has all of it."""
    return _asked_of(kind, asked).values_list("kind", "history_date").distinct()


def _of_acts(kind: Kind, asked: Asked) -> QuerySet[Any, Any]:
    """Return (kind, history_date, newest history_id, oldest history_id, count) of every act on a kind."""
    alike = _asked_of(kind, asked).values("history_date", "kind")
    told = alike.annotate(newest=Max("history_id"), oldest=Min("history_id"), count=Count("history_id"))
    return told.values_list("kind", "history_date", "newest", "oldest", "count")


def _asked_of(kind: Kind, asked: Asked) -> QuerySet[Any, Any]:
    found: QuerySet[Any, Any] = kind.versions.filter(_condition(kind, asked))
    return found.annotate(kind=Value(kind.key, output_field=CharField()))


def _condition(kind: Kind, asked: Asked) -> Q:
    found = Q()
    if asked.act:
        found &= kind.act_is(asked.act)
    if asked.who:
        found &= _who_is(asked.who)
    if asked.reason:
        found &= Q(history_change_reason__icontains=asked.reason)
    instants = {"history_date__gte": asked.since, "history_date__lt": asked.until, "history_date": asked.at}
    found &= Q(**{name: at for name, at in instants.items() if at is not None})
    if asked.owner is not None:
        found &= Q(**{kind.owner: asked.owner})
    for word in asked.what.split():
        found &= _named(kind, word)
    return found


def _who_is(name: str) -> Q:
    found = Q(history_actor__icontains=name)
    return found | Q(history_actor="") if name.lower() in NOBODY_NAMED else found


def _named(kind: Kind, text: str) -> Q:
    """Return the condition of versions whose row is named by that text: `claude/c1` by both of its halves."""
    found = Q(pk__isnull=False) if text.lower() in kind.word.lower() else Q(pk__isnull=True)
    for column in kind.searched:
        found |= Q(**{f"{column}__icontains": text})
    if "/" in text and len(kind.searched) > 1:
        found |= _all_of(kind, text.split("/"))
    return found


def _all_of(kind: Kind, parts: Iterable[str]) -> Q:
    found = Q()
    for part in filter(None, parts):
        either = Q()
        for column in kind.searched:
            either |= Q(**{f"{column}__icontains": part})
        found &= either
    return found


def _read(kind: Kind, ids: Sequence[int]) -> Iterator[HistoryEntry]:
    """Yield the changes of one kind; one query reads the versions and those before them.

    What an entry from before the horizon changed is not told: the one before it may have been removed.
    """
    older = kind.versions.filter(id=OuterRef("id"), history_id__lt=OuterRef("history_id"))
    before = Subquery(older.order_by("-history_id").values("history_id")[:1])
    asked = kind.versions.filter(history_id__in=ids)
    rows = kind.versions.filter(
        Q(history_id__in=ids) | Q(history_id__in=asked.annotate(before=before).values("before"))
    ).annotate(told_from=horizon_within(audit_name(kind.key)))
    wanted = frozenset(ids)
    found = {row.history_id: row for row in rows.select_related(*kind.related)}
    last: dict[int, Any] = {}
    for history_id in sorted(found):
        version = found[history_id]
        if history_id in wanted:
            is_cut = version.told_from is not None and version.history_date < version.told_from
            yield _entry(kind, version, None if is_cut else last.get(version.id), is_cut=is_cut)
        last[version.id] = version


def _entry(kind: Kind, version: Any, before: Any | None, *, is_cut: bool = False) -> HistoryEntry:
    act = kind.act_of(version)
    return HistoryEntry(
        kind=kind.key,
        history_id=version.history_id,
        at=version.history_date,
        who=version.history_actor or NOBODY_NAMED,
        reason=version.history_change_reason or "",
        act=act,
        what=kind.name(version),
        changes=() if is_cut and act == CHANGED else (*_changes(kind, version, before), *kind.more(version, before)),
        may_roll_back=kind.roll_back is not None,
        did=kind.did(version, before) or act,
        row=version.id,
        word=kind.word,
    )


def _changes(kind: Kind, version: Any, before: Any | None) -> Iterator[FieldChange]:
    """Yield what differs from the version before; of a row that was made or deleted, all that there is of it."""
    alone = version.history_type in {"+", "-"}
    for name, told in kind.fields.items():
        value = getattr(version, name)
        words = told.words(value)
        if alone and words not in {NOTHING, EMPTY}:
            is_new = version.history_type == "+"
            yield FieldChange(name, told.label, "" if is_new else words, words if is_new else "")
        elif not alone and _old(kind, before, name, value) != value:
            yield FieldChange(name, told.label, told.words(_old(kind, before, name, value)), words)


def _old(kind: Kind, before: Any | None, name: str, value: Any) -> Any:
    """Return the value before; where it is not known the value itself: nothing is told that is not known."""
    return kind.at_first.get(name, value) if before is None else getattr(before, name)
