"""Check that the rows of the ledger add up; no totals are kept beside them, so there is nothing to rebuild."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ladder.selectors.ledger_faults import check_ledger
from omniroute_admin.common.selectors.revision import read_snapshot


class Command(BaseCommand):
    """Exit code 0: every row adds up. 1: something does not, named in the output."""

    help = "Check that the rows of the ledger add up. Every total is summed from them, so nothing needs rebuilding."

    def handle(self, *args: Any, **options: Any) -> None:
        """Check and report."""
        with read_snapshot():
            checked = check_ledger()
        for fault in checked.faults:
            self.stderr.write(fault)
        if checked.faults:
            raise CommandError(f"{len(checked.faults)} faults in {checked.rows} rows.")
        self.stdout.write(f"{checked.rows} rows: all add up.")
