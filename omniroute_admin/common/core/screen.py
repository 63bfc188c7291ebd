"""Values that every screen is made of: moments, states and sentences, ready to be set (SPEC 5). Pure."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import msgspec

from omniroute_admin.common.core.words import age_text, clock_text, until_text


class Moment(msgspec.Struct, frozen=True):
    """An instant told twice: a countdown or an age, which the browser goes on counting, and the clock.

    `iso` is UTC. `tick` is `in` or `ago`: which way the words count.
    """

    iso: str
    clock: str
    words: str
    tick: str


class Glance(msgspec.Struct, frozen=True):
    """When and where a screen is looked at: every time on it is told from here."""

    now: datetime
    zone: ZoneInfo

    @property
    def zone_name(self) -> str:
        """Return the IANA name of the zone, as a screen names it."""
        return self.zone.key

    def until(self, at: datetime) -> Moment:
        """Return an instant to come, with its countdown."""
        return self._moment(at, words=until_text(at=at, now=self.now), tick="in")

    def ago(self, at: datetime) -> Moment:
        """Return an instant gone by, with its age."""
        return self._moment(at, words=age_text(at=at, now=self.now), tick="ago")

    def in_zone(self, zone_name: str) -> "Glance":
        """Return the same glance in another zone: a budget window is told in its own (M3)."""
        return Glance(now=self.now, zone=ZoneInfo(zone_name))

    def _moment(self, at: datetime, *, words: str, tick: str) -> Moment:
        clock = clock_text(at=at, now=self.now, zone=self.zone)
        return Moment(iso=iso_text(at), clock=clock, words=words, tick=tick)


def iso_text(at: datetime) -> str:
    """Return an aware instant as ISO 8601 in UTC with `Z`."""
    return at.isoformat().replace("+00:00", "Z")


def instant_of(text: str) -> datetime | None:
    """Return the instant that an address names in UTC; None for what is none."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo is not None and at.utcoffset() == timedelta(0) else None


class StateWord(msgspec.Struct, frozen=True):
    """A state as it is always shown: shape, word and colour together."""

    key: str
    word: str
    shape: str
    tone: str


class Segment(msgspec.Struct, frozen=True):
    """A piece of a sentence: its text and how it is set.

    `kind` is ``, `strong`, `code`, `serving`, `clock`, `tick`, `label` or `short`; of the last two `whole` is the name
    in full.
    """

    text: str
    kind: str = ""
    iso: str = ""
    tick: str = ""
    whole: str = ""


def text_of(segments: tuple[Segment, ...]) -> str:
    """Return a sentence as plain text."""
    return "".join(segment.text for segment in segments)


def moment_segments(moment: Moment, *, zone_name: str = "") -> tuple[Segment, ...]:
    """Return the clock of a moment, with its zone where given, and the countdown in brackets."""
    clock = f"{moment.clock} {zone_name}".strip()
    return (
        Segment(text=clock, kind="clock", iso=moment.iso),
        Segment(text=" ("),
        Segment(text=moment.words, kind="tick", iso=moment.iso, tick=moment.tick),
        Segment(text=")"),
    )
