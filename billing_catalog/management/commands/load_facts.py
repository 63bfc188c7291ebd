"""`manage.py load_facts`: bring the shipped facts into the catalogue; again and again without harm."""

from collections import Counter
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from billing_catalog.adapters.facts_file import SHIPPED, read_facts
from billing_catalog.errors import CatalogFileError
from billing_catalog.services.facts import Outcome, load_facts
from omniroute_admin.common import clock

WORDS = {
    "added": "added",
    "updated": "updated to the shipped wording",
    "unchanged": "unchanged",
    "kept": "kept as an operator edited them",
    "left out": "left out, since an operator deleted them",
}


class Command(BaseCommand):
    """Load the facts and say what became of each kind."""

    help = "Load the shipped facts (billing, free providers, tier thresholds, price sources). Edits are kept."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--dry-run", action="store_true", help="say what would be done, and do nothing")
        parser.add_argument("--file", type=Path, default=SHIPPED, help="another file of the same form")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; exit code 1 and nothing written where the file is not what it should be."""
        try:
            facts = read_facts(path=options["file"])
            outcomes = load_facts(facts=facts, now=clock.now(), dry_run=options["dry_run"])
        except CatalogFileError as error:
            raise CommandError(error.detail) from error
        except ValidationError as error:
            raise CommandError(f"{options['file']} holds a fact that cannot be: {'; '.join(error.messages)}") from error
        self._say(outcomes=outcomes, dry_run=options["dry_run"], verbosity=options["verbosity"])

    def _say(self, *, outcomes: list[Outcome], dry_run: bool, verbosity: int) -> None:
        if dry_run:
            self.stdout.write("Dry run: nothing is written.")
        for kind in dict.fromkeys(outcome.kind for outcome in outcomes):
            counts = Counter(outcome.what for outcome in outcomes if outcome.kind == kind)
            parts = [f"{counts[what]} {words}" for what, words in WORDS.items() if counts[what]]
            self.stdout.write(f"{kind}: {', '.join(parts)}")
        for outcome in outcomes:
            if outcome.what in {"kept", "left out"} or (verbosity > 1 and outcome.what != "unchanged"):
                self.stdout.write(f"  {outcome.kind} {outcome.key}: {WORDS[outcome.what]}")
