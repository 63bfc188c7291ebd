"""One version of a row, and what going back to it would change (SPEC 3, 5)."""

from datetime import datetime
from typing import Any

import msgspec

from omniroute_admin.common.core.changes import FieldChange, HistoryEntry
from omniroute_admin.common.kinds import Kind, RollBack, find_kind
from omniroute_admin.common.selectors.history import entries_of, find_entry, find_version

_HIGHEST_ID = 2**31 - 1
GONE = {"": "gone"}
"""What somebody saw who saw that there is no such row any more."""


class Outlook(msgspec.Struct, frozen=True):
    """What going back would do, nothing written yet.

    `refusal` says why one cannot, else it is empty. `right` is what somebody must be allowed. `is_gone` tells that the
    row would come back. `changes` lead from the row as it stands to the version; `seen` is the row as it stands, in
    words, by field. `last` is the last change of the row as it stands.
    """

    refusal: str
    right: str = ""
    note: str = ""
    is_gone: bool = False
    changes: tuple[FieldChange, ...] = ()
    seen: dict[str, str] = {}
    last: HistoryEntry | None = None


class VersionSeen(msgspec.Struct, frozen=True):
    """One version, the outlook of going back to it, and the newest versions of the same row."""

    entry: HistoryEntry
    outlook: Outlook
    others: tuple[HistoryEntry, ...]


def see_version(*, kind: str, history_id: int, now: datetime, others: int = 20) -> VersionSeen | None:
    """Return a version as a page shows it; None where there is none of that kind and number."""
    known = find_kind(kind)
    if known is None or history_id > _HIGHEST_ID:
        return None
    version, entry = find_version(kind=known, history_id=history_id), find_entry(kind=kind, history_id=history_id)
    if version is None or entry is None:
        return None
    outlook = outlook_of(kind=known, version=version, now=now)
    return VersionSeen(
        entry=entry, outlook=outlook, others=tuple(entries_of(kind=kind, rows=[entry.row], limit=others))
    )


def outlook_of(*, kind: Kind, version: Any, now: datetime) -> Outlook:
    """Return what going back to a version would change."""
    if kind.roll_back is None:
        return Outlook(refusal=kind.kept)
    way = kind.roll_back
    present = way.present(version, now=now, lock=False)
    if present is None and way.needs_row:
        return Outlook(refusal=f"This {kind.word} is gone, and telemetry alone makes one.", right=way.right)
    changes = changes_to(kind=kind, way=way, version=version, present=present)
    last = None if present is None else next(iter(entries_of(kind=kind.key, rows=[present.pk], limit=1)), None)
    return Outlook(
        refusal="",
        right=way.right,
        note=way.note,
        is_gone=present is None,
        changes=changes,
        seen=seen_of(kind=kind, way=way, row=present),
        last=last,
    )


def seen_of(*, kind: Kind, way: RollBack, row: Any | None) -> dict[str, str]:
    """Return a row, or a version, in words by field, as far as going back would set it."""
    return dict(GONE) if row is None else {name: kind.fields[name].words(getattr(row, name)) for name in way.fields}


def changes_to(*, kind: Kind, way: RollBack, version: Any, present: Any | None) -> tuple[FieldChange, ...]:
    """Return what differs between the row as it stands and a version, field by field."""
    before, after = seen_of(kind=kind, way=way, row=present), seen_of(kind=kind, way=way, row=version)
    return tuple(
        FieldChange(field=name, label=kind.fields[name].label, old=before.get(name, ""), new=after[name])
        for name in way.fields
        if before.get(name) != after[name]
    )
