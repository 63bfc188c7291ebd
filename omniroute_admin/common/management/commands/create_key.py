"""Make an API key and print it, once."""

import re
from argparse import RawDescriptionHelpFormatter
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.dateparse import parse_date, parse_datetime

from omniroute_admin.common import clock
from omniroute_admin.common.errors import BadRequest
from omniroute_admin.common.history import Actor
from omniroute_admin.common.scopes import SCOPES
from omniroute_admin.common.services.keys import create_key

_AGE = re.compile(r"(\d{1,5})([hdw])\Z")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_ACTOR = Actor(name="command create_key")


class Command(BaseCommand):
    """Make an API key and print its text, which is kept nowhere."""

    help = (
        "Make an API key and print it on standard output. The key is shown this once; only its hash is kept.\n\n"
        "scopes:\n  " + "\n  ".join(SCOPES) + "\n\n"
        "example:\n  manage.py create_key router --scope pools:read --scope telemetry:write --expires 90d"
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, which leaves the lines of the help as they are."""
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("name", help="what or who holds the key, as in: router")
        parser.add_argument(
            "--scope", action="append", default=[], metavar="SCOPE", help="what the key may do; give it once per scope"
        )
        parser.add_argument(
            "--expires", metavar="WHEN", help="90d, 12h, 4w, or an ISO date or time (UTC); left out: never"
        )
        parser.add_argument(
            "--calls-per-minute", type=int, metavar="N", help="calls let through in a minute; left out: no limit"
        )
        parser.add_argument("--reason", default="", help="why, for the history")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the key.

        Raises:
            CommandError: the name, a scope or the expiry cannot be.
        """
        now = clock.now()
        try:
            key, secret = create_key(
                name=options["name"],
                scopes=options["scope"],
                expires_at=_expiry(options["expires"], now),
                calls_per_minute=options["calls_per_minute"],
                actor=_ACTOR,
                reason=options["reason"],
                now=now,
            )
        except BadRequest as error:
            raise CommandError("\n".join(f"{bad.pointer[1:]}: {bad.detail}" for bad in error.errors)) from None
        self.stderr.write(f"Key {key.name} with {', '.join(key.scopes)}; it is shown this once:")
        self.stdout.write(secret)


def _expiry(text: str | None, now: datetime) -> datetime | None:
    """Return the instant that an expiry means.

    Raises:
        CommandError: it means none.
    """
    if text is None:
        return None
    age = _AGE.match(text)
    try:
        if age is not None:
            return now + timedelta(**{_UNITS[age[2]]: int(age[1])})
        day = parse_date(text)
        instant = datetime.combine(day, time()) if day is not None else parse_datetime(text)
    except (ValueError, OverflowError):
        instant = None
    if instant is None:
        raise CommandError(f"--expires {text!r} is neither an age (90d, 12h, 4w) nor an ISO date or time.")
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
