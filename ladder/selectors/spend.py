"""Where the money went: the ledger summed by rung, provider, connection and model (SPEC 5, Spend; M4, M5).

Every sum is made of the same rows by the same instants as the budgets' own spend: of an original and its corrections
only the claim that counts is in it, at the original's instant, however late it was reported.

Each function makes a constant number of queries. Call it inside `read_snapshot()`, so that usage which settles a hold
between two of them is neither left out nor counted twice.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import reduce
from operator import or_
from typing import Any

import msgspec
from django.db.models import BigIntegerField, Case, Count, F, Q, QuerySet, Sum, Value, When

from ladder.core.money import Span
from ladder.core.spend.columns import SpendTotals, total_of
from ladder.core.values import PAID_RUNGS, MoneyKind, Rung
from ladder.mapping import rung_named
from ladder.models import Connection, LedgerSum, SpendHold, UsageEvent
from omniroute_admin.common.fields import MicroUsdField

Groups = dict[tuple[Any, ...], SpendTotals]

Spans = Mapping[Rung, Span]
"""A stretch of time for each rung."""

_NOTHING = Decimal(0)


class SpendBy(StrEnum):
    """What a line of spend stands for."""

    RUNG = "rung"
    PROVIDER = "provider"
    CONNECTION = "connection"
    MODEL = "model"


class SpendFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events and holds are looked at; None is all. Providers are canonical, models exact."""

    rungs: Collection[Rung] | None = None
    providers: Collection[str] | None = None
    connection_ids: Collection[str] | None = None
    models: Collection[str] | None = None

    def condition(self) -> Q:
        """Return the filter of rows of the ledger, or of holds."""
        # Every rung is named, as the index begins with the kind of money and the rung.
        wanted = Q(rung__in=[rung.word for rung in (Rung if self.rungs is None else self.rungs)])
        names = {
            "connection__provider__in": self.providers,
            "connection__connection_id__in": self.connection_ids,
            "model__in": self.models,
        }
        return wanted & Q(**{name: list(values) for name, values in names.items() if values is not None})


EVERYTHING = SpendFilter()


class SpentConnection(msgspec.Struct, frozen=True):
    """A connection as the books know it; one that was deleted stays in them (SPEC 3)."""

    key: int
    connection_id: str
    provider: str
    label: str
    deleted_at: datetime | None


class SpendLine(msgspec.Struct, frozen=True):
    """One line: what it stands for (None: not asked for) and its totals."""

    totals: SpendTotals
    rung: Rung | None = None
    provider: str | None = None
    connection: SpentConnection | None = None
    model: str | None = None


class SpendPage(msgspec.Struct, frozen=True):
    """Some lines, of how many they are, and the totals of all of them."""

    lines: Sequence[SpendLine]
    count: int
    totals: SpendTotals


_COLUMNS: dict[SpendBy, str] = {
    SpendBy.RUNG: "rung",
    SpendBy.PROVIDER: "connection__provider",
    SpendBy.CONNECTION: "connection_id",
    SpendBy.MODEL: "model",
}
_NAMES: dict[str, Callable[[SpendLine], Any]] = {
    "rung": lambda line: -1 if line.rung is None else line.rung,
    "provider": lambda line: line.provider or "",
    "connection": lambda line: (line.connection.connection_id, line.connection.key) if line.connection else ("", 0),
    "model": lambda line: line.model or "",
}
_AMOUNTS = ("spent_usd", *SpendTotals.__struct_fields__)
SPEND_ORDERS = tuple(sign + name for name in (*_NAMES, *_AMOUNTS) for sign in ("", "-"))
"""By what lines can be ordered; a minus is "largest first"."""


