"""A model's price from its form: from now or from an instant to come; never in the past (SPEC 3: append-only)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.core.exceptions import ValidationError

from billing_catalog.errors import RowChanged
from billing_catalog.models import ModelPrice
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services.drafts import plain_texts, read_texts
from billing_catalog.services.kinds import PRICES
from billing_catalog.services.prices import create_price, end_price, update_price
from omniroute_admin.common.core.stale import find_changes, find_differences
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

Texts = Mapping[str, str]
NO_PRICE = "none"


class PriceSet(msgspec.Struct, frozen=True):
    """The price that acts, or will; not written where it stood so already."""

    price: ModelPrice
    is_written: bool


def seen_price(*, provider: str, model: str, now: datetime) -> dict[str, str]:
    """Return what a model's price form shows: the price in force as texts, and which row it is."""
    return _seen(_in_force(provider=provider, model=model, now=now))


def _seen(price: ModelPrice | None) -> dict[str, str]:
    if price is None:
        return dict.fromkeys(PRICES.names, "") | {"row": NO_PRICE}
    return plain_texts(PRICES, price) | {"row": str(price.pk)}


def set_price(
    *, began: Texts, sent: Texts, starts: datetime | None, actor: Actor, reason: str, now: datetime
) -> PriceSet:
    """Give a model a price: from now on where `starts` is None, else from that instant.

    Raises:
        RowChanged: somebody else changed the price in force since the form was opened; nothing is written.
        ValidationError: names every bad field.
        ProductError: the price would lie in another one's time.
    """
    values, _ = read_texts(kind=PRICES, texts=sent)
    with deciding_write() as write:
        found = _already(values=values, sent=sent, starts=starts, now=now)
        if found is not None:
            write.changed = False
            return PriceSet(found, is_written=False)
        price = _in_force(provider=values["provider"], model=values["model"], now=now)
        _check_same(began, _seen(price), sent)
        if starts is not None and starts <= now:
            raise ValidationError({"starts_at": ["Give an instant to come: what was charged is history."]})
        if starts is None and price is not None:
            changes: Any = _content(find_changes(began=_seen(price), sent=sent))
            return PriceSet(update_price(price=price, changes=changes, actor=actor, reason=reason, now=now), True)
        start: Any = {} if starts is None else {"effective_from": starts}
        return PriceSet(create_price(values=values | start, actor=actor, reason=reason, now=now), is_written=True)


def finish_price(
    *, price: ModelPrice, began: Texts, ends: datetime | None, actor: Actor, reason: str, now: datetime
) -> PriceSet:
    """End a price now where `ends` is None, else at that instant; one that has not begun is taken back.

    Raises:
        RowChanged: somebody else changed it since the form was opened; nothing is written.
        ProductError: it has ended already, or the end lies where it cannot.
        NotFound: it is gone.
    """
    with deciding_write():
        row = ModelPrice.objects.select_for_update().filter(pk=price.pk).first()
        if row is None:
            raise NotFound("This price is gone.")
        _check_same(began, _seen(row), began)
        if ends is None:
            end_price(price=row, actor=actor, reason=reason, now=now)
        else:
            update_price(price=row, changes={"effective_to": ends}, actor=actor, reason=reason, now=now)
    return PriceSet(row, is_written=True)


def _in_force(*, provider: str, model: str, now: datetime) -> ModelPrice | None:
    return prices_in_force(now=now).filter(provider=provider, model=model).order_by("-effective_from").first()


def _already(*, values: Mapping[str, Any], sent: Texts, starts: datetime | None, now: datetime) -> ModelPrice | None:
    """Return the row that says already what is sent, from that start."""
    if starts is None:
        row = _in_force(provider=values["provider"], model=values["model"], now=now)
    else:
        identity = {"provider": values["provider"], "model": values["model"], "effective_from": starts}
        row = ModelPrice.objects.filter(**identity).first()
    return row if row is not None and plain_texts(PRICES, row) == dict(sent) else None


def _check_same(began: Texts, stored: Texts, sent: Texts) -> None:
    # A new row with the same values is no difference that its reader could see.
    values = {name: text for name, text in began.items() if name in PRICES.names and name not in PRICES.identity}
    if differences := find_differences(began=values, stored=stored, sent=sent):
        raise RowChanged(differences=differences, stored=stored)


def _content(changes: Texts) -> dict[str, Any]:
    values, _ = read_texts(kind=PRICES, texts={name: changes[name] for name in changes if name in PRICES.names})
    return values
