"""OmniRoute's cache of the last quota answer, for the two facts that quota_snapshots does not keep.

A snapshot cannot say "unlimited", and writes 0.0 for a window that has neither a total nor a
percentage. The cache entry of the same or a newer fetch knows both. Only single keys are taken
out: the entry's free text message is never selected.
"""

import sqlite3
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from ladder.adapters.omniroute.fields import OddValue, SkippedRow, is_connection_id, problem, read_instant
from ladder.adapters.omniroute.values import ImportProblem

_TABLE = "key_value"
_VALID = "CASE WHEN typeof(value) = 'text' AND json_valid(value) THEN value ELSE '{}' END"
_NAMESPACE = "providerLimitsCache"
_SELECT_ENTRIES = f"""
    SELECT key, json_valid(value), json_extract({_VALID}, '$.fetchedAt')
      FROM key_value WHERE namespace = ? ORDER BY key
"""  # noqa: S608
_SELECT_WINDOWS = f"""
    SELECT entry.key, quota.key,
           coalesce(json_type(quota.value, '$.unlimited') = 'true', 0),
           coalesce(json_type(quota.value, '$.total') IN ('integer', 'real')
                    AND json_extract(quota.value, '$.total') = 0
                    AND coalesce(json_type(quota.value, '$.remainingPercentage'), 'null') = 'null', 0)
      FROM (SELECT key, {_VALID} AS answer FROM key_value WHERE namespace = ?) AS entry,
           json_each(entry.answer, '$.quotas') AS quota
     WHERE quota.type = 'object'
"""  # noqa: S608


class CachedWindow(NamedTuple):
    """`has_no_total`: total 0 and no percentage, so that a stored 0.0 means nothing."""

    unlimited: bool
    has_no_total: bool


class CacheEntry(NamedTuple):
    """One connection's last answer: when, and its windows by OmniRoute's own key."""

    fetched_at: datetime
    windows: dict[object, CachedWindow]


class Cache(NamedTuple):
    """All readable entries by connection id, and how many rows there are."""

    entries: dict[str, CacheEntry]
    rows: int


def read_cache(*, db: sqlite3.Connection, known: Collection[str]) -> tuple[Cache, list[ImportProblem]]:
    """The entries of the `known` connections; the others are reported, as OmniRoute skips them too."""
    problems: list[ImportProblem] = []
    entries: dict[str, CacheEntry] = {}
    rows = db.execute(_SELECT_ENTRIES, (_NAMESPACE,)).fetchall()
    for place, (key, is_json, fetched_at) in enumerate(rows, start=1):
        try:
            entries[key] = _read_entry(key=key, is_json=is_json, fetched_at=fetched_at, known=known)
        except SkippedRow as skipped:
            name = key if is_connection_id(key) else f"entry {place}"
            problems.append(problem(table=_TABLE, key=f"{_NAMESPACE}/{name}", code=skipped.code, detail=skipped.detail))
    for key, window, unlimited, has_no_total in db.execute(_SELECT_WINDOWS, (_NAMESPACE,)):
        if key in entries:
            entries[key].windows[window] = CachedWindow(bool(unlimited), bool(has_no_total))
    return Cache(entries=entries, rows=len(rows)), problems


def _read_entry(*, key: object, is_json: object, fetched_at: object, known: Collection[str]) -> CacheEntry:
    if not is_json:
        raise SkippedRow(code="bad_cache_entry", detail="The entry is not valid JSON; skipped.")
    if key not in known:
        raise SkippedRow(code="unknown_connection", detail="The entry belongs to no imported connection; skipped.")
    try:
        instant = read_instant(fetched_at)
    except OddValue as odd:
        raise SkippedRow(code="bad_cache_entry", detail=f"fetchedAt {odd}; skipped.") from odd
    if instant is None:
        raise SkippedRow(code="bad_cache_entry", detail="The entry has no fetchedAt; skipped.")
    return CacheEntry(instant, {})
