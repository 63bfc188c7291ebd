"""Which connections each billing entry speaks of, and what is in use that nobody curated (B1 to B5; SPEC 5, 4)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from django.db.models import Max, OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce, Greatest

from billing_catalog.core.billing import CatalogIndex, classify, index_catalog
from billing_catalog.core.values import Billing, Matched
from billing_catalog.mapping import read_catalog_rows
from ladder.core.spend.ledger import OLDEST
from ladder.models import Connection, LedgerSum, UsageEvent
from ladder.selectors.connections import stored_connections
from omniroute_admin.common.core.names import NOAUTH

STAKE = timedelta(days=30)
"""So far back the money at stake is counted."""

Pair = tuple[str, str | None]
"""Provider and auth type; None is "not known" of a connection, provider-wide of an entry."""


def count_by_entry() -> Mapping[Pair, int]:
    """Return how many stored connections each billing entry decides, by what the entry speaks of; two queries."""
    catalog = index_catalog(read_catalog_rows())
    found: Counter[Pair] = Counter()
    for (provider, auth_type), count in _connection_counts().items():
        matched = _verdict(catalog, provider, auth_type).matched
        if matched is not Matched.NONE:
            found[provider, auth_type if matched is Matched.PROVIDER_AUTH_TYPE else None] += count
    return found


def connections_of_entry(*, provider: str, auth_type: str | None) -> list[Connection]:
    """Return the stored connections that an entry decides; two queries."""
    catalog = index_catalog(read_catalog_rows())
    rows = _accounts().filter(provider=provider).order_by("connection_id")
    return [row for row in rows if _speaks(catalog, (provider, auth_type), row)]


def _speaks(catalog: CatalogIndex, entry: Pair, row: Connection) -> bool:
    matched = _verdict(catalog, row.provider, row.auth_type).matched
    wanted = Matched.PROVIDER_AUTH_TYPE if entry[1] else Matched.PROVIDER
    return matched is wanted and (entry[1] is None or row.auth_type == entry[1])


class RungSpend(msgspec.Struct, frozen=True):
    """What was spent on one rung."""

    rung: str
    usd: Decimal


class Uncurated(msgspec.Struct, frozen=True):
    """A provider and auth type in use of which the catalogue answers unknown: consumed as metered (B5).

    `entry` is the key of the entry that says unknown, None where nobody curated it. `spent` is real money since
    `now` minus 30 days: by rung, billed past a plan among it.
    """

    provider: str
    auth_type: str | None
    connections: int
    spent: tuple[RungSpend, ...]
    last_used: datetime | None
    entry: Pair | None

    @property
    def spent_usd(self) -> Decimal:
        """Return the money at stake."""
        return sum((one.usd for one in self.spent), Decimal(0))


def find_uncurated(*, now: datetime) -> list[Uncurated]:
    """Return what is in use and unknown to the catalogue, the most money first; five queries at most."""
    catalog = index_catalog(read_catalog_rows())
    counts = _connection_counts()
    spent = _spent(now=now)
    unknown = [pair for pair in {**counts, **spent} if _verdict(catalog, *pair).billing is Billing.UNKNOWN]
    used = _last_used(providers={provider for provider, _ in unknown})
    found = [
        Uncurated(
            provider=provider,
            auth_type=auth_type,
            connections=counts.get((provider, auth_type), 0),
            spent=tuple(RungSpend(rung, usd) for rung, usd in sorted(spent.get((provider, auth_type), {}).items())),
            last_used=used.get((provider, auth_type)),
            entry=_entry(catalog, provider, auth_type),
        )
        for provider, auth_type in unknown
    ]
    return sorted(found, key=lambda one: (-one.spent_usd, -one.connections, one.provider, one.auth_type or ""))


def _accounts() -> Any:
    return stored_connections().exclude(connection_id=NOAUTH)


def _connection_counts() -> dict[Pair, int]:
    pairs = _accounts().order_by().values_list("provider", "auth_type")
    return dict(Counter((provider, auth_type) for provider, auth_type in pairs))


def _verdict(catalog: CatalogIndex, provider: str, auth_type: str | None) -> Any:
    return classify(catalog=catalog, provider=provider, connection_id="", auth_type=auth_type)


def _entry(catalog: CatalogIndex, provider: str, auth_type: str | None) -> Pair | None:
    matched = _verdict(catalog, provider, auth_type).matched
    if matched is Matched.NONE:
        return None
    return provider, auth_type if matched is Matched.PROVIDER_AUTH_TYPE else None


def _spent(*, now: datetime) -> dict[Pair, dict[str, Decimal]]:
    """Return the real money of the last 30 days by provider, auth type and rung; a plan's list price is none (M5)."""
    events, sums = (
        model._default_manager.filter(money_kind__in=["budget", "overage"], booked_at__gte=now - STAKE)
        .exclude(connection__connection_id=NOAUTH)
        .order_by()
        .values_list("connection__provider", "connection__auth_type", "rung")
        .annotate(total=Sum("booked_usd"))
        for model in (UsageEvent, LedgerSum)
    )
    found: dict[Pair, dict[str, Decimal]] = {}
    for provider, auth_type, rung, total in events.union(sums, all=True):
        of_pair = found.setdefault((provider, auth_type), {})
        of_pair[rung] = of_pair.get(rung, Decimal(0)) + total
    return found


def _last_used(*, providers: Iterable[str]) -> dict[Pair, datetime]:
    event = UsageEvent.objects.filter(connection=OuterRef("pk")).order_by("-booked_at").values("booked_at")[:1]
    folded = LedgerSum.objects.filter(connection=OuterRef("pk")).order_by("-last_at").values("last_at")[:1]
    # Of nothing the two databases have each its own idea which is the greatest.
    last = Greatest(Coalesce(Subquery(event), OLDEST), Coalesce(Subquery(folded), OLDEST))
    rows = (
        Connection.objects.filter(provider__in=list(providers))
        .exclude(connection_id=NOAUTH)
        .annotate(last=last)
        .filter(last__gt=OLDEST)
        .order_by()
        .values_list("provider", "auth_type")
        .annotate(newest=Max("last"))
    )
    return {(provider, auth_type): newest for provider, auth_type, newest in rows}
