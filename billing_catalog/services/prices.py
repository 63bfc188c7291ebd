"""Write prices: append-only, each in force from one instant to another (SPEC 3).

A change is a new row: the old one ends where the new one begins, so that what was booked under it stays explained.
The first row of a model holds for all time before it as well (M6), therefore its start needs no backdating.
Only a row that has not begun yet may be changed or taken back as it is: nothing was ever decided by it.
"""

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict

from django.core.exceptions import ValidationError
from django.db.models import QuerySet

from billing_catalog.choices import LIST_SOURCES, OPERATOR_SOURCE
from billing_catalog.errors import BadPricePeriod, PriceHasEnded
from billing_catalog.models import LoadedFact, ModelPrice
from billing_catalog.selectors.aliases import resolved
from billing_catalog.selectors.prices import prices_in_force
from billing_catalog.services.rows import check_row, present, refused_as_conflict
from omniroute_admin.common.errors import Conflict, field
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

ENDED_PRICE = "ended-price"
"""Kind of the marker that keeps sync_prices from bringing back a price that an operator ended."""

IDENTITY = ("provider", "model", "effective_from")
NUMBERS = ("input_usd_per_million", "output_usd_per_million", "cached_input_usd_per_million", "capabilities")
CONTENT = (*NUMBERS, "rank", "source")


class PriceChanges(TypedDict, total=False):
    """What of a price may change; USD per million tokens, None is "not known", never free (T)."""

    input_usd_per_million: Decimal | None
    output_usd_per_million: Decimal | None
    cached_input_usd_per_million: Decimal | None
    capabilities: list[str]
    rank: int | None
    source: str
    effective_to: datetime | None


class PriceValues(PriceChanges, total=False):
    """The fields of a new price; without `effective_from` it acts from now on."""

    provider: str
    model: str
    effective_from: datetime


def ended_key(*, provider: str, model: str) -> str:
    """Return the key of the marker of an ended price; letter case of the model does not count."""
    return f"{provider} {model.lower()}"[:300]


def create_price(*, values: PriceValues, actor: Actor, reason: str, now: datetime) -> ModelPrice:
    """Add a price; the row that acts at its start ends there, and it ends where the next one begins.

    Raises:
        ValidationError: names every bad field.
        BadPricePeriod: it would overlap what is history, or a later row.
        Conflict: a price of the model begins at that instant already, or another writer was faster.
    """
    _check_source(values=values, but=None)
    with refused_as_conflict(), deciding_write(wide_at=now):
        price = ModelPrice(**({"effective_from": now} | resolved(model=ModelPrice, values=clean_values(values))))
        # The fields first: only with good names can the neighbours be looked up.
        price.clean_fields()
        _make_room(price=price, actor=actor, reason=reason, now=now)
        _save(price=price, actor=actor, reason=reason, now=now)
        _forget_end(price=price)
    return price


def update_price(*, price: ModelPrice, changes: PriceChanges, actor: Actor, reason: str, now: datetime) -> ModelPrice:
    """Change a price from now on, and return the row that acts then: a new one, with an id of its own.

    A row that has not begun is changed as it is, and so is the end of one (`effective_to`). What changes nothing
    writes nothing. Numbers or capabilities that an operator gives are the operator's (`source`), and stay out of
    sync_prices' reach; a new rank alone leaves the source as it was.

    Raises:
        ValidationError: names every bad field.
        PriceHasEnded: the row is history.
        BadPricePeriod: the new end is past, or lies behind the start of the next row.
        NotFound: the row is gone.
        Conflict: another writer was faster.
    """
    _check_source(values=changes, but=price.source)
    if not _differing(
        present(row=price), changed_price(old=present(row=price), changes=changes), [*CONTENT, "effective_to"]
    ):
        return present(row=price)
    with refused_as_conflict(), deciding_write(wide_at=now):
        old = present(row=price, lock=True)
        _check_not_over(price=old, now=now)
        new, end = changed_price(old=old, changes=changes), old.effective_to
        _check_end(price=new, changed=end != new.effective_to, now=now)
        if old.effective_from < now and _differing(old, new, CONTENT):
            _end(price=old, at=now, actor=actor, reason=reason, now=now)
            new.pk, new.effective_from, new._state.adding = None, now, True
        _save(price=new, actor=actor, reason=reason, now=now)
        if new.effective_to is None:
            _forget_end(price=new)
        elif new.effective_to != end:
            _remember_end(price=new, now=now)
    return new


def end_price(*, price: ModelPrice, actor: Actor, reason: str, now: datetime) -> None:
    """End a price now; the row stays in the books. One that has not begun is taken back, as if it had never been.

    sync_prices leaves a model that a list once priced without a price then, until someone gives it one again; an
    operator's correction in between makes no difference.

    Raises:
        PriceHasEnded: it has ended already.
        NotFound: the row is gone.
    """
    with deciding_write(wide_at=now):
        old = present(row=price, lock=True)
        _check_not_over(price=old, now=now)
        if old.effective_from >= now:
            _take_back(price=old, actor=actor, reason=reason, now=now)
        else:
            _end(price=old, at=now, actor=actor, reason=reason, now=now)
        if not _of_model(prices_in_force(now=now), price=old).exists():
            _remember_end(price=old, now=now)


