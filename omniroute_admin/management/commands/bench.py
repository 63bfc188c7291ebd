"""`manage.py bench`: measure a fleet of a given size over HTTP, each number beside its floor."""

from argparse import ArgumentParser
from contextlib import closing
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.measures.every import MEASURES
from omniroute_admin.bench.options import Options, check_options
from omniroute_admin.bench.plan import KINDS, MIX, RESTING, parse_mix
from omniroute_admin.bench.results import Result, table_of
from omniroute_admin.bench.run import json_lines, run

_INTERRUPTED = 130


class Command(BaseCommand):
    """Build a fleet, serve it, measure it, print a table and a line of JSON for each row."""

    help = (
        "Build a fleet of a given size in a database of its own, serve it as the product serves itself, ask it over "
        "HTTP from another process, and print what things cost beside their floors in the same run. It is no test: a "
        "missed target is told in the table."
    )
    # It works on a database of its own, never on the installation's.
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        usual = Options()
        parser.add_argument("--connections", type=int, default=usual.connections, help="(default %(default)s)")
        parser.add_argument("--models", type=int, default=usual.models, help="(default %(default)s)")
        parser.add_argument("--providers", type=int, default=usual.providers, help="(default %(default)s)")
        mix = ",".join(f"{name}={weight}" for name, weight in MIX.items())
        words = f"weights of {', '.join(KINDS)} among the providers; {RESTING}: percent of connections that rest"
        parser.add_argument("--rungs", default=mix, metavar="MIX", help=f"{words} (default {mix})")
        parser.add_argument("--workers", type=int, default=usual.workers, help="web processes (cores)")
        parser.add_argument("--rounds", type=int, default=usual.rounds, help="(default %(default)s)")
        parser.add_argument("--only", default="", metavar="NAME,NAME", help="these measures; --list names them")
        parser.add_argument("--abuse", action="store_true", help="also beside clients that misbehave")
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the lines of JSON there")
        parser.add_argument(
            "--database-url", help="an empty database, on which the run is and which keeps its rows (a SQLite file)"
        )
        parser.add_argument("--use-existing", action="store_true", help="measure, and write to, a database in use")
        parser.add_argument("--list", action="store_true", help="list the measures and end")
        parser.add_argument("--strict", action="store_true", help="end with 1 where a target is missed")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and tell; after Ctrl-C what was measured until then.

        Raises:
            CommandError: an option cannot be, the run cannot be made, a measure failed, or with --strict a target was
                missed.
        """
        if options["list"]:
            self.stdout.write("\n".join(f"{name:15} {measure.what}" for name, measure in MEASURES.items()))
            return
        try:
            chosen = _options(options)
            check_options(chosen, known=MEASURES)
        except BenchError as error:
            raise CommandError(str(error)) from None
        self._tell(chosen, *self._measure(chosen), is_strict=options["strict"])

    def _measure(self, options: Options) -> tuple[list[Result], bool]:
        """Return the rows, and whether the run was cut short."""
        results: list[Result] = []
        try:
            with closing(run(options)) as rows:
                for result in rows:
                    results.append(result)  # noqa: PERF402 - those before a Ctrl-C are kept
        except KeyboardInterrupt:
            return results, True
        except BenchError as error:
            raise CommandError(str(error)) from None
        return results, False

    def _tell(self, options: Options, results: list[Result], is_cut: bool, *, is_strict: bool) -> None:
        self.stdout.write(table_of(results))
        lines = json_lines(options, results)
        if options.json_file is None:
            self.stdout.write(f"\n{lines.decode()}")
        else:
            options.json_file.write_bytes(lines)
        if is_cut:
            raise CommandError("Cut short.", returncode=_INTERRUPTED)
        failed = [f"{result.name}: {result.failure}" for result in results if result.failure is not None]
        if failed:
            raise CommandError("\n".join(failed))
        missed = [result.name for result in results if result.is_met is False]
        if missed and is_strict:
            raise CommandError(f"{len(missed)} targets were missed: {', '.join(missed)}.")


def _options(given: dict[str, Any]) -> Options:
    return Options(
        **{name: given[name] for name in ("connections", "models", "providers", "rounds", "workers", "use_existing")},
        mix=parse_mix(given["rungs"]),
        only=tuple(name.strip() for name in given["only"].split(",") if name.strip()),
        with_abuse=given["abuse"],
        database_url=given["database_url"],
        json_file=given["json"],
    )
