"""Reads an archive. What is in it is believed only after its shape, its sizes and its digests are."""

import hashlib
import io
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import msgspec
from django.core.exceptions import ValidationError

from omniroute_admin.archive.errors import ArchiveError
from omniroute_admin.archive.manifest import FORMAT, FORMAT_VERSION, NAME, Manifest, Part, Stamp, file_of
from omniroute_admin.archive.tables import columns_of, kept_models

LONGEST_LINE = 64 * 1024 * 1024
LARGEST_MANIFEST = 4 * 1024 * 1024
MOST_EXPANSION = 400
"""So many times its packed size a part may be: rows come nowhere near, and a bomb needs more."""

_SMALL = 4 * 1024 * 1024
_BUFFER = 1024 * 1024
_BROKEN = (BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError)
"""What the library raises for a file that is cut short, damaged, encrypted or packed in another way."""


class Archive:
    """An archive whose manifest was read and agrees with the parts that there are."""

    def __init__(self, box: ZipFile, manifest: Manifest) -> None:
        self._box, self.manifest = box, manifest
        self._parts: Mapping[str, Part] = {part.table: part for part in manifest.parts}

    def rows(self, model: Any) -> Iterator[list[Any]]:
        """Yield the rows of a model's table as its columns' values.

        Raises:
            ArchiveError: they are not what the manifest says, at the latest after the last row.
        """
        part, readers = self._parts[model._meta.label], [field.to_python for field in columns_of(model)]
        for line in self._lines(part):
            yield _values(part, readers, line)

    def _lines(self, part: Part) -> Iterator[bytes]:
        digest, rows, size = hashlib.sha256(), 0, 0
        try:
            with self._box.open(part.file) as packed, io.BufferedReader(packed, _BUFFER) as stream:  # type: ignore[type-var]
                while line := stream.readline(LONGEST_LINE + 1):
                    rows, size = rows + 1, size + len(line)
                    if rows > part.rows or size > part.bytes or len(line) > LONGEST_LINE:
                        raise ArchiveError(_not_as_said(part))
                    digest.update(line)
                    yield line
        except _BROKEN as error:
            raise ArchiveError(f"{part.file} is damaged ({error}). Take another archive.") from None
        if (rows, size, digest.hexdigest()) != (part.rows, part.bytes, part.sha256):
            raise ArchiveError(_not_as_said(part))


@contextmanager
def open_archive(*, file: IO[bytes]) -> Iterator[Archive]:
    """Open an archive and look at its manifest; the rows are looked at when they are read.

    Raises:
        ArchiveError: it is none, cut short, or holds other parts or tables than it may.
    """
    try:
        box = ZipFile(file)
    except _BROKEN:
        raise ArchiveError("This is no backup, or it was cut short. Take another archive.") from None
    with box:
        manifest = _read_manifest(box)
        _check_parts(box, manifest)
        yield Archive(box, manifest)


def _read_manifest(box: ZipFile) -> Manifest:
    try:
        with box.open(NAME) as stream:
            text = stream.read(LARGEST_MANIFEST + 1)
        if len(text) > LARGEST_MANIFEST:
            raise ArchiveError("Its manifest is larger than any backup's. Take another archive.")
        _check_format(msgspec.json.decode(text, type=Stamp))
        return msgspec.json.decode(text, type=Manifest)
    except KeyError:
        raise ArchiveError("This is no backup: it holds no manifest.") from None
    except (*_BROKEN, msgspec.MsgspecError) as error:
        raise ArchiveError(f"Its manifest cannot be read ({error}). Take another archive.") from None


def _check_format(stamp: Stamp) -> None:
    """Refuse another format before the rest of its manifest is read: only the version that made it knows that."""
    if (stamp.format, stamp.format_version) != (FORMAT, FORMAT_VERSION):
        raise ArchiveError(
            f"It is of the format {stamp.format!r} {stamp.format_version}, this version reads {FORMAT!r} "
            f"{FORMAT_VERSION}. Restore it with version {stamp.product_version} of the product."
        )


def _check_parts(box: ZipFile, manifest: Manifest) -> None:
    """Refuse parts that are there twice, not told of, missing, or larger than they may be. No name is ever a path."""
    names = [entry.filename for entry in box.infolist()]
    told = [NAME, *(part.file for part in manifest.parts)]
    if sorted(names) != sorted(told) or len(set(told)) != len(told):
        odd = sorted(set(names) ^ set(told)) or ["one of them twice"]
        raise ArchiveError(f"Its parts are not those that its manifest names ({', '.join(odd[:3])}).")
    for part in manifest.parts:
        _check_size(part, box.getinfo(part.file))


def _check_size(part: Part, entry: ZipInfo) -> None:
    expands = entry.file_size > _SMALL and entry.file_size > MOST_EXPANSION * entry.compress_size
    if part.file != file_of(part.table) or entry.file_size != part.bytes or expands:
        raise ArchiveError(_not_as_said(part))
    if entry.compress_type != ZIP_DEFLATED or entry.flag_bits & 1:
        raise ArchiveError(f"{part.file} is packed in another way than a backup packs.")


def check_tables(manifest: Manifest) -> None:
    """Check that an archive holds the tables of this version, each with its columns.

    Raises:
        ArchiveError: naming what is unknown or missing.
    """
    wanted = {model._meta.label: tuple(field.attname for field in columns_of(model)) for model in kept_models()}
    told = {part.table: part.columns for part in manifest.parts}
    odd = sorted(name for name in wanted.keys() | told.keys() if wanted.get(name) != told.get(name))
    if odd:
        raise ArchiveError(
            f"Its tables are not those of this version: {', '.join(odd[:5])}. "
            f"Restore it with version {manifest.product_version} of the product, set up as it was."
        )


def _values(part: Part, readers: list[Any], line: bytes) -> list[Any]:
    try:
        row = msgspec.json.decode(line, type=list)
        return [read(value) for read, value in zip(readers, row, strict=True)]
    except (msgspec.MsgspecError, ValidationError, ValueError, TypeError, ArithmeticError):
        raise ArchiveError(f"{part.file} holds a row that is none of {part.table}.") from None


def _not_as_said(part: Part) -> str:
    return f"{part.file} is not what the manifest says of it: it was changed or damaged. Take another archive."
