"""`manage.py backup FILE`: everything that an installation keeps, in one file."""

import sys
from argparse import RawDescriptionHelpFormatter
from pathlib import Path
from typing import IO, Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import Error

from omniroute_admin.archive.errors import ArchiveError
from omniroute_admin.archive.file import written_whole
from omniroute_admin.archive.manifest import Manifest
from omniroute_admin.archive.tables import LEFT_OUT
from omniroute_admin.archive.write import write_archive
from omniroute_admin.common.clock import now as clock_now
from omniroute_admin.management.progress import progress_bar


class Command(BaseCommand):
    """Write an archive of the database, whichever it is."""

    help = (
        "Write everything that is kept into one file, from which manage.py restore brings it back into SQLite or\n"
        "PostgreSQL. It is one consistent view: others go on reading and writing meanwhile. The file appears when it\n"
        "is whole, and only its owner may read it.\n\n"
        "KEEP IT AS CAREFULLY AS THE DATABASE: the hashes of passwords and keys are in it, and who can write one can\n"
        "make an administrator by it. The SECRET_KEY is not in it.\n\n"
        "left out:\n" + "".join(f"  {label}: {out.reason}\n" for label, out in LEFT_OUT.items()) + "\nexit codes:\n"
        "  0  written\n"
        "  1  the database or the file cannot be used; no file was made\n"
        "  2  the options are wrong\n\n"
        "examples:\n"
        "  manage.py backup /backups/$(date +%F).zip\n"
        "  manage.py backup - | age -r RECIPIENT > backup.zip.age"
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, which leaves the lines of the help as they are."""
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the file and the option."""
        parser.add_argument("file", metavar="FILE", help="where to; - is the standard output")
        parser.add_argument("--overwrite", action="store_true", help="take the place of a file of that name")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write it and say what is in it.

        Raises:
            CommandError: nothing was made.
        """
        try:
            manifest = self._write(options["file"], overwrite=options["overwrite"])
        except ArchiveError as refused:
            raise CommandError(str(refused)) from None
        except FileExistsError:
            raise CommandError(f"{options['file']} is there already: name another, or say --overwrite.") from None
        except BrokenPipeError:
            raise CommandError("Whoever read the backup ended before it was whole.") from None
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be written ({error.strerror}).") from None
        except Error as error:
            raise CommandError(f"The database cannot be used: {str(error).strip()}") from None
        # Beside the archive itself, which may be going to the standard output.
        self.stderr.write(f"Backed up {manifest.rows} rows of {len(manifest.parts)} tables.")

    def _write(self, name: str, *, overwrite: bool) -> Manifest:
        if name != "-":
            with written_whole(file=Path(name), overwrite=overwrite) as stream:
                return _archive(stream)
        if sys.stdout.isatty():
            raise CommandError("A backup is no text: send the standard output into a file or another program.")
        manifest = _archive(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return manifest


def _archive(stream: IO[bytes]) -> Manifest:
    with progress_bar("Backing up") as progress:
        return write_archive(to=stream, made_at=clock_now(), progress=progress)
