"""Brings an archive back: one transaction, so that the database holds the old state or the whole new one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.db import DatabaseError, connection, transaction

from omniroute_admin.archive.errors import ArchiveError, InUseError
from omniroute_admin.archive.read import Archive
from omniroute_admin.archive.tables import columns_of, emptied_models, is_matched, kept_models
from omniroute_admin.archive.target import read_held
from omniroute_admin.archive.write import Progress
from omniroute_admin.common.selectors.revision import current_revision

REVISION_STEP = 1_000_000_000
"""How far a restore moves the revision past the database's and the archive's: no process has seen a number as high,
so that each prepares anew and believes nothing it remembers, even where the database itself was made anew."""

_BATCH = 1_000
_Matches = dict[Any, Mapping[int, int]]
_PATIENCE = "SET LOCAL lock_timeout = '60s'"
_MOVE = "UPDATE common_revision SET value = %s, shown = shown + 1 WHERE id = 1"


def restore_archive(*, archive: Archive, replace: bool, progress: Progress) -> None:
    """Write all rows of an archive, in the place of those that are there where `replace` is set.

    Raises:
        InUseError: the database is in use and `replace` is not set.
        ArchiveError: a row is refused; nothing was changed.
    """
    models = kept_models()
    try:
        with transaction.atomic():
            _keep_writers_out([*models, *emptied_models()])
            if not replace and read_held().is_used:
                raise InUseError("The database is in use.")
            seen = max(current_revision(), archive.manifest.revision)
            _empty([model for model in [*models, *emptied_models()] if not is_matched(model)])
            _load(archive, models, progress)
            _move_revision(seen)
            _raise_sequences(models)
            connection.check_constraints()
    except (DatabaseError, ValueError, TypeError, OverflowError) as error:
        raise ArchiveError(f"The database refuses a row: {_first_line(error)}") from None
    ContentType.objects.clear_cache()
    if connection.vendor == "postgresql":
        _analyze(models)


def _keep_writers_out(models: Iterable[Any]) -> None:
    """Let writers wait, and readers go on with what was; on SQLite the transaction itself does."""
    if connection.vendor != "postgresql":
        return
    tables = ", ".join(sorted(_table(model) for model in models))
    with connection.cursor() as cursor:
        cursor.execute(_PATIENCE)
        cursor.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE")


def _empty(models: Iterable[Any]) -> None:
    # No TRUNCATE: a reader whose view is older would find the table empty. Foreign keys are checked at the end.
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"DELETE FROM {_table(model)}")  # noqa: S608 - a name of this product's


def _load(archive: Archive, models: Iterable[Any], progress: Progress) -> None:
    matches: _Matches = {}
    done, total = 0, archive.manifest.rows
    for model in models:
        rows = archive.rows(model)
        if is_matched(model):
            matches[model] = dict(_match(model, rows, matches))
            done += len(matches[model])
            continue
        for batch in _batches(_follow(model, rows, matches)):
            _insert(model, batch)
            done += len(batch)
            progress(done, total)


def _match(model: Any, rows: Iterable[list[Any]], matches: _Matches) -> Iterator[tuple[int, int]]:
    """Yield the id of the archive and the one here, of rows that are found by name or made."""
    for row in rows:
        if model is ContentType:
            kept, app_label, name = row
            found, _ = ContentType.objects.get_or_create(app_label=app_label, model=name)
            yield kept, found.pk
        else:
            kept, name, content_type, codename = row
            place = _here(matches, ContentType, content_type)
            make = Permission.objects.get_or_create
            yield kept, make(content_type_id=place, codename=codename, defaults={"name": name})[0].pk


def _follow(model: Any, rows: Iterable[list[Any]], matches: _Matches) -> Iterator[list[Any]]:
    """Yield the rows with what refers to a matched row referring to the one here."""
    fields = columns_of(model)
    following = [(place, field.related_model) for place, field in enumerate(fields) if field.related_model in matches]
    for row in rows:
        for place, related in following:
            if row[place] is not None:
                row[place] = _here(matches, related, row[place])
        yield row


def _here(matches: _Matches, model: Any, kept: int) -> int:
    try:
        return matches[model][kept]
    except KeyError:
        raise ArchiveError(f"A row names {model._meta.label} {kept}, which the archive does not hold.") from None


def _batches(rows: Iterable[list[Any]]) -> Iterator[list[list[Any]]]:
    batch: list[list[Any]] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _insert(model: Any, rows: list[list[Any]]) -> None:
    """Insert rows as they are: no default, no clock and no signal has a part in it."""
    forms = [field.get_db_prep_save for field in columns_of(model)]
    prepared = ([form(value, connection) for form, value in zip(forms, row, strict=True)] for row in rows)
    names = ", ".join(connection.ops.quote_name(field.column) for field in columns_of(model))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            with connection.wrap_database_errors, cursor.copy(f"COPY {_table(model)} ({names}) FROM STDIN") as copy:
                for row in prepared:
                    copy.write_row(row)
            return
        marks = ", ".join(["%s"] * len(forms))
        cursor.executemany(f"INSERT INTO {_table(model)} ({names}) VALUES ({marks})", list(prepared))  # noqa: S608


def _move_revision(seen: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_MOVE, [seen + REVISION_STEP])
        if cursor.rowcount != 1:
            raise ArchiveError("The archive holds no revision.")


def _raise_sequences(models: Iterable[Any]) -> None:
    """Let new rows get ids past all that were ever given. They only rise, as a sequence is outside the transaction."""
    if connection.vendor != "postgresql":
        return  # SQLite takes note of the ids that are inserted
    with connection.cursor() as cursor:
        for model in models:
            column = connection.ops.quote_name(model._meta.pk.column)
            cursor.execute("SELECT pg_get_serial_sequence(%s, %s)", [_table(model), model._meta.pk.column])
            (sequence,) = cursor.fetchone()
            if sequence is not None:
                highest = f"(SELECT COALESCE(MAX({column}), 1) FROM {_table(model)})"  # noqa: S608
                cursor.execute(f"SELECT setval(%s, GREATEST(nextval(%s), {highest}))", [sequence, sequence])


def _analyze(models: Iterable[Any]) -> None:
    with connection.cursor() as cursor:
        for model in models:
            cursor.execute(f"ANALYZE {_table(model)}")


def _table(model: Any) -> str:
    return str(connection.ops.quote_name(model._meta.db_table))


def _first_line(error: Exception) -> str:
    # The rest of PostgreSQL's message may repeat the row.
    return str(error).strip().partition("\n")[0] or type(error).__name__
