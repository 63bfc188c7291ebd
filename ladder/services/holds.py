"""Reserve money before a request, and give it back (SPEC 4, Holds; M2, M8)."""

from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from billing_catalog.selectors.past import PastReader
from ladder.core.money import closed_spans, hold_fits, is_off, is_spent, left_usd
from ladder.core.spend.ledger import stood
from ladder.core.values import PAID_RUNGS, Budget, Hold, Rung
from ladder.mapping import rung_named
from ladder.models import Connection, SpendHold
from ladder.selectors.ledger import read_budgets
from ladder.services.budgets import gates_of, keep_past, lock_budgets, read_gates, read_past
from ladder.services.clashes import write_looking_again
from ladder.services.hold_rows import HoldEnd, end_of_hold
from ladder.services.live_connections import Refusal, lock_connections
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.core.numbers import usd_text
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.errors import BadRequest, Conflict, NotFound, ProductError, field
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import DecidingWrite, deciding_write


class HoldRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be reserved: USD, on the rung that the pair has now, for `ttl_seconds`."""

    hold_id: str
    connection_id: str
    provider: str | None
    model: str
    estimated_cost_usd: Decimal
    ttl_seconds: int


class Granted(msgspec.Struct, frozen=True):
    """A hold that was granted, now or before; `left_usd` None is no limit, or a rung on which nothing is reserved."""

    hold_id: str
    rung: str
    expires_at: datetime
    left_usd: Decimal | None
    is_new: bool


def grant_hold(*, request: HoldRequest, actor: Actor, now: datetime) -> Granted:
    """Grant a hold; asked again with the same content it is the same hold as long as it acts.

    Raises:
        NotFound: `unknown_connection`.
        BadRequest: the provider is missing or another one.
        Conflict: `conflict` (the id is another hold's), `hold_ended` (this id's hold reserves nothing any more; with
            `ended`, `ended_at` and `settled_by`), `rung_disabled` or `budget_spent`, these with `left_usd`.
    """
    return write_looking_again(lambda write: _grant(request, write, actor, now))


def release_hold(*, hold_id: str, now: datetime) -> None:
    """Give back what a hold reserves; one that reserves nothing any more stays as it is.

    Raises:
        NotFound: there is no such hold.
    """
    with deciding_write() as write:
        write.changed = False
        row = SpendHold.objects.filter(hold_id=hold_id).first()
        if row is None:
            raise NotFound(f"There is no hold {hold_id!r}.")
        rungs = [rung_named(row.rung)]
        past = read_past(rows=lock_budgets(rungs=rungs), now=now)
        active = SpendHold.objects.filter(pk=row.pk, released_at=None, settled_by=None, expires_at__gt=now)
        write.shown = active.update(released_at=now) > 0
        gates = read_gates(rungs=rungs, now=now)
        if write.shown:
            keep_past(past=past, gates=gates, now=now)
        write.changed = gates_of(past=past, now=now) != gates


def _grant(request: HoldRequest, write: DecidingWrite, actor: Actor, now: datetime) -> Granted:
    write.changed = False
    connection, write.changed = _find_connection(request, actor, now)
    known = SpendHold.objects.select_related("connection", "settled_by").filter(hold_id=request.hold_id).first()
    if known is not None:
        return _again(known, request, connection, now)
    rung = _rung_of(request, connection, now)
    past = read_past(rows=lock_budgets(rungs=[rung]), now=now)
    before = past[rung][-1] if rung in past else Budget()
    _check(before, request.estimated_cost_usd, now)
    row = _insert(request, connection, rung, now)
    after = _with_hold(before, row) if rung in PAID_RUNGS else before
    write.shown = True
    gates = {rung: closed_spans(budget=after, now=now)} if rung in past else {}
    keep_past(past=past, gates=gates, now=now)
    write.changed |= gates_of(past=past, now=now) != gates
    return _granted(row, after, now, is_new=True)


def _insert(request: HoldRequest, connection: Connection, rung: Rung, now: datetime) -> SpendHold:
    return SpendHold.objects.create(
        hold_id=request.hold_id,
        connection=connection,
        model=request.model,
        rung=rung.word,
        amount_usd=request.estimated_cost_usd,
        created_at=now,
        expires_at=now + timedelta(seconds=request.ttl_seconds),
    )


def _with_hold(budget: Budget, row: SpendHold) -> Budget:
    return msgspec.structs.replace(budget, holds=(*budget.holds, Hold(row.amount_usd, row.expires_at)))


def _find_connection(request: HoldRequest, actor: Actor, now: datetime) -> tuple[Connection, bool]:
    """Return the live connection that is meant, and whether it became known only now (`noauth`, SPEC 1)."""
    connections = lock_connections(connection_ids=[request.connection_id])
    before = len(connections.keys)
    if request.connection_id == NOAUTH and request.provider is not None:
        connections.imply(providers=[request.provider], actor=actor, now=now)
    key = connections.find(connection_id=request.connection_id, provider=request.provider)
    if isinstance(key, Refusal):
        raise _refused(key)
    return Connection.objects.get(pk=key), len(connections.keys) > before


def _refused(refusal: Refusal) -> ProductError:
    name, _, detail = refusal.detail.partition(": ")
    error = field(name, detail, code=refusal.code)
    if refusal.code == "unknown_connection":
        return NotFound("There is no such connection.", code=refusal.code, errors=[error])
    return BadRequest("One field is not valid.", errors=[error])


def _again(row: SpendHold, request: HoldRequest, connection: Connection, now: datetime) -> Granted:
    ttl = timedelta(seconds=request.ttl_seconds)
    said = (connection.pk, request.model, request.estimated_cost_usd, ttl)
    if said != (row.connection.pk, row.model, row.amount_usd, row.expires_at - row.created_at):
        raise Conflict("This id is another hold's.")
    end = end_of_hold(row, now=now)
    if end is not None:
        raise _ended(end)
    return _granted(row, _budget_of(rung_named(row.rung), now), now, is_new=False)


def _ended(end: HoldEnd) -> Conflict:
    """Return the refusal of a hold that is over: a router that read it as granted would spend unreserved."""
    ways = {
        "settled": f"was settled by event {end.event_id!r}",
        "released": "was released",
        "expired": "expired",
    }
    at = iso_text(end.at)
    late = "" if end.how == "settled" or end.event_id is None else f" Event {end.event_id!r} was booked for it later."
    detail = f"This hold {ways[end.how]} at {at} and reserves nothing any more.{late} Ask again with a new hold_id."
    return Conflict(detail, code="hold_ended", ended=end.how, ended_at=at, settled_by=end.event_id)


def _rung_of(request: HoldRequest, connection: Connection, now: datetime) -> Rung:
    past = PastReader(now=now, only_present=True).of(providers=[connection.provider], models=[request.model])
    return stood(
        past=past,
        provider=connection.provider,
        connection_id=connection.connection_id,
        auth_type=connection.auth_type,
        model=request.model,
        at=now,
    ).rung


def _budget_of(rung: Rung, now: datetime) -> Budget:
    """Return the budget that a hold on a rung draws on; on rungs 0 to 2 nothing is reserved, so there is no limit."""
    return read_budgets(now=now, rungs=[rung])[rung] if rung in PAID_RUNGS else Budget()


def _check(budget: Budget, amount_usd: Decimal, now: datetime) -> None:
    left = usd_text(left_usd(budget=budget, at=now) or Decimal(0))
    if is_off(budget):
        raise Conflict("The budget of the rung is 0: the rung is off.", code="rung_disabled", left_usd=left)
    if is_spent(budget=budget, at=now) or not hold_fits(budget=budget, amount_usd=amount_usd, at=now):
        raise Conflict("Spend and holds would go past the budget of the rung.", code="budget_spent", left_usd=left)


def _granted(row: SpendHold, budget: Budget, now: datetime, *, is_new: bool) -> Granted:
    return Granted(row.hold_id, row.rung, row.expires_at, left_usd(budget=budget, at=now), is_new)
