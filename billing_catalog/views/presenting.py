"""What the catalogue's pages show of a row: marks, ages and addresses in words (SPEC 5, 4)."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from urllib.parse import urlencode, urlsplit

import msgspec
from django.urls import reverse

from billing_catalog.core.review import Review, review_of
from billing_catalog.core.tiers import TierIndex, TierReason, explain_tier
from billing_catalog.core.values import Tier
from billing_catalog.models import BillingEntry, ModelPrice
from omniroute_admin.common.core.screen import Glance, Moment
from omniroute_admin.common.core.words import money_text


class Source(msgspec.Struct, frozen=True):
    """Where an entry's facts come from: an address that is safe to open, and its host."""

    url: str
    host: str


def source_of(url: str) -> Source | None:
    """Return an address that a page may link to: http and https only."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return None
    return Source(url, host) if parts.scheme in {"http", "https"} and host else None


class EntryLine(msgspec.Struct, frozen=True):
    """A billing entry as a list shows it."""

    row: BillingEntry
    review: Review
    source: Source | None
    changed: Moment

    @property
    def is_metered(self) -> bool:
        """Tell whether it says unknown, which is consumed as metered (B5)."""
        return self.row.billing == "unknown"

    @property
    def may_bill(self) -> bool:
        """Tell whether a plan bills past its allowance, or may (P4)."""
        return self.row.billing == "subscription" and self.row.overage != "hard-stop"


def today(seen: Glance) -> date:
    """Return the day it is where the page is looked at."""
    return seen.now.astimezone(seen.zone).date()


def entry_line(row: BillingEntry, *, seen: Glance) -> EntryLine:
    """Return a billing entry as a list shows it."""
    review = review_of(reviewed_on=row.reviewed_on, today=today(seen))
    return EntryLine(row, review, source_of(row.source_url), seen.ago(row.updated_at))


class PriceLine(msgspec.Struct, frozen=True):
    """A price as a list shows it; of one in force, its tier and why (T)."""

    row: ModelPrice
    url: str
    input: str
    output: str
    cached: str
    capabilities: str
    since: Moment
    until: Moment | None = None
    tier: TierReason | None = None
    state: str = ""

    @property
    def rung_index(self) -> int:
        """Return the rung on which a metered connection serves the model (G)."""
        return _RUNGS[self.tier.tier] if self.tier else _RUNGS[Tier.PREMIUM]


_RUNGS = {Tier.FREE: 2, Tier.CHEAP: 3, Tier.PREMIUM: 4}


NOT_KNOWN = "not known"


def usd(value: Decimal | None) -> str:
    """Return a price in words: nothing is not known, never free."""
    return NOT_KNOWN if value is None else money_text(value)


def model_url(*, provider: str, model: str) -> str:
    """Return the address of a model's prices."""
    return f"{reverse('catalogue-model')}?{urlencode({'provider': provider, 'model': model})}"


def price_lines(rows: Iterable[ModelPrice], *, index: TierIndex, seen: Glance) -> list[PriceLine]:
    """Return prices as a list shows them, each with the tier it means."""
    return [_price_line(row, index, seen) for row in rows]


def _price_line(row: ModelPrice, index: TierIndex, seen: Glance) -> PriceLine:
    price = row.input_usd_per_million
    return PriceLine(
        row=row,
        url=model_url(provider=row.provider, model=row.model),
        input=usd(price),
        output=usd(row.output_usd_per_million),
        cached=usd(row.cached_input_usd_per_million),
        capabilities=", ".join(row.capabilities),
        since=seen.ago(row.effective_from) if row.effective_from <= seen.now else seen.until(row.effective_from),
        until=_until(row, seen),
        tier=explain_tier(index=index, provider=row.provider, model=row.model, input_usd_per_million=price),
        state=_state(row, seen),
    )


def _until(row: ModelPrice, seen: Glance) -> Moment | None:
    if row.effective_to is None:
        return None
    return seen.ago(row.effective_to) if row.effective_to <= seen.now else seen.until(row.effective_to)


def _state(row: ModelPrice, seen: Glance) -> str:
    if row.effective_from > seen.now:
        return "to come"
    return "ended" if row.effective_to is not None and row.effective_to <= seen.now else "in force"


def tier_words(reason: TierReason, *, index: TierIndex) -> str:
    """Return why a model has its tier, in words."""
    if reason.pattern is not None:
        return f"model override {reason.pattern}"
    if reason.cause.name == "PRICE":
        free, cheap = money_text(index.thresholds.free), money_text(index.thresholds.cheap)
        return {"free": f"input up to {free}", "cheap": f"input up to {cheap}"}.get(reason.tier, f"input above {cheap}")
    return reason.cause.value
