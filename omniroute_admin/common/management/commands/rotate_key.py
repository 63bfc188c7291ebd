"""Make a key that takes the place of another, and print it, once."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from omniroute_admin.common import clock
from omniroute_admin.common.core.keys import PREFIX_LENGTH
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.services.key_rotation import rotate_key

_ACTOR = Actor(name="command rotate_key")


class Command(BaseCommand):
    """Rotate a key: print the new one, whose text is kept nowhere; the old one goes on for a while."""

    help = (
        "Make a key with the name, scopes and limit of another and print it on standard output, this once. "
        "The old one goes on beside it for the overlap and is refused afterwards."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("prefix", help=f"the first {PREFIX_LENGTH} characters of the key, as its page shows")
        parser.add_argument(
            "--overlap", type=int, default=24, metavar="HOURS", help="how long the old one goes on; 0 ends it at once"
        )
        parser.add_argument(
            "--anyway", action="store_true", help="rotate one that has ended or was rotated before all the same"
        )
        parser.add_argument("--reason", default="", help="why, for the history")

    def handle(self, *args: Any, **options: Any) -> None:
        """Rotate the key.

        Raises:
            CommandError: there is no such key, or the service refuses.
        """
        hours = options["overlap"]
        try:
            old, new, secret = rotate_key(
                key_id=_key_of(options["prefix"]).pk,
                overlap=timedelta(hours=max(-1, min(hours, 100_000))),
                anyway=options["anyway"],
                actor=_ACTOR,
                reason=options["reason"],
                now=clock.now(),
            )
        except ProductError as error:
            raise CommandError(" ".join([error.detail, *(f"{bad.sentence()}." for bad in error.errors)])) from None
        self.stderr.write(f"Key {new.name} takes the place of {old.prefix}…, which goes on until {_until(old)}.")
        self.stderr.write("The new one is shown this once:")
        self.stdout.write(secret)


def _key_of(prefix: str) -> ApiKey:
    if len(prefix) > PREFIX_LENGTH:
        # What stands on a command line is seen by others on the machine, and kept by the shell.
        raise CommandError(f"Give the first {PREFIX_LENGTH} characters alone: whoever saw this command has the key.")
    found = list(ApiKey.objects.filter(prefix=prefix).order_by("pk")[:2])
    if len(found) != 1:
        raise CommandError(f"{'Several keys begin' if found else 'No key begins'} with that prefix.")
    return found[0]


def _until(old: ApiKey) -> str:
    return "now" if old.replaced_until is None else f"{old.replaced_until:%Y-%m-%d %H:%M:%S} UTC"
