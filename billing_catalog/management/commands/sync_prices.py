"""`manage.py sync_prices`: bring the prices and capabilities of real models into the catalogue."""

import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from tqdm import tqdm

from billing_catalog.errors import CatalogFileError
from billing_catalog.selectors.aliases import resolve_provider
from billing_catalog.services.price_lists import read_all
from billing_catalog.services.price_sync import PriceChange, SyncReport, sync_prices, wanted_prices
from omniroute_admin.common import clock
from omniroute_admin.common.errors import Conflict, NotFound
from omniroute_admin.common.history import Actor

NAMED_AT_MOST = 20


class Command(BaseCommand):
    """Read the lists, write what changed, and say what could not be priced."""

    help = (
        "Copy model prices from genai-prices and the LiteLLM price map into the catalogue. Operators' prices are kept."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--dry-run", action="store_true", help="print the difference, and write nothing")
        parser.add_argument(
            "--provider", nargs="+", action="extend", default=[], metavar="NAME", help="these providers only"
        )
        parser.add_argument(
            "--litellm", type=Path, metavar="FILE", help="a LiteLLM price map other than the shipped one"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Run; exit code 1 and nothing written where a list cannot be read or serves no provider that was named."""
        now = clock.now()
        only = list(dict.fromkeys(resolve_provider(raw=name) for name in options["provider"]))
        try:
            wanted = wanted_prices(read=read_all(litellm_file=options["litellm"], now=now), only=only)
            # disable=None: a bar on a terminal, silence in a log.
            with tqdm(desc="prices", unit=" rows", file=sys.stderr, disable=None, leave=False) as bar:
                report = sync_prices(
                    wanted=wanted,
                    actor=Actor(name="sync_prices"),
                    now=now,
                    dry_run=options["dry_run"],
                    written=bar.update,
                )
        except (CatalogFileError, NotFound, Conflict) as error:
            raise CommandError(error.detail) from error
        self._say(report=report, dry_run=options["dry_run"], verbosity=options["verbosity"])

    def _say(self, *, report: SyncReport, dry_run: bool, verbosity: int) -> None:
        if dry_run or verbosity > 1:
            for change in report.changes:
                self.stdout.write(_line(change))
        if dry_run:
            self.stdout.write("Dry run: nothing is written.")
        counts = [f"{report.count(what)} {what}" for what in ("added", "changed", "ended")]
        self.stdout.write(f"prices: {', '.join(counts)}, {report.unchanged} unchanged")
        if report.kept_operator:
            self.stdout.write(f"kept, since an operator set them: {report.kept_operator}")
        if report.left_ended:
            self.stdout.write(f"left ended, since an operator ended them: {report.left_ended}")
        self._say_unpriced(report=report, verbosity=verbosity)

    def _say_unpriced(self, *, report: SyncReport, verbosity: int) -> None:
        if report.unpriced:
            named = _named(report.unpriced, all_of_them=verbosity > 1)
            self.stdout.write(f"listed without an input price, so premium (rule T): {len(report.unpriced)}: {named}")
        if report.uncovered:
            named = _named(report.uncovered, all_of_them=True)
            self.stdout.write(f"providers in use that no list prices: {len(report.uncovered)}: {named}")


def _named(names: Sequence[str], *, all_of_them: bool) -> str:
    shown = names if all_of_them else names[:NAMED_AT_MOST]
    more = f" and {len(names) - len(shown)} more (--verbosity 2 names all)" if len(shown) < len(names) else ""
    return ", ".join(shown) + more


def _line(change: PriceChange) -> str:
    sign = {"added": "+", "changed": "~", "ended": "-"}[change.what]
    old, new = _usd(change.before), _usd(change.after)
    price = {"added": new, "changed": f"{old} -> {new}", "ended": f"was {old}"}[change.what]
    return f"{sign} {change.provider}/{change.model}: {price}"


def _usd(amount: Decimal | None) -> str:
    return "no known input price" if amount is None else f"{amount.normalize():f} USD per million input tokens"
