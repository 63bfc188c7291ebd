"""Windows and readings of a body, held in memory while it is judged and written in a constant number of queries."""

from collections.abc import Collection, Iterable
from datetime import datetime
from decimal import Decimal
from typing import Any

import msgspec
from django.db.models import QuerySet

from ladder.core.timeline.trail import is_in_band, window_seen
from ladder.core.values import Combine, LadderSettings, ReadingStatus, Window
from ladder.mapping import age_from
from ladder.models import QuotaReading, QuotaWindow
from ladder.services.reading_items import Observation
from omniroute_admin.common.selectors.compiled import Compiled
from omniroute_admin.common.services.statements import insert_many, quoted, update_many

_OBSERVED = ("observed_at", "received_at", "remaining_percent", "unlimited", "status", "reset_at")
_SCOPE = ("combine", "model")
_STATE = (*_OBSERVED, *_SCOPE, "is_reported", "named_at", "missing_at")
_OWNED_BY_OPERATOR = {"is_muted": False, "exit_cutoff_percent": None}

MOST_WINDOWS = 64
"""Most windows of one connection that its reporter sends: the work of judging a connection is bounded."""

WindowKey = tuple[int, str]


class WindowState(msgspec.Struct):
    """A window's telemetry columns while a body is judged; `id` None is a window not stored yet."""

    connection_id: int
    window: str
    id: int | None = None
    observed_at: datetime | None = None
    received_at: datetime | None = None
    remaining_percent: Decimal | None = None
    unlimited: bool = False
    status: ReadingStatus = ReadingStatus.UNKNOWN
    reset_at: datetime | None = None
    combine: Combine = Combine.LIMIT
    model: str | None = None
    is_reported: bool = True
    named_at: datetime | None = None
    missing_at: datetime | None = None
    is_changed: bool = False
    """A decision may come out differently: the revision has to move."""
    is_dirty: bool = False
    """Something is to be written, which no decision looks at."""
    is_muted: bool = False
    exit_cutoff_percent: Decimal | None = None
    was: Window | None = None
    """What it was before the body, the held state aside; None where it was not there."""

    def take(self, observation: Observation) -> None:
        """Make the observation current. What it does not say of `combine` and `model` stays; a reset does not (Q1)."""
        self.remember()
        for name in _OBSERVED:
            setattr(self, name, getattr(observation, name))
        self.combine = observation.combine or self.combine
        if observation.model is not msgspec.UNSET:
            self.model = observation.model
        self.is_changed = True

    def remember(self) -> None:
        """Remember what the window is, once, before it is changed."""
        if self.was is None and self.id is not None:
            self.was = self.value()

    def value(self) -> Window:
        """Return the window as a value, the held state aside."""
        return Window(
            window=self.window,
            observed_at=age_from(observed_at=self.observed_at, received_at=self.received_at),
            remaining_percent=self.remaining_percent,
            unlimited=self.unlimited,
            status=self.status,
            reset_at=self.reset_at,
            combine=self.combine,
            model=self.model,
            is_muted=self.is_muted,
            is_reported=self.is_reported,
            exit_cutoff_percent=self.exit_cutoff_percent,
        )

    def is_restless(self, *, settings: LadderSettings, now: datetime) -> bool:
        """Tell whether the window may look another way than before the body: where it lies in the band, it may."""
        present = self.value()
        was = present if self.was is None and self.id is not None else self.was
        if was is None:
            return True
        first = window_seen(window=was, settings=settings, now=now)
        is_other = present is not was and window_seen(window=present, settings=settings, now=now) != first
        return is_other or any(is_in_band(window=one, settings=settings) for one in (was, present))


