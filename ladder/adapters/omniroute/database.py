"""Opening an OmniRoute `storage.sqlite` without leaving a trace in it or beside it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ladder.adapters.omniroute.columns import allow_only_these, check_schema
from ladder.errors import OmnirouteUnreadable

_MAGIC = b"SQLite format 3\x00"
_WAL_VERSION = 2  # at offset 19 of the header: the version a reader must understand
_HEADER_BYTES = 100
_PRIMARY_CODE = 0xFF  # SQLite's extended result codes keep the primary one in the low byte

_LOCKED = ("locked", "{path} is locked by another program: try again, or stop that program first.")
_SENTENCES = {
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_NOTADB: ("not_a_database", "{path} is not an SQLite database."),
    sqlite3.SQLITE_CORRUPT: ("damaged", "{path} is damaged: SQLite cannot read it to the end."),
    sqlite3.SQLITE_READONLY: (
        "needs_recovery",
        "{path} has an unfinished write beside it: start and stop OmniRoute once, then try again.",
    ),
}


@contextmanager
def open_readonly(*, path: Path, lock_timeout_seconds: float) -> Iterator[sqlite3.Connection]:
    """Yield a connection inside one read transaction, limited to the allow-listed columns.

    Raises `OmnirouteUnreadable` for anything that keeps the file from being read, be it met on
    opening or while the caller reads.
    """
    header = _read_header(path)
    is_settled = _is_settled_wal(path=path, header=header)
    before = path.stat()
    try:
        db = _connect(path=path, is_settled=is_settled, timeout=lock_timeout_seconds)
        try:
            yield db
        finally:
            db.close()
    except sqlite3.Error as error:
        raise _explain(path=path, error=error) from error
    after = path.stat()
    if is_settled and ((before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size) or _has_log(path)):
        raise OmnirouteUnreadable(
            code="changed_while_read",
            sentence=f"{path} was opened by OmniRoute while it was being read: try again.",
        )


def _read_header(path: Path) -> bytes:
    """The first bytes of the file, once it is sure that this is a non-empty SQLite file."""
    try:
        header = _first_bytes(path)
    except OSError as error:
        raise OmnirouteUnreadable(code="no_access", sentence=f"{path} cannot be read: {error.strerror}.") from error
    if not header:
        raise OmnirouteUnreadable(code="empty_file", sentence=f"{path} is empty.")
    if len(header) < _HEADER_BYTES or not header.startswith(_MAGIC):
        raise OmnirouteUnreadable(code="not_a_database", sentence=f"{path} is not an SQLite database.")
    return header


def _first_bytes(path: Path) -> bytes:
    if not path.exists():
        raise OmnirouteUnreadable(code="missing_file", sentence=f"{path} does not exist.")
    if not path.is_file():
        raise OmnirouteUnreadable(
            code="not_a_file", sentence=f"{path} is not a file: name the storage.sqlite inside OmniRoute's folder."
        )
    with path.open("rb") as file:
        return file.read(_HEADER_BYTES)


def _is_settled_wal(*, path: Path, header: bytes) -> bool:
    """Whether this is a write-ahead-log database that nobody has open.

    Then the file alone is complete. It is opened as immutable, since SQLite would otherwise
    create a log and its index beside it, which fails in a read-only folder and is a trace
    elsewhere. With a log beside it the index (-shm) must be there too, for the same reason.
    """
    if header[19] != _WAL_VERSION:
        return False
    if not _has_log(path):
        return True
    if not _beside(path, "-shm").exists():
        raise OmnirouteUnreadable(
            code="log_without_index",
            sentence=f"{path} has a write-ahead log (-wal) but no -shm file beside it: copy all "
            "three files together, or stop OmniRoute so that it empties the log.",
        )
    return False


def _has_log(path: Path) -> bool:
    """Whether a write-ahead log with content, or a live database's index, lies beside the file."""
    log = _beside(path, "-wal")
    return log.exists() and (log.stat().st_size > 0 or _beside(path, "-shm").exists())


def _beside(path: Path, suffix: str) -> Path:
    """The side file of a database; SQLite follows a link to the real file first."""
    real = path.resolve()
    return real.with_name(real.name + suffix)


def _connect(*, path: Path, is_settled: bool, timeout: float) -> sqlite3.Connection:
    """Open, start the one read transaction, check the schema, then shut all other columns off."""
    uri = path.resolve().as_uri() + "?mode=ro" + ("&immutable=1" if is_settled else "")
    db = sqlite3.connect(uri, uri=True, timeout=timeout, isolation_level=None)
    try:
        # A text that is not UTF-8 must not end the import, and SQLite's error would quote it.
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        db.execute("PRAGMA query_only = ON")
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("BEGIN")
        check_schema(db)
        allow_only_these(db)
    except BaseException:
        db.close()
        raise
    return db


def _explain(*, path: Path, error: sqlite3.Error) -> OmnirouteUnreadable:
    """Put SQLite's result code into words; its own message is left out, it may quote data."""
    number = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & _PRIMARY_CODE
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    code, sentence = _SENTENCES.get(number, ("unreadable", "{path} cannot be read: SQLite answers {name}."))
    return OmnirouteUnreadable(code=code, sentence=sentence.format(path=path, name=name))