def read_spend_lines(
    *,
    by: Collection[SpendBy],
    start: datetime,
    end: datetime,
    now: datetime,
    among: SpendFilter = EVERYTHING,
    order: str = "-spent_usd",
    limit: int | None = None,
    offset: int = 0,
    spans: Spans | None = None,
) -> SpendPage:
    """Sum what happened in [start, end), one line for each group that has an event or an active hold.

    Two queries, and one more for the names of connections. Where `spans` are given, of each rung only what happened in
    its own stretch of [start, end).

    `by` names what is told apart, in any combination; nothing is one line. Holds are those that act at `now`, and
    are told only where [start, end) includes `now`. Lines that `order` leaves equal are ordered by their names.

    Raises:
        ValueError: `order` is none of SPEND_ORDERS.
    """
    if order not in SPEND_ORDERS:
        raise ValueError(f"Spend is ordered by one of {', '.join(SPEND_ORDERS)}.")
    # A connection has one provider: it needs not be told apart beside it.
    asked = [one for one in SpendBy if one in by and not (one is SpendBy.PROVIDER and SpendBy.CONNECTION in by)]
    columns = [_COLUMNS[one] for one in asked]
    happened = among.condition() & happened_in(start=start, end=end, spans=spans)
    groups = read_groups(happened=happened, columns=columns)
    if start <= now < end:
        _add_holds(groups, read_held(among=among, columns=columns, now=now))
    told = _read_connections(asked, groups)
    made = [_line(asked, names, totals, told) for names, totals in groups.items()]
    lines = _ordered([_with_provider(line) for line in made] if SpendBy.PROVIDER in by else made, order)
    stop = None if limit is None else offset + limit
    return SpendPage(lines[offset:stop], len(lines), total_of(groups.values()))


def happened_in(*, start: datetime, end: datetime, spans: Spans | None = None) -> Q:
    """Return the condition of rows that happened in [start, end), of each rung in its own stretch where given."""
    inside = Q(booked_at__gte=start, booked_at__lt=end)
    if spans is None:
        return inside
    own = [Q(rung=rung.word, booked_at__gte=since, booked_at__lt=until) for rung, (since, until) in spans.items()]
    return inside & reduce(or_, own, Q(pk__in=[]))


def read_groups(*, happened: Q, columns: Sequence[str], extra: Mapping[str, Any] | None = None) -> Groups:
    """Sum the rows of the ledger that a condition names, by columns (with `extra` annotated ones); one query.

    Old rows that are kept as sums stand in them as before.
    """
    # Every kind of money is named too, for the index. A part needs something to be grouped by.
    named = happened & Q(money_kind__in=list(MoneyKind))
    grouped = columns or ["rung"]
    parts = [
        rows.annotate(**(extra or {})).order_by().values(*grouped).annotate(**sums).values_list(*grouped, *sums)
        for rows, sums in ((UsageEvent.objects.filter(named), _SUMS), (LedgerSum.objects.filter(named), _FOLDED))
    ]
    groups: Groups = {} if columns else {(): SpendTotals()}
    for row in parts[0].union(parts[1], all=True):
        names = tuple(row[: len(columns)])
        totals = _totals(dict(zip(_SUMS, row[len(grouped) :], strict=True)))
        groups[names] = groups[names] + totals if names in groups else totals
    return groups


def read_held(*, among: SpendFilter, columns: Sequence[str], now: datetime) -> dict[tuple[Any, ...], Decimal]:
    """Sum the holds that act at `now`, by columns; one query. On rungs 0 to 2 nothing is reserved (M8)."""
    acting = Q(rung__in=[rung.word for rung in PAID_RUNGS], released_at=None, settled_by=None, expires_at__gt=now)
    rows = SpendHold.objects.filter(among.condition(), acting)
    return {names: sums["held"] or _NOTHING for names, sums in _grouped(rows, columns, {"held": Sum("amount_usd")})}


def _grouped(
    rows: QuerySet[Any, Any], columns: Sequence[str], sums: Mapping[str, Any]
) -> Iterator[tuple[tuple[Any, ...], Mapping[str, Any]]]:
    """Yield the names of each group and its sums; without columns all rows are one group, if it is an empty one."""
    rows = rows.order_by()
    found = rows.values(*columns).annotate(**sums) if columns else [rows.aggregate(**sums)]
    for row in found:
        yield tuple(row[column] for column in columns), row


