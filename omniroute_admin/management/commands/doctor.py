"""`manage.py doctor`: what is wrong, and how to mend it."""

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterator
from typing import Any

import msgspec
from django.core.management.base import BaseCommand, CommandParser

from omniroute_admin.common.clock import now as clock_now
from omniroute_admin.doctor.examine import examine, worst
from omniroute_admin.doctor.report import Finding, Verdict

WARNINGS, ERRORS = 1, 2
_WORDS = {Verdict.OK: "ok", Verdict.NOT_APPLICABLE: "-", Verdict.WARNING: "WARNING", Verdict.ERROR: "ERROR"}


class Command(BaseCommand):
    """Check the installation and say what to do."""

    help = (
        "Look at settings, machine, database, broker, periodic work, facts, readings, keys, accounts and second\n"
        "factors, and say of each what is wrong and how to mend it. It reads only, and works with the database or the\n"
        "broker down.\n\n"
        "exit codes:\n"
        "  0  nothing is wrong (warnings count with --strict only)\n"
        f"  {WARNINGS}  --strict: there are warnings, no errors\n"
        f"  {ERRORS}  there are errors, or the options are wrong"
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
        if options["json"]:
            told = {"verdict": worst(findings), "checks": findings}
            self.stdout.write(msgspec.json.format(msgspec.json.encode(told), indent=1).decode())
        else:
            self.stdout.write("\n".join(_lines(findings)))
        code = _code(worst(findings), strict=options["strict"])
        if code:
            sys.exit(code)


def _lines(findings: list[Finding]) -> Iterator[str]:
    for finding in findings:
        yield f"{_WORDS[finding.verdict]:<8} {finding.check}: {finding.says}"
        if finding.mend:
            yield f"{'':<8} {finding.mend}"
    counts = {verdict: sum(finding.verdict is verdict for finding in findings) for verdict in Verdict}
    yield f"{counts[Verdict.ERROR]} errors, {counts[Verdict.WARNING]} warnings, {counts[Verdict.OK]} ok."


def _code(verdict: Verdict, *, strict: bool) -> int:
    if verdict is Verdict.ERROR:
        return ERRORS
    return WARNINGS if strict and verdict is Verdict.WARNING else 0
