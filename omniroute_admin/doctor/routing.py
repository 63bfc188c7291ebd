"""Checks of what decisions stand on: facts, prices, connections, readings, settings, the ledger."""

from datetime import datetime, timedelta

from django.db.models import Max

from billing_catalog.models import BillingEntry, ModelPrice
from ladder.core.values import PAID_RUNGS
from ladder.models import LadderSettings, QuotaWindow
from ladder.selectors.catalogue_use import find_uncurated
from ladder.selectors.connections import stored_connections
from ladder.selectors.ledger_faults import LedgerSpan, check_ledger
from omniroute_admin.doctor.report import Check, Needs, Said, age, error, not_applicable, ok, some, warning

OLD_PRICES = timedelta(days=180)
QUICK = timedelta(days=2)
"""So far back the quick look at the ledger goes."""


def check_facts(now: datetime) -> Said:
    """Look whether the catalogue says how any provider bills."""
    count = BillingEntry.objects.count()
    if not count:
        return error("The catalogue is empty: every connection counts as metered.", "Run: python manage.py load_facts")
    return ok(f"The catalogue says of {count} providers how they bill.")


def check_prices(now: datetime) -> Said:
    """Look whether there are prices, and how old the newest is."""
    newest = ModelPrice.objects.aggregate(newest=Max("effective_from"))["newest"]
    if newest is None:
        return error(
            "There is no price: every metered model counts as premium, and spend is not priced.",
            "Run: python manage.py sync_prices",
        )
    old = now - newest
    if old > OLD_PRICES:
        return warning(
            f"The newest price is {age(old.total_seconds())} old.",
            "Install a newer version, whose price lists are newer, or set prices under Catalogue.",
        )
    return ok(f"The newest price is {age(max(0.0, old.total_seconds()))} old.")


def check_connections(now: datetime) -> Said:
    """Look whether there is anything to route to."""
    count = stored_connections().filter(is_enabled=True).count()
    if not count:
        return warning(
            "No connection is enabled: every stored pool is empty.",
            "Run manage.py import_omniroute, add one under Connections, or POST /api/v1/connections.",
        )
    return ok(f"{count} connections are enabled.")


def check_readings(now: datetime) -> Said:
    """Look whether quota is read often enough for `auto/subscription` to have any plan (Q3)."""
    live = stored_connections().filter(is_enabled=True)
    windows = QuotaWindow.objects.filter(connection__in=live, is_reported=True, is_muted=False)
    newest = windows.aggregate(newest=Max("observed_at"))["newest"]
    if newest is None:
        if not live.exists():
            return not_applicable("There is no connection to read.")
        return warning(
            "No reading ever came: auto/subscription is empty.", "Let the router POST /api/v1/telemetry/readings."
        )
    most = LadderSettings.objects.values_list("max_reading_age_seconds", flat=True).get(pk=1)
    old = (now - newest).total_seconds()
    if old > most:
        return error(
            f"The newest reading is {age(old)} old, and one counts for {most} s: auto/subscription is empty.",
            "Mend what reports readings, or raise the maximum age under Tuning.",
        )
    return ok(f"The newest reading is {age(max(0.0, old))} old.")


def check_curated(now: datetime) -> Said:
    """Look what is in use of which nobody said how it bills (B5)."""
    unknown = find_uncurated(now=now)
    if not unknown:
        return ok("The catalogue says of everything in use how it bills.")
    names = [f"{one.provider} ({one.auth_type or 'no auth type'})" for one in unknown]
    return warning(
        f"Nobody said how {some(names)} bills: it counts as metered.", "Say it under Catalogue, In use and uncurated."
    )


def check_band(now: datetime) -> Said:
    """Look whether re-entry stands below the cutoff (SPEC 2, Settings)."""
    row = LadderSettings.objects.get(pk=1)
    if row.reentry_min_remaining_percent < row.exit_cutoff_percent:
        return warning(
            f"Re-entry at {row.reentry_min_remaining_percent.normalize():f} % stands below the cutoff of "
            f"{row.exit_cutoff_percent.normalize():f} %, which acts in its place.",
            "Set re-entry at or above the cutoff under Tuning.",
        )
    return ok("Re-entry stands at or above the cutoff.")


def check_ledger_quickly(now: datetime) -> Said:
    """Look whether the rows of the last two days add up (M4, M5, M6)."""
    spans = [LedgerSpan(rung.word, now - QUICK, now + QUICK) for rung in PAID_RUNGS]
    checked = [check_ledger(span=span) for span in spans]
    faults = [fault for one in checked for fault in one.faults]
    if faults:
        return error(
            f"{len(faults)} rows of the ledger contradict others ({some(faults)}).",
            "Run: python manage.py check_ledger, and compare with the last backup.",
        )
    return ok(f"The {sum(one.rows for one in checked)} rows of the ledger of the last two days add up.")


CHECKS = (
    Check("facts", Needs.TABLES, check_facts),
    Check("prices", Needs.TABLES, check_prices),
    Check("connections", Needs.TABLES, check_connections),
    Check("readings", Needs.TABLES, check_readings),
    Check("curated", Needs.TABLES, check_curated),
    Check("band", Needs.TABLES, check_band),
    Check("ledger", Needs.TABLES, check_ledger_quickly),
)
