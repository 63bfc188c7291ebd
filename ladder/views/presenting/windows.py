"""Quota windows as cards: verdict, percent left and used, pace, and what is said of them (SPEC 5, 2)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.judge import Account
from ladder.core.places import STATE_OF_CODE
from ladder.core.quota import QuotaJudgement, exit_cutoff, judge_window, reentry_floor
from ladder.core.readings.pace import FULL, Life, Pace, Point, pace_of, points_within, thin_points
from ladder.core.reasons import Code
from ladder.core.values import Combine, LadderSettings, QuotaVerdict, ReadingStatus, Window
from ladder.views.presenting.sparks import Spark, spark_of
from ladder.views.presenting.values import STATES
from omniroute_admin.common.core.screen import Glance, Moment, Segment, StateWord, moment_segments, text_of
from omniroute_admin.common.core.words import percent_text, span_text

NUMBERS_SHOWN = 12
_TENTH = Decimal("0.1")
Sentence = tuple[Segment, ...]


class NumberRow(msgspec.Struct, frozen=True):
    """One point of a drawing as a row of its table."""

    iso: str
    clock: str
    left: str


class WindowCard(msgspec.Struct, frozen=True):
    """One quota window. `left` and `used` are words; `spark` None where there is no life to draw."""

    window: str
    state: StateWord
    is_binding: bool
    is_muted: bool
    is_reported: bool
    left: str
    used: str
    spark: Spark | None
    spark_words: str
    numbers: tuple[NumberRow, ...]
    sentence: Sentence
    notes: tuple[Sentence, ...]
    cutoff: str
    has_own_cutoff: bool
    read: Moment | None


class Past(msgspec.Struct, frozen=True):
    """What is known of a window's past: its life, the readings that are drawn, and since when it is used up."""

    life: Life | None = None
    points: tuple[Point, ...] = ()
    used_up_at: datetime | None = None


def window_cards(
    *,
    windows: Sequence[Window],
    judged: QuotaJudgement,
    pasts: Mapping[str, Past],
    settings: LadderSettings,
    glance: Glance,
) -> tuple[WindowCard, ...]:
    """Return the cards of windows, in their order."""
    return tuple(
        _card(
            window=one,
            is_binding=one.window == judged.window,
            past=pasts.get(one.window, Past()),
            settings=settings,
            glance=glance,
        )
        for one in windows
    )


def _card(*, window: Window, is_binding: bool, past: Past, settings: LadderSettings, glance: Glance) -> WindowCard:
    code = judge_window(window=window, settings=settings, now=glance.now).code
    state = STATES[STATE_OF_CODE[code].value if code else "usable"]
    cutoff = exit_cutoff(window=window, settings=settings)
    pace, points = _pace(window=window, code=code, past=past, cutoff=cutoff, now=glance.now)
    spark = None
    if past.life is not None and not window.unlimited and code is not Code.RESET_PENDING:
        is_out = code is Code.QUOTA_EXHAUSTED
        spark = spark_of(life=past.life, points=points, pace=pace, cutoff=cutoff, is_used_up=is_out, glance=glance)
    sentence = _sentence(window=window, code=code, past=past, pace=pace, settings=settings, glance=glance)
    left, used = _left(window, code)
    return WindowCard(
        window=window.window,
        state=state,
        is_binding=is_binding,
        is_muted=window.is_muted,
        is_reported=window.is_reported,
        left=left,
        used=used,
        spark=spark,
        spark_words=f"{window.window}: {left}. {text_of(sentence)}",
        numbers=_numbers(points, glance) if spark else (),
        sentence=sentence,
        notes=_notes(window),
        cutoff=percent_text(cutoff),
        has_own_cutoff=window.exit_cutoff_percent is not None,
        read=glance.ago(window.observed_at) if window.observed_at else None,
    )


