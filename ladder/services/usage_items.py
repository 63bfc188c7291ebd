"""One event of the ledger as a reporter sends it, and whether it can be one (SPEC 4, Usage): pure, item by item."""

from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.spend.ledger import OLDEST, Tokens
from ladder.services.live_connections import Refusal
from ladder.services.reading_items import MAX_AHEAD, Instant, is_storable

MOST_TOKENS = 1_000_000_000
MOST_USD = Decimal(1_000_000)
LONGEST_ID = 200
_PLACES = 6


class UsageItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of `events`; `input_tokens` includes the cached ones, a correction's `cost_usd` is the full one."""

    event_id: str
    connection_id: str
    model: str
    occurred_at: Instant
    provider: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    cost_usd: Decimal | None = None
    is_overage: bool | None = None
    hold_id: str | None = None
    corrects_event_id: str | None = None

    @property
    def tokens(self) -> Tokens:
        """Return the tokens as the ledger reckons with them."""
        return Tokens(self.input_tokens, self.output_tokens, self.cached_input_tokens)


class UnreadableItem(msgspec.Struct, frozen=True):
    """An item that is none; `detail` names every fault."""

    detail: str


def problem_of(item: UsageItem | UnreadableItem, *, now: datetime) -> Refusal | None:
    """Return why an item received at `now` cannot be booked whatever is stored, naming every fault; None: it can."""
    if isinstance(item, UnreadableItem):
        return Refusal("invalid_item", item.detail)
    if item.occurred_at - now > MAX_AHEAD:
        return Refusal("occurred_in_future", "occurred_at: more than 60 s in the future")
    faults = [*_name_faults(item), *_token_faults(item), *_cost_faults(item.cost_usd), *_correction_faults(item)]
    if item.occurred_at < OLDEST:
        faults.append("occurred_at: before the year 2000")
    return Refusal("invalid_item", "; ".join(faults)) if faults else None


def usd_fault(amount: Decimal) -> str | None:
    """Return why an amount cannot be booked, or None."""
    if not amount.is_finite():
        return "give a finite amount"
    if amount < 0:
        return "below zero, money that came back is a correction with the smaller cost"
    if amount > MOST_USD:
        return f"more than {MOST_USD} USD"
    exponent = amount.normalize().as_tuple().exponent
    return f"more than {_PLACES} places" if isinstance(exponent, int) and exponent < -_PLACES else None


def _name_faults(item: UsageItem) -> list[str]:
    texts = {"event_id": item.event_id, "model": item.model}
    texts |= {"hold_id": item.hold_id} if item.hold_id is not None else {}
    texts |= {"corrects_event_id": item.corrects_event_id} if item.corrects_event_id is not None else {}
    return [
        f"{name}: give 1 to {LONGEST_ID} printable characters"
        for name, text in texts.items()
        if not is_storable(text, length=LONGEST_ID)
    ]


def _token_faults(item: UsageItem) -> list[str]:
    faults = [
        f"{name}: give a number from 0 to {MOST_TOKENS}"
        for name in ("input_tokens", "output_tokens", "cached_input_tokens")
        if not 0 <= (getattr(item, name) or 0) <= MOST_TOKENS
    ]
    if not faults and (item.cached_input_tokens or 0) > (item.input_tokens or 0):
        faults.append("cached_input_tokens: more than input_tokens, which includes them")
    return faults


def _correction_faults(item: UsageItem) -> list[str]:
    """A correction carries the new full cost; one that says nothing must not erase money (SPEC 4, 6)."""
    says_nothing = item.cost_usd is None and item.input_tokens is None and item.output_tokens is None
    if item.corrects_event_id is None or not says_nothing:
        return []
    return ["cost_usd: a correction carries the new full cost, or the tokens to price it by"]


def _cost_faults(cost: Decimal | None) -> list[str]:
    fault = None if cost is None else usd_fault(cost)
    return [] if fault is None else [f"cost_usd: {fault}"]
