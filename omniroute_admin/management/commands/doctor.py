"""`manage.py doctor`: what is wrong, and how to mend it."""

import sys
from argparse import RawDescriptionHelpFormatter
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from omniroute_admin.common.clock import now as clock_now
from omniroute_admin.doctor.examine import examine
from omniroute_admin.doctor.telling import ERRORS, WARNINGS, exit_code, told


class Command(BaseCommand):
    """Check the installation and say what to do."""

    help = (
        "Look at settings, machine, database, broker, periodic work, facts, readings, keys, accounts and second\n"
        "factors, and say of each what is wrong and how to mend it. It reads only, and works with the database or the\n"
        "broker down.\n\n"
        "exit codes:\n"
        "  0  nothing is wrong (warnings count with --strict only)\n"
        f"  {WARNINGS}  --strict: there are warnings, no errors\n"
        f"  {ERRORS}  there are errors, the settings cannot be used (check `settings`), or the options are wrong"
    )
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return the parser, which leaves the lines of the help as they are."""
        return super().create_parser(prog_name, subcommand, formatter_class=RawDescriptionHelpFormatter, **kwargs)

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        parser.add_argument("--json", action="store_true", help="one JSON document for programs")
        parser.add_argument("--strict", action="store_true", help=f"exit with {WARNINGS} where there are warnings")

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask, tell, and exit by the worst verdict."""
        findings = list(examine(now=clock_now()))
        self.stdout.write(told(findings, as_json=options["json"]))
        if code := exit_code(findings, strict=options["strict"]):
            sys.exit(code)
