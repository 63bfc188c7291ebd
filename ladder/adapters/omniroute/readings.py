"""The newest snapshots of one connection as readings."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from ladder.adapters.omniroute.cache import CachedWindow, CacheEntry
from ladder.adapters.omniroute.codex import CodexState
from ladder.adapters.omniroute.fields import OddValue, SkippedRow, percent_left, problem, read_instant, read_percent
from ladder.adapters.omniroute.snapshots import CLOCK_TOLERANCE, TABLE, SnapshotRow
from ladder.adapters.omniroute.values import ImportedConnection, ImportedReading, ImportProblem
from ladder.adapters.omniroute.window_names import WindowName, name_window
from ladder.core.values import Combine, ReadingStatus

# Rows of one fetch lie within milliseconds, two fetches at least a minute apart.
_ONE_FETCH = timedelta(seconds=60)
_UNKNOWN_WINDOW = CachedWindow(unlimited=False, has_no_total=False)


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """One window with its name and its reading; the steps below pass these on."""

    name: WindowName
    observed_at: datetime
    remaining_percent: Decimal | None
    unlimited: bool
    is_exhausted: bool
    reset_at: datetime | None


def read_readings(
    *,
    connection: ImportedConnection,
    rows: Iterable[SnapshotRow],
    cached: CacheEntry | None,
    codex: CodexState | None,
    now: datetime,
) -> tuple[list[ImportedReading], list[ImportProblem]]:
    """The last reading of each window of `connection`, each window name once, and what was odd."""
    reader = _Reader(connection=connection, cached=cached, now=now)
    windows = reader.of_last_fetch(reader.newest_of_each_key(reader.windows(rows)))
    windows = reader.with_codex_state(windows=windows, codex=codex)
    readings = [reader.reading(window=window, combine=combine) for window, combine in reader.combined(windows)]
    return sorted(readings, key=lambda reading: reading.window), reader.problems


class _Reader:
    """Reads the rows of one connection step by step; what is odd goes to `problems`."""

    def __init__(self, *, connection: ImportedConnection, cached: CacheEntry | None, now: datetime) -> None:
        self.connection = connection
        self.cached = cached
        self.now = now
        self.problems: list[ImportProblem] = []

    def windows(self, rows: Iterable[SnapshotRow]) -> Iterator[Window]:
        """Every row that can be read at all."""
        for place, row in enumerate(rows, start=1):
            name = name_window(provider=self.connection.provider, raw=row.window_key)
            try:
                yield self._window(row=row, name=name)
            except SkippedRow as skipped:
                self._report(name.canonical if name else f"window {place}", skipped.code, skipped.detail)

    def _window(self, *, row: SnapshotRow, name: WindowName | None) -> Window:
        if name is None:
            raise SkippedRow(code="bad_window", detail="The window has no usable name; skipped.")
        if not self._is_own(row.provider):
            raise SkippedRow(code="provider_mismatch", detail="The snapshot names another provider; skipped.")
        if name.kind == "balance":
            # Credits are spent past the plan and paid for. As a window beside the plan's they
            # would make a used-up plan look usable (SPEC Q6), and the request would be billed.
            raise SkippedRow(code="not_a_plan_window", detail="A credit balance is no window of the plan; skipped.")
        cached = self._cached(row=row, observed_at=self._observed_at(row.created_at))
        remaining = None if cached.unlimited else self._remaining(row=row, name=name, cached=cached)
        return Window(
            name=name,
            observed_at=self._observed_at(row.created_at),
            remaining_percent=remaining,
            unlimited=cached.unlimited,
            # The flag is about the connection: 1 on every row of a fetch in which every window
            # was empty. Only beside a zero does it say something about this window.
            is_exhausted=remaining == 0 and row.is_exhausted == 1,
            reset_at=self._reset_at(raw=row.next_reset_at, key=name.canonical),
        )

    def _is_own(self, provider: object) -> bool:
        return isinstance(provider, str) and provider.strip().lower() == self.connection.provider

    def _observed_at(self, raw: object) -> datetime:
        try:
            instant = read_instant(raw)
        except OddValue as odd:
            raise SkippedRow(code="bad_instant", detail=f"created_at {odd}; skipped.") from odd
        if instant is None:
            raise SkippedRow(code="bad_instant", detail="created_at is empty; skipped.")
        if instant > self.now + CLOCK_TOLERANCE:
            raise SkippedRow(code="from_the_future", detail="created_at lies in the future; skipped.")
        return instant

    def _cached(self, *, row: SnapshotRow, observed_at: datetime) -> CachedWindow:
        """What the cache knows of this window; an entry of an older fetch knows nothing of it."""
        if self.cached is None or self.cached.fetched_at < observed_at - _ONE_FETCH:
            return _UNKNOWN_WINDOW
        return self.cached.windows.get(row.window_key, _UNKNOWN_WINDOW)

    def _remaining(self, *, row: SnapshotRow, name: WindowName, cached: CachedWindow) -> Decimal | None:
        """Percent remaining; None, and so "unknown", where the file does not really say."""
        try:
            remaining = read_percent(row.remaining_percentage)
        except OddValue as odd:
            self._report(name.canonical, "bad_percent", f"{odd}; taken over as unknown.")
            return None
        if remaining == 0 and cached.has_no_total:
            self._report(name.canonical, "no_total", "0 % of a total of 0 says nothing; taken over as unknown.")
            return None
        return remaining

    def _reset_at(self, *, raw: object, key: str) -> datetime | None:
        try:
            return read_instant(raw)
        except OddValue as odd:
            self._report(key, "bad_instant", f"next_reset_at {odd}; taken over without a reset.")
            return None

    def newest_of_each_key(self, windows: Iterable[Window]) -> list[Window]:
        """One window per key: keys that differ in case or blanks only are one window."""
        newest: dict[str, Window] = {}
        for window in windows:
            key = window.name.canonical
            if key in newest:
                self._report(key, "duplicate_window", "The same window in two spellings; the newer one was taken.")
            if key not in newest or window.observed_at > newest[key].observed_at:
                newest[key] = window
        return list(newest.values())

    def of_last_fetch(self, windows: list[Window]) -> list[Window]:
        """Only the windows of the newest fetch.

        One that the last fetch no longer had is no longer reported, and must not count (SPEC Q6);
        taken over it would stay unverified for good and keep the plan out.
        """
        oldest = max((window.observed_at for window in windows), default=self.now) - _ONE_FETCH
        for window in windows:
            if window.observed_at < oldest:
                self._report(window.name.canonical, "window_not_reported", "Not in the last fetch any more; skipped.")
        return [window for window in windows if window.observed_at >= oldest]

    def with_codex_state(self, *, windows: list[Window], codex: CodexState | None) -> list[Window]:
        """Put the state that came with codex's last answer in place of an older snapshot."""
        if codex is None or codex.scope not in {None, "codex"}:
            return windows
        try:
            updated_at = self._observed_at(codex.updated_at)
        except SkippedRow:
            return windows
        state = {window.name.window: window for window in self._codex_windows(codex=codex, observed_at=updated_at)}
        snapshots = {window.name.window: window for window in windows}
        newer = {
            name: window
            for name, window in state.items()
            if name not in snapshots or snapshots[name].observed_at < updated_at
        }
        return list((snapshots | newer).values())

    def _codex_windows(self, *, codex: CodexState, observed_at: datetime) -> Iterator[Window]:
        """The windows whose usage and limit are numbers, the limit above zero."""
        for raw in codex.windows:
            remaining = percent_left(used=raw.usage, limit=raw.limit)
            if remaining is not None:
                yield Window(
                    name=WindowName(raw.window, raw.window, None, "plan", None),
                    observed_at=observed_at,
                    remaining_percent=remaining,
                    unlimited=False,
                    is_exhausted=False,
                    reset_at=self._reset_at(raw=raw.reset_at, key=raw.window),
                )

    def combined(self, windows: list[Window]) -> Iterator[tuple[Window, Combine]]:
        """Give each window a name of its own, and say how it joins the others.

        Two keys that would get one name both stay: the later one keeps its own key as name. A
        bonus pack and the plan window it adds to are a pool, of which one suffices (SPEC Q6).
        There is one pool per connection, so a second pack is left out: pooled with the first it
        could hide that its own plan window is used up.
        """
        packs = sorted(window.name.canonical for window in windows if window.name.kind == "bonus")
        for extra in packs[1:]:
            self._report(extra, "second_bonus", "A second bonus pack cannot be combined; skipped.")
        kept = [window for window in windows if window.name.canonical not in packs[1:]]
        pooled = {
            name for window in kept if window.name.adds_to for name in (window.name.canonical, window.name.adds_to)
        }
        for window in self._uniquely_named(kept):
            yield window, Combine.POOL if window.name.canonical in pooled else Combine.LIMIT

    def _uniquely_named(self, windows: list[Window]) -> Iterator[Window]:
        """A key that is its own name comes first, so that falling back to the key is always free."""
        taken: set[str] = set()
        for window in sorted(windows, key=lambda w: (w.name.window != w.name.canonical, w.name.canonical)):
            name = window.name
            if name.window in taken:
                self._report(name.canonical, "window_name_taken", "Another window has this name; kept under its key.")
                name = name._replace(window=name.canonical)
            taken.add(name.window)
            yield msgspec.structs.replace(window, name=name)

    def reading(self, *, window: Window, combine: Combine) -> ImportedReading:
        """The finished value."""
        return ImportedReading(
            connection_id=self.connection.connection_id,
            provider=self.connection.provider,
            window=window.name.window,
            remaining_percent=window.remaining_percent,
            unlimited=window.unlimited,
            status=_status(window),
            reset_at=window.reset_at,
            observed_at=window.observed_at,
            combine=combine,
            model=window.name.model,
        )

    def _report(self, window: str, code: str, detail: str) -> None:
        key = f"{self.connection.connection_id}/{window}"
        self.problems.append(problem(table=TABLE, key=key, code=code, detail=detail))


def _status(window: Window) -> ReadingStatus:
    if window.is_exhausted:
        return ReadingStatus.EXHAUSTED
    is_unknown = window.remaining_percent is None and not window.unlimited
    return ReadingStatus.UNKNOWN if is_unknown else ReadingStatus.SAFE
