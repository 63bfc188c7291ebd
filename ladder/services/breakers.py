"""Record what routers say of their providers' circuit breakers (SPEC 4, Breakers; C)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from billing_catalog.models import ProviderAlias
from ladder.models import Breaker
from ladder.services.answers import Rejected, TelemetryAnswer
from ladder.services.live_connections import Refusal
from ladder.services.reading_items import (
    OLDEST,
    Instant,
    RefusedReadingError,
    UnreadableItem,
    instant_of,
    instant_seen,
    is_given,
)
from ladder.services.trail import remember_breakers
from omniroute_admin.common.core.names import canonical_provider, is_provider
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write
from omniroute_admin.common.services.statements import insert_many, update_many, write_history

OPEN_WITHOUT_END = timedelta(seconds=60)
"""How long a breaker stays open, from its report on, whose end the router does not say: about as long as routers wait
before they let a request through to try. Another report prolongs it."""

REASON = "reported by a router"
_NULL = msgspec.Raw(b"null")


class BreakerItem(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One item of `events`; the end stays as it was written, so that it is judged exactly."""

    provider: str
    state: Literal["open", "closed"]
    occurred_at: Instant
    open_until: msgspec.Raw = _NULL


class BreakerReport(msgspec.Struct, frozen=True):
    """What an item says, its provider's name canonical; `open_until` None is closed."""

    provider: str
    reported_at: datetime
    open_until: datetime | None


Item = BreakerItem | UnreadableItem
_Judged = BreakerReport | Refusal


def record_breakers(*, items: Sequence[Item], actor: Actor, now: datetime) -> TelemetryAnswer:
    """Record a body of breaker reports received at `now` and count what became of each.

    Per provider the newest report stands, in whatever order they come; of one instant open goes before closed and the
    longer before the shorter. An older one is superseded. `open` without an end lasts for OPEN_WITHOUT_END. A constant
    number of queries, however long the body.
    """
    with deciding_write() as write:
        aliases = dict(ProviderAlias.objects.values_list("alias", "provider"))
        judged = [_judge(item, aliases, now) for item in items]
        reports = [one for one in judged if isinstance(one, BreakerReport)]
        rows = _lock({one.provider for one in reports})
        before = {name: _acts_until(row, now) for name, row in rows.items()}
        stored = {name: row.open_until for name, row in rows.items()}
        new = {name for name, row in rows.items() if row.reported_at == OLDEST}
        outcomes = [_record(rows[one.provider], one) for one in reports]
        accepted = {one.provider for one, word in zip(reports, outcomes, strict=True) if word == "accepted"}
        _save([row for name, row in rows.items() if name in accepted], new=new, actor=actor, now=now)
        write.changed = before != {name: _acts_until(row, now) for name, row in rows.items()}
        changed = {name: until for name, until in stored.items() if until != rows[name].open_until}
        remember_breakers(breakers=changed, now=now)
    rejected = [Rejected(index, one.code, one.detail) for index, one in enumerate(judged) if isinstance(one, Refusal)]
    counts = {word: outcomes.count(word) for word in ("accepted", "duplicates", "superseded")}
    return TelemetryAnswer(**counts, rejected=tuple(rejected))


def _judge(item: Item, aliases: Mapping[str, str], now: datetime) -> _Judged:
    """Return what an item says, or why it is refused; a provider that nobody knows yet is none the worse."""
    if isinstance(item, UnreadableItem):
        return Refusal("invalid_item", item.detail)
    provider = canonical_provider(raw=item.provider, aliases=aliases)
    if not is_provider(provider):
        return Refusal("invalid_item", "provider: give lower-case letters, digits and ._:@+-")
    try:
        reported_at = instant_seen(name="occurred_at", instant=item.occurred_at, now=now)
        return BreakerReport(provider, reported_at, _open_until(item, reported_at))
    except RefusedReadingError as refused:
        return Refusal(refused.code, refused.detail)


def _open_until(item: BreakerItem, reported_at: datetime) -> datetime | None:
    if item.state == "closed":
        if is_given(item.open_until):
            raise RefusedReadingError("conflicting_values", "open_until: a closed breaker has no end")
        return None
    if not is_given(item.open_until):
        return reported_at + OPEN_WITHOUT_END
    return instant_of(name="open_until", raw=item.open_until)


def _lock(providers: Collection[str]) -> dict[str, Breaker]:
    """Return the breakers of providers, locked in a fixed order up to the end of the transaction.

    One that is not there is made first, as old as can be, so that two processes that both miss it meet at its row.
    """
    names = sorted(providers)
    insert_many(
        model=Breaker,
        columns=("provider", "open_until", "reported_at"),
        rows=([name, None, OLDEST] for name in names),
        on_conflict="ON CONFLICT (provider) DO NOTHING",
    )
    rows = Breaker.objects.filter(provider__in=names).order_by("provider").select_for_update()
    return {row.provider: row for row in rows}


def _record(row: Breaker, report: BreakerReport) -> str:
    """Let a report act on its provider's breaker and return the word it is counted under."""
    known, said = _place(row), _place(report)
    if said <= known:
        return "duplicates" if said == known else "superseded"
    row.reported_at, row.open_until = report.reported_at, report.open_until
    return "accepted"


def _place(one: Breaker | BreakerReport) -> tuple[datetime, datetime]:
    return one.reported_at, one.open_until or OLDEST


def _acts_until(row: Breaker, now: datetime) -> datetime | None:
    """Return until when a breaker is open, None where it is closed."""
    return row.open_until if row.open_until is not None and row.open_until > now else None


def _save(rows: Collection[Breaker], *, new: Collection[str], actor: Actor, now: datetime) -> None:
    """Write breakers and their history."""
    values = ([row.open_until, row.reported_at, row.pk] for row in rows)
    update_many(model=Breaker, columns=("open_until", "reported_at"), rows=values)
    for kind, is_new in (("~", False), ("+", True)):
        of_kind = [row for row in rows if (row.provider in new) is is_new]
        write_history(model=Breaker, rows=of_kind, kind=kind, actor=actor, reason=REASON, now=now)
