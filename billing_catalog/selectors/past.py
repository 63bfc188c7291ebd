"""The catalogue with its history, so that an event is judged by what stood when it happened (M6)."""

from collections.abc import Callable, Collection, Hashable, Iterable
from datetime import datetime
from typing import Any, TypeVar

from django.db import models

from billing_catalog.core.past import Past, Records
from billing_catalog.core.values import Billing, CatalogRow, Overage, Price, Thresholds, Tier, TierRule
from billing_catalog.core.versions import ALWAYS, FOREVER, Span, Version, spans_of
from billing_catalog.mapping import read_thresholds
from billing_catalog.models import BillingEntry, FreeProvider, PriceSource, TierOverride, TierThresholds
from billing_catalog.selectors.aliases import alias_map
from billing_catalog.selectors.past_rows import EVER, PRESENT, WRITTEN, every_price, prices_of

T = TypeVar("T")
_DELETED = "-"


class PastReader:
    """Reads what the catalogue ever said: of some providers at first, of all where something asks for it."""

    def __init__(self, *, now: datetime, only_present: bool = False) -> None:
        """Remember when it is asked; `only_present` leaves the history out, for what happens now."""
        self._now = now
        self._only_present = only_present
        self._aliases = alias_map()
        self._of_all: Past | None = None

    def of(self, *, providers: Collection[str], models: Collection[str]) -> Past:
        """Return the catalogue of some providers, by canonical names, with the prices of some models.

        A constant number of queries: a provider may have hundreds of prices, and a body speaks of few of them.
        """
        known_as = {alias for alias, provider in self._aliases.items() if provider in providers}
        return self._read({*providers, *known_as}, prices_of(providers=providers, models=models))

    def of_all(self) -> Past:
        """Return the catalogue of every provider, read once."""
        if self._of_all is None:
            self._of_all = self._read(None, every_price())
        return self._of_all

    def _read(self, names: Collection[str] | None, prices: Iterable[tuple[Any, ...]]) -> Past:
        records = Records(
            entries=self._spans(BillingEntry, self._entry, lambda row: (row.provider, row.auth_type), names),
            rules=self._spans(TierOverride, self._rule, lambda row: (row.provider, row.model_pattern), names),
            free_providers=self._spans(FreeProvider, self._named, lambda name: name, names),
            price_sources=self._spans(PriceSource, self._source, lambda source: source[0], names),
            thresholds=self._thresholds(),
            prices=tuple(Price(*row) for row in prices),
        )
        return Past(records=records, known_at=self._now)

    def _spans(
        self,
        model: type[models.Model],
        make: Callable[..., T],
        key: Callable[[T], Hashable],
        names: Collection[str] | None,
    ) -> tuple[Span[T], ...]:
        """Return the time of every version of the rows that ever spoke of these providers; two queries."""
        present = {
            row: make(*said) for row, *said in (PRESENT if self._only_present else EVER).rows(model=model, names=names)
        }
        if self._only_present:
            return tuple(Span(row, ALWAYS, FOREVER, value) for row, value in present.items())
        written = [
            Version(row, since, None if what == _DELETED else make(*said))
            for row, since, what, *said in WRITTEN.rows(model=model, names=names)
        ]
        return spans_of(versions=as_present(versions=written, present=present), key=key)

    def _thresholds(self) -> tuple[Span[Thresholds], ...]:
        """Return the thresholds over time."""
        present = {1: read_thresholds()}
        if self._only_present:
            return (Span(1, ALWAYS, FOREVER, present[1]),)
        past = TierThresholds.history.order_by("history_id").values_list("history_date", "free", "cheap")
        written = [Version(1, since, Thresholds(*values)) for since, *values in past]
        return spans_of(versions=as_present(versions=written, present=present), key=lambda _: "one")

    def _provider(self, name: str) -> str:
        return self._aliases.get(name, name)

    def _entry(self, provider: str, auth_type: str | None, billing: str, overage: str) -> CatalogRow:
        return CatalogRow(self._provider(provider), Billing(billing), Overage(overage), auth_type)

    def _rule(self, provider: str, tier: str, pattern: str | None) -> TierRule:
        return TierRule(self._provider(provider), Tier(tier), pattern)

    def _named(self, provider: str) -> str:
        return self._provider(provider)

    def _source(self, provider: str, sells_seats: bool) -> tuple[str, bool]:
        return self._provider(provider), sells_seats


def as_present(*, versions: list[Version[T]], present: dict[int, T]) -> list[Version[T]]:
    """Return the versions with the rows as they are now at their end, whoever wrote them and with or without history.

    A row that is gone without a word in the history is gone from its last version on.
    """
    last = {version.row: version for version in versions}
    closing = [
        Version(row, last[row].since if row in last else ALWAYS, value)
        for row, value in present.items()
        if row not in last or last[row].value != value
    ]
    gone: list[Version[T]] = [
        Version(row, one.since, None) for row, one in last.items() if row not in present and one.value is not None
    ]
    return [*versions, *closing, *gone]
