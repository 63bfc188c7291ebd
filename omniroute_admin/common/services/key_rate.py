"""The limit of calls a minute that a key may have: kept together by all processes, and never exceeded (SPEC 4).

A minute is one of the clock. Its calls are handed out in blocks: one statement takes a block from the key's row, and
the process then answers from it without asking again. What a process has left of a block when the minute ends is lost,
so that of a limit shared by several processes somewhat less may be let through, and never more.
"""

import threading
from datetime import datetime

import msgspec
from django.db import connection

from omniroute_admin.common.models import KeyAllowance

_BLOCKS = 50
"""How many blocks a limit has: so many writes a minute cost a key that is used up."""
_MOST_KEYS = 1_000
_MINUTE = 60
_LEASE = """
INSERT INTO {table} (key_id, minute, taken, leased) VALUES (%(key)s, %(minute)s, %(block)s, %(block)s)
ON CONFLICT (key_id) DO UPDATE SET
  minute = CASE WHEN {is_past} THEN excluded.minute ELSE {table}.minute END,
  taken = CASE WHEN {is_past} THEN excluded.taken
          WHEN {table}.taken + excluded.taken > %(limit)s THEN %(limit)s ELSE {table}.taken + excluded.taken END,
  leased = CASE WHEN {is_past} THEN excluded.taken
           WHEN {table}.taken + excluded.taken > %(limit)s THEN %(limit)s - {table}.taken ELSE excluded.taken END
WHERE {is_past} OR {table}.taken < %(limit)s
RETURNING minute, leased"""
# A row of the next minute is one that a process with a faster clock began; one further ahead is left from before the
# clock was stepped back.
_IS_PAST = "({table}.minute < excluded.minute OR {table}.minute > excluded.minute + 1)"


class _Lease(msgspec.Struct):
    """What this process may still let through of a minute; `is_spent`: there is no more to be had in it."""

    limit: int
    minute: int
    left: int
    is_spent: bool = False


_leases: dict[int, _Lease] = {}
_lock = threading.Lock()


def take_call(*, key_id: int, limit: int, now: datetime) -> int:
    """Take one call of a key's minute; return 0, or the whole seconds to wait where there is none left.

    A call that is refused costs a statement once a minute in each process, and nothing after that.
    """
    minute, second = divmod(int(now.timestamp()), _MINUTE)
    known = _from_lease(key_id, limit, minute)
    if known is None:
        known = _lease(key_id, limit, minute)
    return 0 if known else _MINUTE - second


def forget_calls() -> None:
    """Drop what this process holds of allowances; tests need it, for their databases share ids."""
    with _lock:
        _leases.clear()


def _from_lease(key_id: int, limit: int, minute: int) -> bool | None:
    """Take a call from the block this process has: True taken, False there is none in this minute, None ask."""
    with _lock:
        lease = _leases.get(key_id)
        if lease is None or lease.limit != limit or not minute <= lease.minute <= minute + 1:
            return None
        if lease.left > 0:
            lease.left -= 1
            return True
        return False if lease.is_spent and lease.minute == minute else None


def _lease(key_id: int, limit: int, minute: int) -> bool:
    """Take a block for this process and one call from it; tell whether there was any."""
    block = max(1, limit // _BLOCKS)
    table = connection.ops.quote_name(KeyAllowance._meta.db_table)
    statement = _LEASE.format(table=table, is_past=_IS_PAST.format(table=table))
    given = {"key": key_id, "minute": minute, "block": block, "limit": limit}
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        rows = cursor.fetchall()  # all of them: SQLite commits when the statement has ended
    with _lock:
        if not rows:
            _put(key_id, _Lease(limit, minute, left=0, is_spent=True))
            return False
        ((of_minute, leased),) = rows
        kept = _leases.get(key_id)
        # Another thread may have taken a block of the same minute meanwhile.
        more = kept.left if kept is not None and (kept.limit, kept.minute) == (limit, of_minute) else 0
        _put(key_id, _Lease(limit, of_minute, left=more + leased - 1))
        return True


def _put(key_id: int, lease: _Lease) -> None:
    if len(_leases) >= _MOST_KEYS and key_id not in _leases:
        _leases.clear()
    _leases[key_id] = lease