def _pace(
    *, window: Window, code: Code | None, past: Past, cutoff: Decimal, now: datetime
) -> tuple[Pace | None, list[Point]]:
    """Return the pace at the newest reading and the points of the line, that reading being its last."""
    if past.life is None or window.unlimited or window.observed_at is None:
        return None, []
    points = points_within(points=past.points, life=past.life, now=now)
    left = Decimal(0) if window.status is ReadingStatus.EXHAUSTED else window.remaining_percent
    if left is None:
        return None, points
    newest = Point(window.observed_at, left, window.reset_at)
    points = [*(one for one in points if one.at < newest.at), newest]
    is_over = code in {Code.QUOTA_EXHAUSTED, Code.RESET_PENDING, Code.QUOTA_UNVERIFIED}
    pace = None if is_over else pace_of(life=past.life, newest=newest, cutoff=cutoff, now=now)
    return pace, points_within(points=points, life=past.life, now=now)


def _left(window: Window, code: Code | None) -> tuple[str, str]:
    """Return what is left and what is used, in words; a number that counts no more is told as what it was (SPEC 5)."""
    if code is Code.RESET_PENDING or window.observed_at is None:
        return "unknown", ""
    was = "was " if code in {Code.QUOTA_STALE, Code.QUOTA_UNVERIFIED} else ""
    if window.unlimited:
        return f"{was}unlimited", ""
    if window.remaining_percent is None:
        return ("said exhausted" if window.status is ReadingStatus.EXHAUSTED else "unknown"), ""
    left = window.remaining_percent
    return f"{was}{percent_text(left)} left", f"{percent_text(FULL - left)} used"


def _numbers(points: Sequence[Point], glance: Glance) -> tuple[NumberRow, ...]:
    moments = [(glance.ago(one.at), one.left) for one in thin_points(points=points, at_most=NUMBERS_SHOWN)]
    return tuple(NumberRow(moment.iso, moment.clock, percent_text(left)) for moment, left in moments)


def _sentence(
    *, window: Window, code: Code | None, past: Past, pace: Pace | None, settings: LadderSettings, glance: Glance
) -> Sentence:
    """Return what a card says of its window: why it is what it is, its pace, its reset."""
    parts: list[Sentence] = []
    if code is Code.QUOTA_EXHAUSTED:
        parts.append(_used_up(window, past, glance))
    if code is Code.HELD_FOR_REENTRY:
        floor = percent_text(reentry_floor(window=window, settings=settings))
        parts.append(
            (_strong(f"Held until above {floor}."), _plain(" It dropped out and was not seen above it since."))
        )
    if code is Code.QUOTA_STALE:
        parts.append((_strong(f"Older than {settings.max_reading_age_seconds} s: not verified."),))
    if code is Code.RESET_PENDING and window.reset_at:
        parts.append(
            (
                _plain("Its reset has passed, "),
                *_clocked(glance, window.reset_at),
                _plain(": it waits for a reading after it."),
            )
        )
    if code is Code.QUOTA_UNVERIFIED:
        parts.append((_plain(_unverified_words(window)),))
    if pace is not None and past.life is not None:
        parts.append(_pace_words(pace=pace, life=past.life, glance=glance))
    elif code is None or code in {Code.HELD_FOR_REENTRY, Code.QUOTA_STALE}:
        parts.append(_without_pace(window, past, glance))
    return _joined(parts)


def _joined(parts: Sequence[Sentence]) -> Sentence:
    segments: list[Segment] = []
    for part in parts:
        segments += [_plain(" "), *part] if segments else part
    return tuple(segments)


def _plain(text: str) -> Segment:
    return Segment(text=text)


def _strong(text: str) -> Segment:
    return Segment(text=text, kind="strong")


def _clocked(glance: Glance, at: datetime) -> Sentence:
    moment = glance.until(at)
    return (Segment(text=moment.clock, kind="clock", iso=moment.iso),)


