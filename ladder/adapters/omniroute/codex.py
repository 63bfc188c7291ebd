"""What OmniRoute keeps about codex inside provider_specific_data, key by key.

Codex answers carry the state of its two plan windows. OmniRoute writes it, and the cooldown of a
codex account per scope of models, into the JSON column that also holds tokens. Only the keys
below are taken out, inside SQL, and only where the column is valid JSON.
"""

import sqlite3
from typing import NamedTuple

_VALID = """CASE WHEN typeof(provider_specific_data) = 'text' AND json_valid(provider_specific_data)
                 THEN provider_specific_data ELSE '{}' END"""
_IS_CODEX = "lower(trim(provider)) = 'codex'"
# Constant texts put together from constants: nothing from outside goes into a statement.
_SELECT_STATE = f"""
    SELECT id,
           json_extract(own, '$.codexExhaustedWindow'),
           json_extract(own, '$.codexQuotaState.scope'),
           json_extract(own, '$.codexQuotaState.updatedAt'),
           json_extract(own, '$.codexQuotaState.usage5h'),
           json_extract(own, '$.codexQuotaState.limit5h'),
           json_extract(own, '$.codexQuotaState.resetAt5h'),
           json_extract(own, '$.codexQuotaState.usage7d'),
           json_extract(own, '$.codexQuotaState.limit7d'),
           json_extract(own, '$.codexQuotaState.resetAt7d')
      FROM (SELECT id, {_VALID} AS own FROM provider_connections WHERE {_IS_CODEX})
"""  # noqa: S608
_SELECT_SCOPES = f"""
    SELECT connection.id, scope.key, scope.value
      FROM provider_connections AS connection,
           json_each({_VALID}, '$.codexScopeRateLimitedUntil') AS scope
     WHERE {_IS_CODEX} AND scope.type = 'text'
     ORDER BY connection.id, scope.key
"""  # noqa: S608


class CodexWindow(NamedTuple):
    """One plan window as the last answer described it; raw, any field may be anything."""

    window: str
    usage: object
    limit: object
    reset_at: object


class CodexState(NamedTuple):
    """The state of one codex connection; raw."""

    exhausted_window: object
    scope: object
    updated_at: object
    windows: tuple[CodexWindow, CodexWindow]
    limited_scopes: tuple[tuple[object, object], ...]


def select_codex_states(db: sqlite3.Connection) -> dict[object, CodexState]:
    """The state of every codex row by connection id."""
    scopes: dict[object, list[tuple[object, object]]] = {}
    for connection_id, scope, until in db.execute(_SELECT_SCOPES):
        scopes.setdefault(connection_id, []).append((scope, until))
    return {row[0]: _to_state(row=row[1:], scopes=scopes.get(row[0], [])) for row in db.execute(_SELECT_STATE)}


def _to_state(*, row: tuple[object, ...], scopes: list[tuple[object, object]]) -> CodexState:
    exhausted, scope, updated_at, *windows = row
    return CodexState(
        exhausted_window=exhausted,
        scope=scope,
        updated_at=updated_at,
        windows=(CodexWindow("5h", *windows[:3]), CodexWindow("weekly", *windows[3:])),
        limited_scopes=tuple(scopes),
    )
