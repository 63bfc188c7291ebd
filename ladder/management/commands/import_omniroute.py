"""`manage.py import_omniroute FILE`: take over the state of an OmniRoute."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from tqdm import tqdm

from ladder.adapters.omniroute import ImportProblem, read_omniroute
from ladder.errors import OmnirouteUnreadable
from ladder.services.omniroute_import import import_omniroute
from ladder.services.omniroute_report import Counts, ImportReport
from omniroute_admin.common.clock import now as clock_now
from omniroute_admin.common.history import Actor

ACTOR = Actor(name="import_omniroute")


class Command(BaseCommand):
    """Import connections, last quota readings and running cooldowns."""

    help = (
        "Import connections, their last quota readings and their running cooldowns from an OmniRoute storage.sqlite. "
        "The file is opened read-only and no secret is read. Run again with the same file it changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the file and the options."""
        parser.add_argument("file", type=Path, metavar="FILE", help="OmniRoute's storage.sqlite")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read, store, report.

        Raises:
            CommandError: the file cannot be used; nothing was written.
        """
        now = clock_now()
        try:
            with _progress_bar("Reading") as progress:
                contents = read_omniroute(path=options["file"], now=now, progress=progress)
        except OmnirouteUnreadable as refused:
            raise CommandError(f"{refused.sentence} Nothing was written.") from None
        with _progress_bar("Storing") as progress:
            report = import_omniroute(
                contents=contents, actor=ACTOR, now=now, dry_run=options["dry_run"], progress=progress
            )
        self.stdout.write("\n".join(describe(report)))


@contextmanager
def _progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yield what moves a bar on the terminal; elsewhere there is none."""
    with tqdm(desc=title, unit=" rows", file=sys.stderr, disable=not sys.stderr.isatty(), leave=False) as bar:

        def move(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield move


def describe(report: ImportReport) -> Iterator[str]:
    """Yield the report line by line: what was read, what became of it, every problem."""
    seen = report.seen
    yield (
        f"Read {seen.connections} connections, {seen.snapshots} quota snapshots of {seen.windows} windows"
        f" and {seen.cache_entries} cache entries."
    )
    if report.dry_run:
        yield "Dry run: nothing was written. A real run would do this:"
    for kind in ("connections", "windows", "readings", "cooldowns"):
        yield _describe_counts(kind, getattr(report, kind))
    yield f"Problems: {len(report.problems)}"
    yield from map(_describe_problem, report.problems)


def _describe_counts(kind: str, counts: Counts) -> str:
    return (
        f"  {kind + ':':<13}{counts.created} created, {counts.changed} changed,"
        f" {counts.unchanged} unchanged, {counts.skipped} skipped"
    )


def _describe_problem(found: ImportProblem) -> str:
    return f"  {found.table} {found.key}: {found.code}: {found.detail}"