# What is only estimated of the claim that counts, as the change that each row makes of it: a row's sum is a difference
# too. A row that took an estimate's place takes that away, which is its full cost less its difference.
_ESTIMATED = Case(
    When(is_estimated=True, estimated_change=1, then=F("booked_cost")),
    When(is_estimated=True, estimated_change=0, then=F("booked_usd")),
    When(is_estimated=False, estimated_change=-1, then=F("booked_usd") - F("booked_cost")),
    default=Value(0, output_field=BigIntegerField()),
    output_field=MicroUsdField(),
)
_SUMS = {
    **{f"{kind}_sum": Sum("booked_usd", filter=Q(money_kind=kind.value)) for kind in MoneyKind},
    "estimated_sum": Sum(_ESTIMATED, filter=Q(money_kind=MoneyKind.BUDGET.value)),
    "event_count": Count("pk", filter=Q(original__isnull=True)),
    "estimated_count": Sum("estimated_change"),
}
_FOLDED = {
    **{name: one for name, one in _SUMS.items() if name.endswith("_sum")},
    "estimated_sum": Sum("estimated_usd", filter=Q(money_kind=MoneyKind.BUDGET.value)),
    "event_count": Sum("folded_events"),
    "estimated_count": Sum("folded_estimates"),
}
"""The same of old rows that are kept as sums."""


def _totals(sums: Mapping[str, Any]) -> SpendTotals:
    estimated = sums["estimated_sum"] or _NOTHING
    return SpendTotals(
        settled_usd=(sums["budget_sum"] or _NOTHING) - estimated,
        estimated_usd=estimated,
        overage_usd=sums["overage_sum"] or _NOTHING,
        plan_value_usd=sums["plan_sum"] or _NOTHING,
        events=int(sums["event_count"]),
        estimated_events=int(sums["estimated_count"] or 0),
    )


def _add_holds(groups: Groups, held: Mapping[tuple[Any, ...], Decimal]) -> None:
    """Put what is held into groups; a group may have nothing else."""
    for names, amount in held.items():
        groups[names] = groups.get(names, SpendTotals()) + SpendTotals(held_usd=amount)


def _read_connections(asked: Sequence[SpendBy], groups: Groups) -> Mapping[int, SpentConnection]:
    """Read who the connections in groups are, once for each and not for each of their rows; one query, or none."""
    if SpendBy.CONNECTION not in asked:
        return {}
    place = asked.index(SpendBy.CONNECTION)
    fields = ("pk", "connection_id", "provider", "label", "deleted_at")
    rows = Connection.objects.filter(pk__in={names[place] for names in groups}).order_by().values_list(*fields)
    return {row[0]: SpentConnection(*row) for row in rows}


def _line(
    asked: Sequence[SpendBy], names: Sequence[Any], totals: SpendTotals, told: Mapping[int, SpentConnection]
) -> SpendLine:
    said: dict[str, Any] = {one.value: name for one, name in zip(asked, names, strict=True)}
    if SpendBy.RUNG in asked:
        said["rung"] = rung_named(said["rung"])
    if SpendBy.CONNECTION in asked:
        said["connection"] = told[said["connection"]]
    return SpendLine(totals, **said)


def _with_provider(line: SpendLine) -> SpendLine:
    if line.connection is None:
        return line
    return msgspec.structs.replace(line, provider=line.connection.provider)


def _ordered(lines: Iterable[SpendLine], order: str) -> list[SpendLine]:
    by_name = sorted(lines, key=lambda line: tuple(name(line) for name in _NAMES.values()))
    column = order.removeprefix("-")
    key = _NAMES.get(column) or (lambda line: getattr(line.totals, column))
    return sorted(by_name, key=key, reverse=order.startswith("-"))
