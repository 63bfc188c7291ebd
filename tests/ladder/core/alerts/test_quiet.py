"""Quiet hours: on the clocks of their zone, over midnight, over a change of the clocks, over days without a gap."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ladder.core.alerts.quiet import QuietHours, quiet_until
from ladder.core.values import Weekday

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = QuietHours(time(22), time(7), BERLIN)
WEEKEND = QuietHours(time(0), time(0), BERLIN, frozenset({Weekday.SATURDAY, Weekday.SUNDAY}))
FRIDAY_NIGHT = QuietHours(time(22), time(7), BERLIN, frozenset({Weekday.FRIDAY}))


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("quiet", "at", "until"),
    [
        (None, "2026-08-22 12:00", None),
        (NIGHT, "2026-08-22 19:59", None),
        (NIGHT, "2026-08-22 20:00", "2026-08-23 05:00"),
        (NIGHT, "2026-08-23 04:59", "2026-08-23 05:00"),
        (NIGHT, "2026-08-23 05:00", None),
        # The night in which the clocks go back is an hour longer, the one in which they go on an hour shorter.
        (NIGHT, "2026-10-24 20:00", "2026-10-25 06:00"),
        (NIGHT, "2026-03-28 21:00", "2026-03-29 05:00"),
        # Saturday the 22nd and Sunday are one stretch.
        (WEEKEND, "2026-08-21 21:59", None),
        (WEEKEND, "2026-08-21 22:00", "2026-08-23 22:00"),
        (WEEKEND, "2026-08-23 22:00", None),
        # The day is that on which the hours begin.
        (FRIDAY_NIGHT, "2026-08-22 04:00", "2026-08-22 05:00"),
        (FRIDAY_NIGHT, "2026-08-22 20:30", None),
    ],
)
def test_quiet_hours_end_where_their_zones_clock_says(quiet: QuietHours | None, at: str, until: str | None) -> None:
    assert quiet_until(quiet=quiet, at=utc(at)) == (None if until is None else utc(until))


TIMES = st.times().map(lambda one: one.replace(second=0, microsecond=0, tzinfo=None))
QUIET = st.builds(
    QuietHours, TIMES, TIMES, st.sampled_from([BERLIN, ZoneInfo("UTC"), ZoneInfo("Pacific/Apia")]),
    st.frozensets(st.sampled_from(list(Weekday)), min_size=1, max_size=6),
)  # fmt: skip
INSTANTS = st.integers(0, 366 * 24 * 60).map(lambda minutes: utc("2026-01-01 00:00") + timedelta(minutes=minutes))


@given(QUIET, INSTANTS)
def test_the_end_is_ahead_and_not_quiet_itself(quiet: QuietHours, at: datetime) -> None:
    end = quiet_until(quiet=quiet, at=at)
    if end is not None:
        assert end > at
        assert quiet_until(quiet=quiet, at=end) is None
        assert quiet_until(quiet=quiet, at=end - timedelta(microseconds=1)) == end
