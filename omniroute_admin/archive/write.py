"""Writes an archive: one consistent view of the database, streamed row by row."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from typing import IO, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import msgspec
from django.db import connection

from omniroute_admin import VERSION
from omniroute_admin.archive.errors import ArchiveError
from omniroute_admin.archive.manifest import FORMAT, FORMAT_VERSION, NAME, Manifest, Part, file_of
from omniroute_admin.archive.tables import columns_of, kept_models
from omniroute_admin.common.selectors.revision import read_snapshot
from omniroute_admin.selectors.health import shipped_migrations, unapplied_migrations

Progress = Callable[[int, int], None]
"""Told how many rows are done, and of how many."""

_AT_ONCE = 2_000
_OWNER_ONLY = 0o600 << 16
_encode = msgspec.json.Encoder().encode


def write_archive(*, to: IO[bytes], made_at: datetime, progress: Progress) -> Manifest:
    """Write an archive of the whole database as it stands at one instant, and return what is in it.

    Others go on writing; nothing of what they commit from now on is in it.

    Raises:
        ArchiveError: the database has not the tables of this version.
    """
    with read_snapshot() as revision, ZipFile(to, "w", ZIP_DEFLATED) as box:
        _refuse_other_version()
        models = kept_models()
        meter = _Meter(progress, sum(model._base_manager.count() for model in models))
        parts = tuple(_write_table(box, model, made_at, meter) for model in models)
        manifest = Manifest(
            format=FORMAT,
            format_version=FORMAT_VERSION,
            product_version=VERSION,
            made_at=made_at,
            database=connection.vendor,
            revision=revision,
            migrations=tuple(shipped_migrations()),
            parts=parts,
        )
        with box.open(_entry(NAME, made_at), "w") as stream:
            stream.write(msgspec.json.format(_encode(manifest), indent=1))
    return manifest


class _Meter:
    """Counts the rows that are done."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, rows: int) -> None:
        self._done += rows
        self._progress(self._done, self._total)


def _refuse_other_version() -> None:
    missing = unapplied_migrations()
    if missing:
        raise ArchiveError(
            f"The database lacks migrations of this version ({', '.join(missing[:3])}). "
            "Back it up with the version that it is of, or run manage.py migrate first."
        )


def _write_table(box: ZipFile, model: Any, made_at: datetime, meter: _Meter) -> Part:
    columns = tuple(field.attname for field in columns_of(model))
    digest, rows, size = hashlib.sha256(), 0, 0
    found = model._base_manager.order_by("pk").values_list(*columns)
    with box.open(_entry(file_of(model._meta.label), made_at), "w", force_zip64=True) as stream:
        for row in found.iterator(chunk_size=_AT_ONCE):
            line = _encode(row) + b"\n"
            stream.write(line)
            digest.update(line)
            rows, size = rows + 1, size + len(line)
            if rows % _AT_ONCE == 0:
                meter.add(_AT_ONCE)
    meter.add(rows % _AT_ONCE)
    return Part(model._meta.label, file_of(model._meta.label), columns, rows, size, digest.hexdigest())


def _entry(name: str, made_at: datetime) -> ZipInfo:
    entry = ZipInfo(name, made_at.timetuple()[:6])
    entry.compress_type, entry.external_attr = ZIP_DEFLATED, _OWNER_ONLY
    return entry
