"""Where an event stood and what it cost, by the catalogue of the instant at which it happened (M6, M7)."""

from collections.abc import Collection
from datetime import datetime

from billing_catalog.core.values import Billing, Price
from billing_catalog.selectors.past import PastReader
from ladder.core.spend.ledger import Cost, Stood, dearest_of_rung, estimated_cost, known_cost, money_kind, stood
from ladder.core.values import MoneyKind, Rung
from ladder.mapping import rung_named
from ladder.models import Connection, UsageEvent
from ladder.services.booked_connections import BookedConnections
from ladder.services.usage_items import UsageItem


class UsageJudge:
    """Judges the events of one body; the whole catalogue is read only where something has to be estimated."""

    def __init__(
        self, *, providers: Collection[str], models: Collection[str], connections: BookedConnections, now: datetime
    ) -> None:
        """Read the catalogue of these providers and models with its history."""
        self._connections, self._now = connections, now
        self._reader = PastReader(now=now)
        self._past = self._reader.of(providers=providers, models=models)
        self._dearest: dict[tuple[Rung, tuple[int, int]], Price | None] = {}

    def original(self, item: UsageItem, booked: Connection) -> UsageEvent:
        """Return the row of an event that corrects nothing, all but what it adds to the totals."""
        at = item.occurred_at
        place = stood(
            past=self._past,
            provider=booked.provider,
            connection_id=booked.connection_id,
            auth_type=self._connections.auth_type_of(booked, at=at),
            model=item.model,
            at=at,
        )
        kind = money_kind(rung=place.rung, is_overage=bool(item.is_overage))
        row = self._row(item, place=place, kind=kind, provider=booked.provider, at=at)
        row.connection, row.is_overage = booked, bool(item.is_overage)
        return row

    def correction(self, item: UsageItem, original: UsageEvent) -> UsageEvent:
        """Return the row of a correction: on the original's rung and instant, whatever has been curated since (M6)."""
        kind = MoneyKind(original.money_kind)
        place = Stood(rung_named(original.rung), Billing(original.billing))
        row = self._row(item, place=place, kind=kind, provider=original.connection.provider, at=original.booked_at)
        row.connection, row.is_overage, row.original = original.connection, original.is_overage, original
        return row

    def _row(self, item: UsageItem, *, place: Stood, kind: MoneyKind, provider: str, at: datetime) -> UsageEvent:
        cost = self._cost(item, place=place, kind=kind, provider=provider, at=at)
        return UsageEvent(
            event_id=item.event_id,
            model=item.model,
            occurred_at=item.occurred_at,
            received_at=self._now,
            input_tokens=item.input_tokens,
            output_tokens=item.output_tokens,
            cached_input_tokens=item.cached_input_tokens,
            cost_usd=item.cost_usd,
            hold_id=item.hold_id or "",
            corrects_event_id=item.corrects_event_id or "",
            rung=place.rung.word,
            billing=place.billing.value,
            money_kind=kind.value,
            booked_at=at,
            booked_cost=cost.usd,
            is_estimated=cost.is_estimated,
        )

    def _cost(self, item: UsageItem, *, place: Stood, kind: MoneyKind, provider: str, at: datetime) -> Cost:
        price = self._past.price_of(provider=provider, model=item.model, at=at)
        known = known_cost(given=item.cost_usd, tokens=item.tokens, price=price, kind=kind)
        if known is not None:
            return known
        return estimated_cost(
            tokens=item.tokens, price=self._dearest_of(place.rung, at) if item.tokens.is_said else None
        )

    def _dearest_of(self, rung: Rung, at: datetime) -> Price | None:
        past = self._reader.of_all()
        name = rung, past.epoch(at)
        if name not in self._dearest:
            self._dearest[name] = dearest_of_rung(past=past, rung=rung, at=at)
        return self._dearest[name]
