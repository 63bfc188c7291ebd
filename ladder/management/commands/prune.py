"""`manage.py prune`: remove what is older than its period; no total and no verdict changes."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, ProgrammingError
from tqdm import tqdm

from ladder.services.pruning import Run
from ladder.services.retention import Pruning, cutoffs_of, prune, read_age
from omniroute_admin.common.clock import now as clock_now
from omniroute_admin.common.core.axis import day_named, day_start
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.zone import display_zone

_NOT_TRUSTED, _FAULTY = 3, 4


class Command(BaseCommand):
    """Prune now what the worker prunes every night."""

    help = (
        "Remove what is older than its period (KEEP_READINGS_DAYS, KEEP_HISTORY_DAYS, KEEP_LEDGER_DAYS,\n"
        "KEEP_AUDIT_DAYS), as the worker does every night. Old events of the ledger become sums that stand in every\n"
        "total as before. It goes in short steps beside everything else, can be stopped at any time, and run again it\n"
        "does the rest.\n\n"
        "exit codes:\n"
        "  0  done, or nothing to do\n"
        "  1  the database cannot be used\n"
        "  2  the options are wrong\n"
        f"  {_NOT_TRUSTED}  nothing is pruned: how old things are cannot be told (is the clock right?)\n"
        f"  {_FAULTY}  done, but for events whose rows do not add up (manage.py check_ledger)"
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, which leaves the lines of the help as they are."""
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--dry-run", action="store_true", help="count what would go and write nothing")
        parser.add_argument(
            "--only", type=_parts, default=tuple(Part), metavar="PARTS",
            help=f"some of {','.join(Part)}, with commas between; all where it is left out",
        )  # fmt: skip
        parser.add_argument(
            "--before", type=_day, metavar="DATE",
            help="prune what is older than a day (as in 2026-08-01, in TIME_ZONE_DISPLAY) in place of the periods, "
            "though nothing that is younger than the shortest period",
        )  # fmt: skip

    def handle(self, *args: Any, **options: Any) -> None:
        """Prune and report.

        Raises:
            CommandError: the database cannot be used (1), age cannot be told (3), or rows do not add up (4).
        """
        try:
            pruned = self._prune(options)
        except (OperationalError, ProgrammingError) as error:
            detail = str(error).strip()
            raise CommandError(f"The database cannot be used: {detail}. Has manage.py migrate run?") from None
        self.stdout.write("\n".join(_describe(pruned, dry_run=options["dry_run"])))
        if pruned.kept_faulty:
            names = ", ".join(pruned.kept_faulty[:10])
            count = len(pruned.kept_faulty)
            raise CommandError(f"{count} events stay, as their rows do not add up: {names}.", returncode=_FAULTY)

    def _prune(self, options: dict[str, Any]) -> Pruning:
        now = clock_now()
        age = read_age(now=now)
        if age.at is None:
            raise CommandError(f"Nothing is pruned. {age.refusal}", returncode=_NOT_TRUSTED)
        cutoffs = cutoffs_of(age=age.at, periods=settings.KEEP, parts=options["only"], before=options["before"])
        with tqdm(desc="Pruning", unit=" rows", file=sys.stderr, disable=not sys.stderr.isatty(), leave=False) as bar:
            run = Run(now=now, progress=lambda count: _move(bar, count), dry_run=options["dry_run"])
            return prune(cutoffs=cutoffs, run=run)


def _move(bar: "tqdm[Any]", count: int) -> None:
    bar.update(count)


def _parts(text: str) -> tuple[Part, ...]:
    try:
        return tuple(Part(word.strip()) for word in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: expected some of {','.join(Part)}") from None


def _day(text: str) -> datetime:
    day = day_named(text)
    if day is None:
        raise ArgumentTypeError(f"{text!r} names no day, as 2026-08-01 does")
    return day_start(day=day, zone=display_zone()).astimezone(UTC)


def _describe(pruned: Pruning, *, dry_run: bool) -> Iterator[str]:
    if dry_run:
        yield "Dry run: nothing was removed. A real run would do this:"
    for part in Part:
        at = pruned.cutoffs.get(part)
        yield f"{part}: {'kept' if at is None else f'what is older than {iso_text(at)}'}"
    for one in pruned.removed:
        if one.rows:
            yield f"  {one.table}: {one.rows} rows"
    if not any(one.rows for one in pruned.removed):
        yield "Nothing to remove."