def clean_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the model's name trimmed and the capabilities in one spelling and order."""
    cleaned = dict(values)
    if isinstance(cleaned.get("model"), str):
        cleaned["model"] = cleaned["model"].strip()
    words = cleaned.get("capabilities")
    if isinstance(words, list) and all(isinstance(word, str) for word in words):
        cleaned["capabilities"] = sorted(word.strip().lower() for word in words)
    return cleaned


def _check_source(*, values: Mapping[str, Any], but: str | None) -> None:
    source = values.get("source")
    if source in LIST_SOURCES and source != but:
        raise ValidationError({"source": [f"{source} is kept for the prices that sync_prices reads from that list."]})


def changed_price(*, old: ModelPrice, changes: Mapping[str, Any]) -> ModelPrice:
    """Return a price as it would be; nothing is written.

    Raises:
        ValidationError: names every bad field.
    """
    new = copy.copy(old)
    for name, value in clean_values(changes).items():
        setattr(new, name, value)
    new.clean_fields()
    if old.source in LIST_SOURCES and _differing(old, new, NUMBERS) and new.source == old.source:
        new.source = OPERATOR_SOURCE
    return new


def _differing(one: ModelPrice, other: ModelPrice, names: Sequence[str]) -> bool:
    return any(getattr(one, name) != getattr(other, name) for name in names)


def _check_not_over(*, price: ModelPrice, now: datetime) -> None:
    if price.effective_to is None or price.effective_to > now:
        return
    present_one = prices_in_force(now=now).filter(provider=price.provider, model=price.model).first()
    hint = f"; the present one is {present_one.pk}" if present_one else "; the model has no price now"
    raise PriceHasEnded(f"This price ended at {price.effective_to.isoformat()}{hint}.")


def _check_end(*, price: ModelPrice, changed: bool, now: datetime) -> None:
    if not changed:
        return
    later = _neighbours(price=price).filter(effective_from__gt=price.effective_from).first()
    if price.effective_to is not None and price.effective_to <= now:
        raise _bad("effective_to", "is past; delete the price to end it now")
    if later and (price.effective_to is None or price.effective_to > later.effective_from):
        raise _bad("effective_to", f"lies behind {later.effective_from.isoformat()}, where price {later.pk} begins")


def _make_room(*, price: ModelPrice, actor: Actor, reason: str, now: datetime) -> None:
    rows = list(_neighbours(price=price).select_for_update())
    before = next((row for row in reversed(rows) if row.effective_from <= price.effective_from), None)
    after = next((row for row in rows if row.effective_from > price.effective_from), None)
    if after:
        price.effective_to = price.effective_to or after.effective_from
        if price.effective_to > after.effective_from:
            raise _bad("effective_to", f"lies behind {after.effective_from.isoformat()}, where price {after.pk} begins")
    if before is None or (before.effective_to is not None and before.effective_to <= price.effective_from):
        return
    if before.effective_from == price.effective_from:
        raise _second(before)
    if before.effective_to is not None and before.effective_to <= now:
        raise _bad("effective_from", f"lies in the time of price {before.pk}, which is history")
    _end(price=before, at=price.effective_from, actor=actor, reason=reason, now=now)


def _neighbours(*, price: ModelPrice) -> QuerySet[ModelPrice]:
    rows = ModelPrice.objects.filter(provider=price.provider, model=price.model).exclude(pk=price.pk)
    return rows.order_by("effective_from")


def _bad(name: str, detail: str) -> BadPricePeriod:
    return BadPricePeriod(f"{name} {detail}.", errors=[field(name, detail)])


def _remember_end(*, price: ModelPrice, now: datetime) -> None:
    """Keep sync_prices from bringing the model back, where a list ever priced it."""
    if _of_model(ModelPrice.history.all(), price=price).filter(source__in=LIST_SOURCES).exists():
        key = ended_key(provider=price.provider, model=price.model)
        LoadedFact.objects.get_or_create(kind=ENDED_PRICE, key=key, defaults={"loaded_at": now})


def _forget_end(*, price: ModelPrice) -> None:
    LoadedFact.objects.filter(kind=ENDED_PRICE, key=ended_key(provider=price.provider, model=price.model)).delete()


def _of_model(rows: QuerySet[Any], *, price: ModelPrice) -> QuerySet[Any]:
    # In any letter case, as sync_prices compares them.
    return rows.filter(provider=price.provider, model__iexact=price.model)


def _second(price: ModelPrice) -> Conflict:
    detail = f"Price {price.pk} of this model begins at that instant already."
    return Conflict(detail, errors=[field(name, detail, code="conflict") for name in IDENTITY])


def _take_back(*, price: ModelPrice, actor: Actor, reason: str, now: datetime) -> None:
    before = _neighbours(price=price).filter(effective_to=price.effective_from).first()
    end = price.effective_to
    stamp(instance=price, actor=actor, reason=reason, now=now)
    price.delete()
    if before:
        before.effective_to = end
        _save(price=before, actor=actor, reason=reason, now=now)


def _end(*, price: ModelPrice, at: datetime, actor: Actor, reason: str, now: datetime) -> None:
    price.effective_to = at
    _save(price=price, actor=actor, reason=reason, now=now)


def _save(*, price: ModelPrice, actor: Actor, reason: str, now: datetime) -> None:
    check_row(row=price)
    stamp(instance=price, actor=actor, reason=reason, now=now)
    price.save()