class ReadingStore:
    """The windows of some connections and the readings at some instants; `save()` writes what changed."""

    def __init__(self, *, connection_keys: Collection[int], instants: Collection[datetime]) -> None:
        """Load both, in one query each."""
        self._windows: dict[WindowKey, WindowState] = {}
        self._by_connection: dict[int, list[WindowState]] = {}
        for state in _load_windows(connection_keys):
            self._add(state)
        self._readings = _load_readings(connection_keys, instants)
        self._changed_readings: dict[tuple[WindowKey, datetime], Observation] = {}

    @property
    def is_changed(self) -> bool:
        """Tell whether anything is to be written."""
        return bool(self._changed_readings) or any(state.is_changed for state in self._windows.values())

    def restless(self, *, settings: LadderSettings, now: datetime) -> set[int]:
        """Return the connections that may look another way than before the body, by windows or by held states."""
        touched = {key for key, _ in self._changed_readings}
        touched |= {key for key, state in self._windows.items() if state.is_changed}
        states = (self._windows[key] for key in touched)
        return {state.connection_id for state in states if state.is_restless(settings=settings, now=now)}

    def windows_of(self, connection_key: int) -> list[WindowState]:
        """Return the windows of one connection."""
        return self._by_connection.get(connection_key, [])

    def find(self, key: WindowKey) -> WindowState | None:
        """Return a window, or None where it is not there yet."""
        return self._windows.get(key)

    def has_room(self, key: WindowKey) -> bool:
        """Tell whether a window counts already, or may: a connection has at most MOST_WINDOWS that count."""
        window = self._windows.get(key)
        if window is not None and window.is_reported:
            return True
        return sum(1 for one in self.windows_of(key[0]) if one.is_reported) < MOST_WINDOWS

    def window(self, key: WindowKey) -> WindowState:
        """Return a window, made where it is not there yet."""
        return self._windows.get(key) or self._add(WindowState(connection_id=key[0], window=key[1]))

    def _add(self, state: WindowState) -> WindowState:
        self._windows[state.connection_id, state.window] = state
        self._by_connection.setdefault(state.connection_id, []).append(state)
        return state

    def reading(self, key: WindowKey, observed_at: datetime) -> Observation | None:
        """Return what is known of a window at one instant."""
        return self._readings.get((key, observed_at))

    def keep(self, key: WindowKey, observation: Observation) -> None:
        """Put an observation into the history, in place of another one of the same instant."""
        place = (key, observation.observed_at)
        self._readings[place] = self._changed_readings[place] = observation

    def save(self) -> None:
        """Write windows, then readings."""
        changed = [state for state in self._windows.values() if state.is_changed or state.is_dirty]
        _update_windows([state for state in changed if state.id is not None])
        new = [state for state in changed if state.id is None]
        if new:
            _insert_windows(new)
            self._find_new_ids({state.connection_id for state in new})
        _write_readings((self._id_of(key), reading) for (key, _), reading in self._changed_readings.items())

    def _find_new_ids(self, connection_keys: Collection[int]) -> None:
        rows = QuotaWindow.objects.filter(connection__in=connection_keys).values_list("connection_id", "window", "id")
        for connection_key, window, window_id in rows:
            self._windows[connection_key, window].id = window_id

    def _id_of(self, key: WindowKey) -> int:
        window_id = self._windows[key].id
        if window_id is None:
            raise RuntimeError("a window that was written has no id")
        return window_id


_LOADED = ("connection_id", "window", "id", *_STATE, *_OWNED_BY_OPERATOR)


def _windows_of(connection_keys: Collection[int]) -> "QuerySet[QuotaWindow, Any]":
    return QuotaWindow.objects.filter(connection__in=connection_keys).order_by("id").values_list(*_LOADED)


def _readings_of(connection_keys: Collection[int], instants: Collection[datetime]) -> "QuerySet[QuotaReading, Any]":
    names = ("window__connection_id", "window__window", *_OBSERVED, "raw")
    rows = QuotaReading.objects.filter(window__connection__in=connection_keys, observed_at__in=instants)
    return rows.order_by().values_list(*names)


_WINDOWS = Compiled(_windows_of)
_READINGS = Compiled(_readings_of)


def _load_windows(connection_keys: Collection[int]) -> Iterable[WindowState]:
    for row in _WINDOWS.rows(list(connection_keys)):
        state = WindowState(**dict(zip(_LOADED, row, strict=True)))
        state.status, state.combine = ReadingStatus(state.status), Combine(state.combine)
        yield state


def _load_readings(
    connection_keys: Collection[int], instants: Collection[datetime]
) -> dict[tuple[WindowKey, datetime], Observation]:
    found = {}
    for connection_key, window, *values in _READINGS.rows_at(list(connection_keys), list(instants)):
        fields: dict[str, Any] = dict(zip((*_OBSERVED, "raw"), values, strict=True))
        fields["status"] = ReadingStatus(fields["status"])
        observation = Observation(window=window, combine=None, model=msgspec.UNSET, **fields)
        found[(connection_key, window), observation.observed_at] = observation
    return found


def _update_windows(states: Iterable[WindowState]) -> None:
    rows = ([getattr(state, name) for name in (*_STATE, "id")] for state in states)
    update_many(model=QuotaWindow, columns=_STATE, rows=rows)


def _insert_windows(states: Iterable[WindowState]) -> None:
    rows = (
        [state.connection_id, state.window, *(getattr(state, name) for name in _STATE), *_OWNED_BY_OPERATOR.values()]
        for state in states
    )
    insert_many(model=QuotaWindow, columns=("connection", "window", *_STATE, *_OWNED_BY_OPERATOR), rows=rows)


def _write_readings(readings: Iterable[tuple[int, Observation]]) -> None:
    names = (*_OBSERVED, "raw")
    replaced = ", ".join(f"{quoted(name)} = EXCLUDED.{quoted(name)}" for name in names)
    insert_many(
        model=QuotaReading,
        columns=("window", *names),
        rows=([key, *(getattr(reading, name) for name in names)] for key, reading in readings),
        on_conflict=f"ON CONFLICT (window_id, observed_at) DO UPDATE SET {replaced}",
    )
