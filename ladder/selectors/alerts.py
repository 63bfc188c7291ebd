"""What alerts are found from: the rules, the facts they look at, and what is raised."""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Sum

from billing_catalog.core.values import Billing
from billing_catalog.models import BillingEntry
from ladder.core.alerts.channels import Channel
from ladder.core.alerts.rules import AlertFacts, AlertKind, EntryFact, Key, Rule
from ladder.core.occupancy import build_occupancy, with_budgets
from ladder.core.snapshot import Snapshot
from ladder.core.values import MoneyKind
from ladder.mapping import to_alert_rule
from ladder.models import Alert, AlertRule, UsageEvent
from ladder.selectors.catalogue_use import count_by_entry
from ladder.selectors.state import get_present


def channels() -> Mapping[str, Channel]:
    """Return the channels that the environment names, by name."""
    named: Mapping[str, Channel] = settings.ALERT_CHANNELS
    return named


def enabled_rules() -> list[AlertRule]:
    """Return the rules that are looked by; one query."""
    return list(AlertRule.objects.filter(is_enabled=True).order_by("id"))


def open_alerts() -> list[Alert]:
    """Return what is raised and not resolved, the oldest first; one query."""
    return list(Alert.objects.filter(resolved_at=None).select_related("rule").order_by("raised_at", "id"))


def read_alert_facts(*, rows: Iterable[AlertRule], now: datetime, zone: ZoneInfo) -> AlertFacts:
    """Read what these rules look at, as of one revision; billing entries and ledger only where one asks for them."""
    rules = [to_alert_rule(row) for row in rows]
    snapshot, budgets, _ = get_present(now=now)
    kinds = {rule.kind for rule in rules}
    return AlertFacts(
        now=now,
        zone=zone,
        occupancy=with_budgets(occupancy=build_occupancy(snapshot=snapshot, now=now), budgets=budgets, now=now),
        readings=_newest_readings(snapshot),
        entries=_read_entries() if AlertKind.UNREVIEWED in kinds else (),
        overage_usd={hours: _read_overage(since=now - timedelta(hours=hours)) for hours in _hours(rules)},
    )


def _hours(rules: Iterable[Rule]) -> Collection[int]:
    return {rule.threshold for rule in rules if rule.kind is AlertKind.OVERAGE}


def _newest_readings(snapshot: Snapshot) -> dict[Key, datetime | None]:
    """Return the newest reading of every plan that may serve; without one its quota is not verified (Q1)."""
    found: dict[Key, datetime | None] = {}
    for account in snapshot.accounts:
        one = account.connection
        if account.verdict.billing is Billing.SUBSCRIPTION and one.is_enabled and not one.is_implied:
            read = (window.observed_at for window in one.windows if window.observed_at is not None)
            found[one.provider, one.connection_id] = max(read, default=None)
    return found


def _read_entries() -> tuple[EntryFact, ...]:
    used = count_by_entry()
    rows = BillingEntry.objects.order_by("provider", "id").values_list(
        "pk", "provider", "auth_type", "reviewed_on", "created_at"
    )
    return tuple(
        EntryFact(pk, provider, auth_type, _since(reviewed, made), reviewed is not None, (provider, auth_type) in used)
        for pk, provider, auth_type, reviewed, made in rows
    )


def _since(reviewed_on: date | None, created_at: datetime) -> date:
    return reviewed_on or created_at.astimezone(UTC).date()


def _read_overage(*, since: datetime) -> dict[Key, Decimal]:
    """Sum what connections billed past their plans since an instant (M5)."""
    rows = (
        UsageEvent.objects.filter(money_kind=MoneyKind.OVERAGE.value, booked_at__gte=since)
        .order_by()
        .values_list("connection__provider", "connection__connection_id")
        .annotate(usd=Sum("booked_usd"))
    )
    return {(provider, name): usd for provider, name, usd in rows}
