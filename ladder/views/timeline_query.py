"""What the address of the timeline asks for (SPEC 5, 6); what it does not know is left out."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec
from django.http import QueryDict

from ladder.core.timeline.causes import Cause
from ladder.core.values import Rung
from ladder.selectors.timeline_events import EventFilter
from ladder.views.paging import page_number
from omniroute_admin.common.core.axis import day_named, days_range
from omniroute_admin.common.core.screen import instant_of, iso_text

RANGES = {"24h": 1, "7d": 7}
DEFAULT_RANGE = "24h"
OLDEST_DAYS = 366
"""So far back the page goes; how far back there is anything, `KEEP_HISTORY_DAYS` says."""

CAUSES = tuple(cause.value for cause in Cause)
_RUNGS = frozenset(rung.word for rung in Rung)
_LONGEST_NAME = 260


class Asked(msgspec.Struct, frozen=True):
    """What is asked for: the range and, where it is not the latest, the local day that it ends with; which events."""

    range: str = DEFAULT_RANGE
    day: date | None = None
    events: EventFilter = EventFilter()
    page: int = 1

    @property
    def days(self) -> int:
        """Return how many days the range is long."""
        return RANGES[self.range]

    @property
    def is_filtered(self) -> bool:
        """Tell whether any filter of events is set."""
        return self.events != EventFilter()


def asked_of(query: QueryDict, *, today: date) -> Asked:
    """Return what a query string asks for; `today` is the local day."""
    chosen = query.get("range", "")
    return Asked(
        range=chosen if chosen in RANGES else DEFAULT_RANGE,
        day=_day_of(query.get("day", ""), today),
        events=EventFilter(
            cause=_known(query.get("cause", ""), CAUSES),
            rung=_known(query.get("rung", ""), _RUNGS),
            connection=query.get("connection", "").replace("\0", "").strip()[:_LONGEST_NAME],
            at=instant_of(query.get("at", "")),
        ),
        page=page_number(query.get("page", "")),
    )


def _known(word: str, words: Iterable[str]) -> str:
    return word if word in words else ""


def _day_of(text: str, today: date) -> date | None:
    day = day_named(text)
    return day if day is not None and today - timedelta(days=OLDEST_DAYS) <= day <= today else None


def span_of(asked: Asked, *, now: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """Return what the chart spans, [start, end): the hours up to now, or whole local days, of 23 or 25 hours too."""
    if asked.day is None:
        return now - timedelta(days=asked.days), now
    return days_range(first=asked.day - timedelta(days=asked.days - 1), last=asked.day, zone=zone)


def query_of(asked: Asked, **changed: object) -> str:
    """Return the query string of what is asked, with some of it changed; the shortest that says the same."""
    one = msgspec.structs.replace(asked, **changed)
    pairs = (
        ("range", one.range if one.range != DEFAULT_RANGE else ""),
        ("day", one.day.isoformat() if one.day else ""),
        *filter_pairs(one),
        ("page", str(one.page) if one.page > 1 else ""),
    )
    return urlencode([(name, value) for name, value in pairs if value])


def filter_pairs(asked: Asked) -> tuple[tuple[str, str], ...]:
    """Return the filters of events as pairs of a query string."""
    one = asked.events
    at = iso_text(one.at) if one.at else ""
    return ("cause", one.cause), ("connection", one.connection), ("rung", one.rung), ("at", at)


def earlier(asked: Asked, *, today: date) -> date | None:
    """Return the day that the range before ends with, None where the page does not go back so far."""
    day = (asked.day or today) - timedelta(days=asked.days)
    return day if day >= today - timedelta(days=OLDEST_DAYS) else None


def later(asked: Asked, *, today: date) -> date | None:
    """Return the day that the range after ends with, None where that is the latest."""
    day = None if asked.day is None else asked.day + timedelta(days=asked.days)
    return None if day is None or day > today else day