def _used_up(window: Window, past: Past, glance: Glance) -> Sentence:
    if window.status is ReadingStatus.EXHAUSTED:
        head: Sentence = (_plain("Said to be exhausted"),)
    else:
        head = (_plain("Used up"),)
    if past.used_up_at is not None:
        head = (*head, _plain(" since "), *_clocked(glance, past.used_up_at))
        early = (window.reset_at - past.used_up_at).total_seconds() if window.reset_at else 0
        head = (*head, _plain(f", {span_text(early)} before its reset")) if early > 0 else head
    if window.reset_at is None:
        return (*head, _plain(". No reset is known."))
    return (*head, _plain(". Resets "), *moment_segments(glance.until(window.reset_at)), _plain("."))


def _unverified_words(window: Window) -> str:
    if window.observed_at is None:
        return "Never read: send readings with POST /api/v1/telemetry/readings."
    if window.status is ReadingStatus.UNKNOWN:
        return "Its reporter said that it does not know."
    return "Its reading gave no number."


def ahead_words(ahead: Decimal) -> str:
    """Return how use compares with even pace, to a tenth of a percent."""
    tenths = ahead.quantize(_TENTH)
    if not tenths:
        return "On even pace."
    return f"{percent_text(abs(tenths))} {'ahead of' if tenths > 0 else 'behind'} even pace."


def _pace_words(*, pace: Pace, life: Life, glance: Glance) -> Sentence:
    reset = glance.until(life.reset_at)
    if pace.cutoff_at is not None:
        early = span_text((life.reset_at - pace.cutoff_at).total_seconds())
        return (
            _strong(ahead_words(pace.ahead)),
            _plain(" Reaches the cutoff "),
            *_clocked(glance, pace.cutoff_at),
            _plain(f", {early} before its reset "),
            *moment_segments(reset),
            _plain("."),
        )
    return (
        _strong(ahead_words(pace.ahead)),
        _plain(f" At this pace {percent_text(pace.left_at_reset.quantize(_TENTH))} is left at its reset "),
        *moment_segments(reset),
        _plain("."),
    )


def _without_pace(window: Window, past: Past, glance: Glance) -> Sentence:
    if window.unlimited:
        return (_plain("Unlimited, so it has no pace."),)
    if window.reset_at is None:
        return (_plain("No reset is known, so no pace is told."),)
    resets = (_plain("Resets "), *moment_segments(glance.until(window.reset_at)))
    if past.life is None:
        return (*resets, _plain(". How long it lasts is not known, so no pace is told."))
    return (*resets, _plain(". Its reading is older than this window, so no pace is told."))


def _notes(window: Window) -> tuple[Sentence, ...]:
    """Return what limits a window's say: its model, its kind, that it does not count (Q6)."""
    notes: list[Sentence] = []
    if window.is_muted:
        notes.append((_strong("Muted:"), _plain(" it does not count.")))
    if not window.is_reported:
        notes.append((_strong("No longer reported:"), _plain(" it does not count.")))
    if window.model is not None:
        notes.append((_plain("Counts only for "), Segment(text=window.model, kind="code"), _plain(".")))
    if window.combine is Combine.POOL:
        notes.append((_plain("One of the pool windows: one of them usable is enough."),))
    return tuple(notes)


def windows_words(*, account: Account, judged: QuotaJudgement) -> str:
    """Return in a few words how the windows of a connection combine (Q6)."""
    counting = [one for one in account.connection.windows if one.is_reported and not one.is_muted]
    limits = sum(one.combine is Combine.LIMIT for one in counting)
    pools = len(counting) - limits
    if not counting:
        return "none counts, so its quota is not verified"
    words = []
    if limits:
        words.append("it must be usable" if limits == 1 else f"all {limits} must be usable")
    if pools:
        words.append(f"of {pools} pool window{'s' if pools > 1 else ''} one must be usable")
    return ", and ".join(words)


def is_binding_told(judged: QuotaJudgement) -> bool:
    """Tell whether one window keeps the connection from being usable."""
    return judged.window is not None and judged.verdict is not QuotaVerdict.USABLE
