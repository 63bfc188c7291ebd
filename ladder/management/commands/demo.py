"""`manage.py demo`: a small simulated fleet to look at, and its removal."""

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, ProgrammingError

from ladder.selectors.demo import DemoState, read_demo_state
from ladder.services.demo import DemoChange, start_demo, stop_demo
from omniroute_admin.common.clock import now as clock_now

_NO_FLEET = 3
_MOVES_WITHIN = timedelta(seconds=60)
_HOW_TO_STOP = "Remove it with: python manage.py demo --stop"


class Command(BaseCommand):
    """Start, stop or show the demo fleet."""

    help = (
        "A small simulated fleet, to see the ladder move: ten connections at real providers, each labelled demo:,\n"
        "whose quota is used up, held and reset within minutes. The worker and the scheduler move it. Connections of\n"
        "your own are never touched, nor are settings, budgets, facts and prices.\n\n"
        "Starting twice changes nothing, nor does stopping twice. Stopping deletes the connections as any other is\n"
        "deleted (out of routing, kept in the history), and their simulated windows, readings, cooldowns for good.\n\n"
        "exit codes:\n"
        "  0  done, or nothing to do\n"
        "  1  the database cannot be used\n"
        "  2  the options are wrong\n"
        f"  {_NO_FLEET}  --status: there is no demo fleet"
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, which leaves the lines of the help as they are."""
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        acts = parser.add_mutually_exclusive_group(required=True)
        acts.add_argument("--start", action="store_true", help="add what is missing of the fleet")
        acts.add_argument("--stop", action="store_true", help="remove the fleet and nothing else")
        acts.add_argument("--status", action="store_true", help="say what there is of it and whether it moves")
        parser.add_argument("--dry-run", action="store_true", help="say what would be done and write nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it and say so.

        Raises:
            CommandError: the database cannot be used (1), or `--status` finds no fleet (3).
        """
        now = clock_now()
        try:
            lines = list(_act(options, now))
        except (OperationalError, ProgrammingError) as error:
            detail = str(error).strip()
            raise CommandError(f"The database cannot be used: {detail}. Has manage.py migrate run?") from None
        self.stdout.write("\n".join(lines))


def _act(options: dict[str, Any], now: datetime) -> Iterator[str]:
    dry_run = options["dry_run"]
    if options["start"]:
        return _describe_start(start_demo(now=now, dry_run=dry_run), dry_run=dry_run)
    if options["stop"]:
        return _describe_stop(stop_demo(now=now, dry_run=dry_run), dry_run=dry_run)
    return _describe_state(read_demo_state(), now)


def _describe_start(change: DemoChange, *, dry_run: bool) -> Iterator[str]:
    if change.made:
        yield f"Demo fleet: {'would add' if dry_run else 'added'} {', '.join(change.made)}."
    else:
        yield "Demo fleet: nothing to add."
    if change.kept:
        yield f"There already, left as they are: {', '.join(change.kept)}."
    if change.foreign:
        yield f"Left out, since you have a connection of that id: {', '.join(change.foreign)}."
    if (change.made or change.kept) and not dry_run:
        yield f"All of it is simulated; the worker and the scheduler move it. {_HOW_TO_STOP}"


def _describe_stop(removed: tuple[str, ...], *, dry_run: bool) -> Iterator[str]:
    if not removed:
        yield "There is no demo fleet: nothing to remove."
    else:
        yield f"Demo fleet: {'would remove' if dry_run else 'removed'} {', '.join(removed)}."


def _describe_state(state: DemoState, now: datetime) -> Iterator[str]:
    if not state.connections:
        raise CommandError("There is no demo fleet. Add it with: python manage.py demo --start", returncode=_NO_FLEET)
    yield f"Demo fleet: {', '.join(state.connections)}."
    if state.read_at is None or now - state.read_at > _MOVES_WITHIN:
        yield "It does not move: no reading of the last minute. Worker and scheduler must run (manage.py quickstart)."
    else:
        yield f"It moves: read {int((now - state.read_at).total_seconds())} s ago."
    yield _HOW_TO_STOP
