"""`manage.py restore FILE`: bring an archive of `manage.py backup` back."""

import shutil
import sys
import tempfile
from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from ladder.selectors.ledger_faults import check_ledger
from omniroute_admin.archive.errors import ArchiveError, InUseError
from omniroute_admin.archive.manifest import Manifest
from omniroute_admin.archive.read import Archive, check_tables, open_archive
from omniroute_admin.archive.restore import restore_archive
from omniroute_admin.archive.tables import kept_models
from omniroute_admin.archive.target import Held, database_words, read_held, refuse_other_version
from omniroute_admin.common.selectors.revision import read_snapshot
from omniroute_admin.management.progress import progress_bar

IN_USE = 3
LEDGER_FAULTS = 4


class Command(BaseCommand):
    """Restore an archive into the database, whichever it is, in one transaction."""

    help = (
        "Bring back what manage.py backup wrote, into SQLite or PostgreSQL, whichever it came from. The whole file is\n"
        "looked at before anything is changed, and everything is written in one transaction: at any end that is not\n"
        "told as done, the database holds what it held. Processes that run notice by the revision, which moves past\n"
        "all there were; what they write meanwhile waits.\n\n"
        "Restore only what you or your backup wrote: an archive can make an administrator.\n\n"
        "exit codes:\n"
        "  0  restored (--check: it can be)\n"
        "  1  the archive or the database cannot be used; nothing was changed\n"
        "  2  the options are wrong\n"
        f"  {IN_USE}  the database is in use, and --replace --yes was not said; nothing was changed\n"
        f"  {LEDGER_FAULTS}  restored, but rows of the ledger contradict each other, as they did in the archive\n\n"
        "examples:\n"
        "  manage.py restore --check /backups/2026-11-30.zip\n"
        "  manage.py restore --replace --yes /backups/2026-11-30.zip"
    )
    # The checks ask for a database with every table; this command says so itself.
    requires_migrations_checks = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, which leaves the lines of the help as they are."""
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the file and the options."""
        parser.add_argument("file", metavar="FILE", help="the archive; - is the standard input")
        parser.add_argument(
            "--check", "--dry-run", action="store_true", help="look at all of it, say what would be done, write nothing"
        )
        parser.add_argument("--replace", action="store_true", help="what the database holds now is deleted")
        parser.add_argument("--yes", action="store_true", help="with --replace: you mean it")

    def handle(self, *args: Any, **options: Any) -> None:
        """Look at it, restore it, say so.

        Raises:
            CommandError: see the exit codes.
        """
        try:
            with _opened(options["file"]) as file, open_archive(file=file) as archive:
                self._restore(archive, options)
        except InUseError as refused:
            raise CommandError(str(refused), returncode=IN_USE) from None
        except ArchiveError as refused:
            raise CommandError(f"{refused} Nothing was changed.") from None
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read ({error.strerror}).") from None
        except Error as error:
            raise CommandError(f"The database cannot be used: {str(error).strip()}") from None

    def _restore(self, archive: Archive, options: dict[str, Any]) -> None:
        refuse_other_version(archive.manifest)
        check_tables(archive.manifest)
        look_through(archive)
        held = read_held()
        self.stdout.write("\n".join(_describe(archive.manifest, held)))
        if options["check"]:
            self.stdout.write("Every row agrees with its digest. Nothing was changed.")
            return
        replace = options["replace"] and options["yes"]
        if held.is_used and not replace:
            raise InUseError(
                "The database is in use: --replace --yes deletes what it holds and puts the archive in its place. "
                "Back it up before. Nothing was changed."
            )
        with progress_bar("Restoring") as progress:
            restore_archive(archive=archive, replace=replace, progress=progress)
        self._end(archive.manifest)

    def _end(self, manifest: Manifest) -> None:
        self.stdout.write(f"Restored {manifest.rows} rows.")
        with read_snapshot():
            checked = check_ledger()
        for fault in checked.faults:
            self.stderr.write(fault)
        if checked.faults:
            raise CommandError(
                f"It is restored, but {len(checked.faults)} rows of its ledger contradict others, as they did when it "
                "was backed up. An older archive may be without these faults.",
                returncode=LEDGER_FAULTS,
            )
        self.stdout.write(f"{checked.rows} rows of the ledger: all add up.")


def look_through(archive: Archive) -> None:
    """Read every row once, and believe none before.

    Raises:
        ArchiveError: one is not what the manifest says, or none of its table.
    """
    done, total = 0, archive.manifest.rows
    with progress_bar("Looking through") as progress:
        for model in kept_models():
            for _ in archive.rows(model):
                done += 1
                if done % 1_000 == 0:
                    progress(done, total)


def _describe(manifest: Manifest, held: Held) -> Iterator[str]:
    yield (
        f"Archive: made {manifest.made_at:%Y-%m-%d %H:%M:%S} UTC by version {manifest.product_version} on "
        f"{manifest.database}, revision {manifest.revision}, {manifest.rows} rows."
    )
    yield f"Database: {database_words()}; {'in use' if held.is_used else 'not used yet'}."
    for part in manifest.parts:
        here = held.rows.get(part.table, 0)
        if part.rows or here:
            yield f"  {part.table}: {part.rows} rows; the database has {here}"


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """Yield the archive as a file in which one can go back; the standard input is written into one first."""
    if name != "-":
        with Path(name).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile() as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        yield kept
