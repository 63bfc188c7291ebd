"""Rows of provider_connections as connections."""

import re
import sqlite3
from collections.abc import Collection
from typing import NamedTuple

from ladder.adapters.omniroute.fields import OddValue, SkippedRow, is_connection_id, problem, read_provider
from ladder.adapters.omniroute.values import ImportedConnection, ImportProblem
from omniroute_admin.common.core.names import NOAUTH, canonical_name

TABLE = "provider_connections"
_SELECT = """
    SELECT id, provider, auth_type, is_active, test_status, error_code, last_error_type, last_error_at,
           rate_limited_until, updated_at
      FROM provider_connections
     ORDER BY provider, id
"""
# The program writes `oauth` and `apikey` only; the other spellings come through its import.
_AUTH_TYPES = {
    "oauth": "oauth",
    "oauth2": "oauth",
    "apikey": "apikey",
    "api_key": "apikey",
    "api-key": "apikey",
    "cookie": "cookie",
    "cookies": "cookie",
    "web-cookie": "cookie",
    "web_cookie": "cookie",
    "none": "none",
    "noauth": "none",
    "no_auth": "none",
}
_WORD = re.compile(r"[a-z][a-z_-]{0,19}", re.ASCII)  # no digits: nothing that could be a key
_UUID = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.ASCII)
_SHORT_ID = 12

Doubt = tuple[str, str]  # a code and a sentence


class ConnectionRow(NamedTuple):
    """One row as SQLite gives it: every field may hold anything."""

    id: object
    provider: object
    auth_type: object
    is_active: object
    test_status: object
    error_code: object
    last_error_type: object
    last_error_at: object
    rate_limited_until: object
    updated_at: object


def select_connections(db: sqlite3.Connection) -> list[ConnectionRow]:
    """All rows, allow-listed columns only, in an order that does not change between two runs."""
    return [ConnectionRow(*row) for row in db.execute(_SELECT)]


def read_connections(
    rows: list[ConnectionRow],
) -> tuple[dict[str, tuple[ImportedConnection, ConnectionRow]], list[ImportProblem]]:
    """The usable rows by connection id, each with its raw row, and a report of the odd ones."""
    found: dict[str, tuple[ImportedConnection, ConnectionRow]] = {}
    problems: list[ImportProblem] = []
    for place, row in enumerate(rows, start=1):
        key = str(row.id) if is_connection_id(row.id) else f"row {place}"
        try:
            connection, doubts = _to_connection(row=row, taken=found)
        except SkippedRow as skipped:
            doubts = [(skipped.code, skipped.detail)]
        else:
            found[key] = (connection, row)
        problems += [problem(table=TABLE, key=key, code=code, detail=detail) for code, detail in doubts]
    return found, problems


def _to_connection(*, row: ConnectionRow, taken: Collection[str]) -> tuple[ImportedConnection, list[Doubt]]:
    """The connection and the doubts about it; raises `SkippedRow`."""
    connection_id = _read_id(raw=row.id, taken=taken)
    try:
        provider = read_provider(row.provider)
    except OddValue as odd:
        raise SkippedRow(code="bad_provider", detail=f"{odd}; skipped.") from odd
    auth_type, doubts = _read_auth_type(row.auth_type)
    if row.is_active not in {0, 1}:
        doubts.append(("odd_is_active", "is_active is neither 0 nor 1; disabled, as OmniRoute does not use it either."))
    connection = ImportedConnection(
        connection_id=connection_id,
        provider=provider,
        auth_type=auth_type,
        label=_make_label(provider=provider, connection_id=connection_id),
        is_enabled=row.is_active == 1,
    )
    return connection, doubts


def _read_id(*, raw: object, taken: Collection[str]) -> str:
    if not is_connection_id(raw):
        raise SkippedRow(
            code="bad_id",
            detail="The id is not of letters, digits and ._:@+- (at most 128, a letter or digit first); skipped.",
        )
    if raw == NOAUTH:
        # SPEC B1 judges this id as keyless whatever stands behind it, so an account with a
        # credential must never come in under it.
        raise SkippedRow(code="reserved_id", detail="The id noauth is reserved for the keyless path; skipped.")
    if raw in taken:
        raise SkippedRow(code="duplicate_id", detail="An earlier row has the same id; skipped.")
    return raw


def _read_auth_type(raw: object) -> tuple[str | None, list[Doubt]]:
    """Our auth type, and a doubt where it is none of ours.

    NULL stays unknown although OmniRoute then assumes `oauth`: a connection without auth type
    matches only a provider-wide catalogue row (SPEC B3), while a guessed `oauth` could turn a paid
    account into one that seems included in a plan. An unknown word is kept, since the catalogue
    may have a row for it.
    """
    if raw is None or raw == "":
        return None, []
    word = canonical_name(raw) if isinstance(raw, str) else ""
    if word in _AUTH_TYPES:
        return _AUTH_TYPES[word], []
    if _WORD.fullmatch(word):
        return word, [("unknown_auth_type", "The auth type is none this product knows; kept in lower case.")]
    return None, [("odd_auth_type", "The auth type is no plain word; taken over as unknown.")]


def _make_label(*, provider: str, connection_id: str) -> str:
    """A label out of provider and id alone.

    OmniRoute's names are free text that falls back to the account's mail, and people paste pieces
    of keys into them to tell accounts apart, so they are not even selected. Both ends of the id
    are shown: ids made by hand often differ in the last digits only.
    """
    short = connection_id if len(connection_id) <= _SHORT_ID else f"{connection_id[:8]}…{connection_id[-4:]}"
    return f"{_UUID.sub('', provider)} {short}"
