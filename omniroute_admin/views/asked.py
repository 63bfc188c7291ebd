"""What the address of the audit page asks for (SPEC 5, 7); words it does not know are left out."""

from datetime import date, datetime, timedelta
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

import msgspec
from django.http import QueryDict

from ladder.views.paging import page_number
from omniroute_admin.common.core.axis import day_start
from omniroute_admin.common.core.changes import ACTS
from omniroute_admin.common.core.screen import instant_of, iso_text
from omniroute_admin.common.kinds import all_kinds
from omniroute_admin.common.selectors.history import Act, Asked

_LONGEST = 200
_TEXTS = ("who", "what", "reason")
_DAYS = ("from", "to")


class AuditAsked(msgspec.Struct, frozen=True, kw_only=True):
    """The filters as they stand in the address: kinds, texts and days by name, each known and well-formed; the page."""

    kinds: tuple[str, ...]
    act: str
    texts: dict[str, str]
    days: dict[str, date]
    page: int
    at: datetime | None = None

    @property
    def instant(self) -> str:
        """Return the one instant that is asked for as the address has it, empty for any."""
        return iso_text(self.at) if self.at else ""

    @property
    def is_filtered(self) -> bool:
        """Tell whether any filter is set."""
        return bool(self.pairs)

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return the filters as pairs of a query string, always in one order."""
        texts = [(name, self.texts[name]) for name in _TEXTS if self.texts[name]]
        days = [(name, self.days[name].isoformat()) for name in _DAYS if name in self.days]
        act = [("act", self.act)] if self.act else []
        at = [("at", self.instant)] if self.at else []
        return [*(("kind", kind) for kind in self.kinds), *texts, *act, *days, *at]

    def query(self, *, page: int = 1) -> str:
        """Return the query string of the filters, with a page where it is not the first."""
        return urlencode([*self.pairs, *([("page", str(page))] if page > 1 else [])])

    def asked(self, zone: ZoneInfo) -> Asked:
        """Return the same for the history; a day is one of the zone, the last one included."""
        since, last = self.days.get("from"), self.days.get("to")
        return Asked(
            kinds=self.kinds,
            act=self.act,
            who=self.texts["who"],
            what=self.texts["what"],
            reason=self.texts["reason"],
            since=None if since is None else day_start(day=since, zone=zone),
            until=None if last is None else day_start(day=last + timedelta(days=1), zone=zone),
            at=self.at,
        )

    def query_of_act(self, act: Act) -> str:
        """Return the query string of every change of one act that these filters leave."""
        entry = act.entry
        return msgspec.structs.replace(self, kinds=(entry.kind,), at=entry.at).query()


def audit_asked_of(query: QueryDict) -> AuditAsked:
    """Return what a query string asks for."""
    named = set(query.getlist("kind"))
    days = {name: _day_of(query.get(name, "")) for name in _DAYS}
    return AuditAsked(
        kinds=tuple(kind.key for kind in all_kinds() if kind.key in named),
        act=query.get("act", "") if query.get("act", "") in ACTS else "",
        texts={name: query.get(name, "").replace("\x00", "").strip()[:_LONGEST] for name in _TEXTS},
        days={name: day for name, day in days.items() if day is not None},
        page=page_number(query.get("page", "1")),
        at=instant_of(query.get("at", "")),
    )


def _day_of(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    # The ends of the calendar have no midnight in every zone.
    return day if date.min + timedelta(days=2) < day < date.max - timedelta(days=2) else None
