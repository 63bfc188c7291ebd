"""`manage.py soak`: mixed load for long, at twice the expected rate, and what it does to the processes."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandError

from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.options import Options, check_options
from omniroute_admin.bench.run import environment_line
from omniroute_admin.bench.soak.kinds import EXPECTED, PAGES
from omniroute_admin.bench.soak.run import Soaked, soak
from omniroute_admin.bench.soak.telling import FLAT, faults_of, lines_of, table_of

_INTERRUPTED = 130
_LONGEST_MINUTES, _MOST_RATE = 10_080.0, 10_000.0
TWICE = 2 * EXPECTED


class Command(BaseCommand):
    """Serve a fleet beside worker and scheduler, call it in every way for long, and say whether all stayed well."""

    help = (
        f"Serve a fleet in a database of its own, beside a worker and a scheduler, and call it in every way a router "
        f"and a person does, at a steady rate: a slow answer does not slow the calls down. Expected of 2,000 "
        f"connections are {EXPECTED} readings a second and as many pool calls, with 5 usage reports, 2.5 holds and "
        f"{PAGES} open ladder pages, and pages, what-ifs and saved settings now and then; the usual rate is twice "
        f"that. Ends with 1 where a call was not answered as it must be, or not made since the server was too slow, "
        f"the ledger does not add up, or memory is not flat: {FLAT}."
    )
    # It works on a database of its own, never on the installation's.
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        usual = Options()
        parser.add_argument("--minutes", type=float, default=30.0, help="how long (default %(default)s)")
        words = "readings a second, and as many pool calls; all else in proportion"
        parser.add_argument("--rate", type=float, default=float(TWICE), help=f"{words} (default %(default)s)")
        for name in ("connections", "models", "providers"):
            parser.add_argument(f"--{name}", type=int, default=getattr(usual, name), help="(default %(default)s)")
        parser.add_argument("--workers", type=int, default=usual.workers, help="web processes (cores)")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the lines of JSON there")
        parser.add_argument(
            "--database-url", help="an empty database, on which the run is and which keeps its rows (a SQLite file)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Soak and tell; after Ctrl-C what was seen until then.

        Raises:
            CommandError: an option cannot be, the run cannot be made, or something was wrong in it.
        """
        if sys.platform != "linux":
            raise CommandError("The memory of processes is read as Linux shows it: run this on Linux.")
        try:
            chosen = _options(options)
            soaked = soak(chosen, seconds=options["minutes"] * 60, rate=options["rate"])
        except BenchError as error:
            raise CommandError(str(error)) from None
        self._tell(chosen, soaked)

    def _tell(self, options: Options, soaked: Soaked) -> None:
        self.stdout.write(table_of(soaked))
        lines = b"".join(msgspec.json.encode(line) + b"\n" for line in [environment_line(options), *lines_of(soaked)])
        if options.json_file is None:
            self.stdout.write(f"\n{lines.decode()}")
        else:
            options.json_file.write_bytes(lines)
        if soaked.was_cut:
            raise CommandError("Cut short.", returncode=_INTERRUPTED)
        if found := faults_of(soaked):
            raise CommandError("\n".join(found))


def _options(given: dict[str, Any]) -> Options:
    names = ("connections", "models", "providers", "workers", "database_url")
    options = Options(**{name: given[name] for name in names}, json_file=given["json"])
    check_options(options, known=())
    ranges = {"minutes": _LONGEST_MINUTES, "rate": _MOST_RATE}
    bad = [
        f"--{name} {given[name]:g}: give a number above 0, up to {most:g}"
        for name, most in ranges.items()
        if not 0 < given[name] <= most
    ]
    if bad:
        raise BenchError("; ".join(bad) + ".")
    return options
