"""What the address of the spend page asks for (SPEC 5, 5); what it does not know is left out."""

from collections.abc import Collection
from datetime import date, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec
from django.http import QueryDict

from ladder.core.values import Rung
from ladder.selectors.spend import SPEND_ORDERS, SpendBy, SpendFilter
from ladder.views.paging import page_number
from omniroute_admin.common.core.axis import day_named, days_range

WINDOW, TODAY, MONTH, CUSTOM = "window", "today", "month", "custom"
PERIODS = {
    WINDOW: "Budget windows",
    TODAY: "Today",
    "7d": "7 days",
    "30d": "30 days",
    MONTH: "This month",
    CUSTOM: "From to",
}
"""The periods that can be chosen, each with its name; the first is that of who says nothing."""

_BACK = {TODAY: 0, "7d": 6, "30d": 29}
BY_WINDOW = "window"
BREAKDOWNS = {
    "rung": (SpendBy.RUNG,),
    "provider": (SpendBy.PROVIDER,),
    "connection": (SpendBy.CONNECTION,),
    "model": (SpendBy.MODEL,),
    "rung-connection-model": (SpendBy.RUNG, SpendBy.CONNECTION, SpendBy.MODEL),
    BY_WINDOW: (),
}
"""What a line of the breakdown stands for; those of windows are read in a way of their own."""

DEFAULT_BREAKDOWN = "connection"
DEFAULT_ORDER = "-spent_usd"
LONGEST_DAYS = 731
FIRST_DAY = date(2000, 1, 1)
_RUNGS = {rung.word: rung for rung in Rung}
_LONGEST_NAME = 260


class Asked(msgspec.Struct, frozen=True):
    """What is asked for; `complaint` says in words what of it could not be done."""

    period: str = WINDOW
    first: date | None = None
    last: date | None = None
    by: str = DEFAULT_BREAKDOWN
    order: str = DEFAULT_ORDER
    rung: str = ""
    provider: str = ""
    connection: str = ""
    model: str = ""
    page: int = 1
    events_page: int = 1
    complaint: str = ""

    @property
    def is_filtered(self) -> bool:
        """Tell whether any filter is set."""
        return bool(self.rung or self.provider or self.connection or self.model)

    @property
    def among(self) -> SpendFilter:
        """Return the filter of events and holds; a connection is named by its id, or as `provider/id`."""
        provider, slash, connection_id = self.connection.partition("/")
        providers = {name for name in (self.provider, provider if slash else "") if name}
        return SpendFilter(
            rungs=(_RUNGS[self.rung],) if self.rung else None,
            providers=_both(providers),
            connection_ids=(connection_id if slash else provider,) if self.connection else None,
            models=(self.model,) if self.model else None,
        )


def _both(names: Collection[str]) -> Collection[str] | None:
    """Return what fits all of these names: two different ones nothing does."""
    return None if not names else tuple(names) if len(names) == 1 else ()


def asked_of(query: QueryDict, *, today: date) -> Asked:
    """Return what a query string asks for; `today` is the local day."""
    period, first, last, complaint = _period(query, today)
    by, order = query.get("by", ""), query.get("order", "")
    return Asked(
        period=period,
        first=first,
        last=last,
        by=by if by in BREAKDOWNS else DEFAULT_BREAKDOWN,
        order=order if order in SPEND_ORDERS else DEFAULT_ORDER,
        rung=query.get("rung", "") if query.get("rung", "") in _RUNGS else "",
        provider=_name(query, "provider"),
        connection=_name(query, "connection"),
        model=_name(query, "model"),
        page=page_number(query.get("page", "")),
        events_page=page_number(query.get("events", "")),
        complaint=complaint,
    )


def _name(query: QueryDict, name: str) -> str:
    return query.get(name, "").replace("\0", "").strip()[:_LONGEST_NAME]


def _period(query: QueryDict, today: date) -> tuple[str, date | None, date | None, str]:
    period = query.get("period", "")
    if period in _BACK:
        return period, today - timedelta(days=_BACK[period]), today, ""
    if period == MONTH:
        return period, today.replace(day=1), today, ""
    if period != CUSTOM:
        return WINDOW, None, None, ""
    first, last = _day(query.get("from", "")), _day(query.get("to", ""))
    complaint = _complaint(first, last)
    return (WINDOW, None, None, complaint) if complaint else (CUSTOM, first, last, "")


def _day(text: str) -> date | None:
    day = day_named(text)
    return day if day is not None and FIRST_DAY <= day < date.max - timedelta(days=1) else None


def _complaint(first: date | None, last: date | None) -> str:
    if first is None or last is None:
        return "Give both days, from and to, as in 2026-08-01, from the year 2000 on."
    if last < first:
        return f"The days end ({last}) before they begin ({first})."
    if (last - first).days >= LONGEST_DAYS:
        return f"{(last - first).days + 1} days are too many: at most {LONGEST_DAYS}."
    return ""


def stretch_of(asked: Asked, *, zone: ZoneInfo) -> tuple[datetime, datetime] | None:
    """Return the whole local days that are asked for as [start, end); None is "the present window of each rung"."""
    if asked.first is None or asked.last is None:
        return None
    return days_range(first=asked.first, last=asked.last, zone=zone)


def query_of(asked: Asked, **changed: object) -> str:
    """Return the query string of what is asked, with some of it changed; the shortest that says the same."""
    one = msgspec.structs.replace(asked, **changed)
    pairs = [
        *period_pairs(one),
        ("by", one.by if one.by != DEFAULT_BREAKDOWN else ""),
        ("order", one.order if one.order != DEFAULT_ORDER else ""),
        *filter_pairs(one),
        ("page", str(one.page) if one.page > 1 else ""),
        ("events", str(one.events_page) if one.events_page > 1 else ""),
    ]
    return urlencode([(name, value) for name, value in pairs if value])


def period_pairs(asked: Asked) -> list[tuple[str, str]]:
    """Return the period as pairs of a query string."""
    days = [("from", str(asked.first)), ("to", str(asked.last))] if asked.period == CUSTOM else []
    return [("period", asked.period if asked.period != WINDOW else ""), *days]


def filter_pairs(asked: Asked) -> list[tuple[str, str]]:
    """Return the filters as pairs of a query string."""
    return [(name, getattr(asked, name)) for name in ("rung", "provider", "connection", "model")]
