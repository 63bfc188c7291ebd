"""The way back in for whoever has the server: unlock, remove a second factor, end sessions, link single sign-on."""

from argparse import RawDescriptionHelpFormatter
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from omniroute_admin.common import clock
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.oidc import link
from omniroute_admin.common.services.second_factors import remove_second_factor
from omniroute_admin.common.services.sessions import sign_out
from omniroute_admin.common.services.sign_in_counts import unlock, unlock_all

_ACTOR = Actor(name="command sign_in")


class Command(BaseCommand):
    """Mend how somebody signs in; every act goes to the history and the log."""

    help = (
        "Mend how somebody signs in.\n\n"
        "examples:\n"
        "  manage.py sign_in unlock                       forget every failed try, of addresses too\n"
        "  manage.py sign_in unlock mira                  of one account\n"
        "  manage.py sign_in remove-second-factor mira    app and recovery codes are lost\n"
        "  manage.py sign_in sign-out mira                end every session\n"
        "  manage.py sign_in link mira --subject 1234     let that person of the provider in as mira"
    )

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, which leaves the lines of the help as they are."""
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("act", choices=["unlock", "remove-second-factor", "sign-out", "link"])
        parser.add_argument("name", nargs="?", help="user name of the account")
        parser.add_argument("--subject", default="", help="the person's number at the provider (claim sub)")
        parser.add_argument("--reason", default="", help="why, for the history")

    def handle(self, *args: Any, **options: Any) -> None:
        """Do it, and say what was done.

        Raises:
            CommandError: there is no such account, or it cannot be.
        """
        if options["act"] == "unlock" and not options["name"]:
            self.stdout.write(f"Failed tries forgotten: {unlock_all()} counts.")
            return
        user = _account(options["name"])
        by = {"user": user, "actor": _ACTOR, "reason": options["reason"], "now": clock.now()}
        try:
            self.stdout.write(_done(options, by))
        except ProductError as error:
            raise CommandError(" ".join([error.detail, *(bad.detail for bad in error.errors)])) from None


def _done(options: dict[str, Any], by: dict[str, Any]) -> str:
    if options["act"] == "unlock":
        return "Failed tries forgotten." if unlock(**by) else "There was nothing to unlock."
    if options["act"] == "remove-second-factor":
        return "Second factor removed." if remove_second_factor(**by) else "There was no second factor."
    if options["act"] == "sign-out":
        return f"Sessions ended: {sign_out(**by)}."
    return f"Linked: {link(subject=options['subject'], **by)}."


def _account(name: str | None) -> Any:
    if not name:
        raise CommandError("Say whose: give the user name.")
    found = get_user_model()._default_manager.filter(username=name).first()
    if found is None:
        raise CommandError(f"There is no account {name!r}.")
    return found
