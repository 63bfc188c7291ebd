"""Drawings and words of the connection page, from values (SPEC 5, 2)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

from ladder.core.readings.pace import Basis, Life, Pace, Point
from ladder.models import Cooldown
from ladder.views.presenting.cooldowns import cooldown_views
from ladder.views.presenting.sparks import Spark, spark_of
from ladder.views.presenting.windows import ahead_words
from omniroute_admin.common.core.screen import Glance

START = datetime(2026, 8, 27, 8, tzinfo=UTC)
LIFE = Life(START, START + timedelta(hours=10), Basis.NAME)
BERLIN = ZoneInfo("Europe/Berlin")


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def draw(
    *, now: float, points: tuple[tuple[float, str], ...] = (), pace: Pace | None = None, out: bool = False
) -> Spark:
    return spark_of(
        life=LIFE,
        points=[Point(at(hours), Decimal(left)) for hours, left in points],
        pace=pace,
        cutoff=Decimal(10),
        is_used_up=out,
        glance=Glance(now=at(now), zone=BERLIN),
    )


def test_time_runs_from_left_to_right_and_percent_from_bottom_to_top() -> None:
    spark = draw(now=5, points=((0, "100"), (5, "50"), (10, "0")))
    assert spark.real == "24,8 154,48 284,88"
    assert spark.area == "24,88 24,8 154,48 284,88 284,88"
    assert (spark.cut_y, spark.now_x) == ("80", "154")


def test_the_way_on_ends_at_the_cutoff_with_a_dot() -> None:
    pace = Pace(Decimal(60), Decimal(10), at(9), Decimal(0))
    spark = draw(now=4, points=((0, "100"), (4, "50")), pace=pace)
    assert spark.projected == "M128 48L258 80"
    assert spark.dot == ("258", "80")


def test_a_way_that_does_not_reach_the_cutoff_ends_at_the_reset() -> None:
    spark = draw(now=4, points=((0, "100"), (4, "80")), pace=Pace(Decimal(60), Decimal(-20), None, Decimal(50)))
    assert spark.projected == "M128 24L284 48"
    assert spark.dot is None


def test_what_is_used_up_stays_so_up_to_now() -> None:
    assert draw(now=8, points=((0, "100"), (6, "0")), out=True).real == "24,8 180,88 232,88"


@pytest.mark.parametrize(
    ("now", "label"),
    [
        (0.5, ("41", "12", "start")),
        (4, ("128", "103", "middle")),
        (6, ("184", "12", "start")),
        (9, ("254", "12", "end")),
        (9.9, ("", "", "")),
    ],
)
def test_the_word_now_runs_into_no_other(now: float, label: tuple[str, str, str]) -> None:
    spark = draw(now=now)
    assert (spark.now_label_x, spark.now_y, spark.now_anchor) == label
    assert spark.end_label.startswith("now · ") is (not spark.now_y)


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        ("18.4", "18.4 % ahead of even pace."),
        ("-12", "12 % behind even pace."),
        ("0.04", "On even pace."),
        ("-0.05", "On even pace."),
        ("0.06", "0.1 % ahead of even pace."),
    ],
)
def test_pace_is_told_to_a_tenth(ahead: str, words: str) -> None:
    assert ahead_words(Decimal(ahead)) == words


def told(**values: object) -> object:
    common = {"pk": 1, "cause": "quota", "reported_at": START, "set_by": "r"}
    glance = Glance(now=at(1), zone=BERLIN)
    return cooldown_views(cooldowns=[Cooldown(**common | values)], windows=(), glance=glance)


def test_what_was_cut_is_drawn_apart_from_what_acts() -> None:
    """C2."""
    (view,) = told(asked_until=at(10), effective_until=at(5))  # type: ignore[misc,attr-defined]
    bar = view.bar
    assert (bar.effective_width, bar.effective_x, bar.cut_width, bar.now_x) == ("176", "180", "176", "39.2")
    assert bar.words == "Cooldown from 10:00, asked until 20:00, effective until 15:00; now 11:00"
    assert view.is_clamped
    assert view.clamped_to == "the reset of its quota"


@pytest.mark.parametrize(
    ("values", "lifted_by"),
    [
        ({"cause": "auth", "asked_until": None, "effective_until": None}, "an operator only"),
        ({"cause": "rate_limit", "asked_until": at(2), "effective_until": at(2)}, "an operator only"),
        ({"asked_until": at(2), "effective_until": at(2)}, "a usable reading newer than the report, or an operator"),
    ],
)
def test_only_a_cooldown_about_quota_is_lifted_by_readings(values: dict[str, object], lifted_by: str) -> None:
    """C3."""
    (view,) = told(**values)  # type: ignore[misc,attr-defined]
    assert view.lifted_by == lifted_by
    assert not view.is_clamped


def test_a_cooldown_without_an_end_has_no_length_to_draw_and_one_that_is_over_is_not_told() -> None:
    (endless,) = told(asked_until=None, effective_until=None)  # type: ignore[misc,attr-defined]
    assert endless.bar is None
    assert told(asked_until=at(1), effective_until=at(1)) == ()
