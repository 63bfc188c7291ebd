"""Record what reporters saw of the quota windows (SPEC 4, Readings; Q1, Q5, Q6)."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from ladder.core.timeline.causes import Cause
from ladder.selectors.settings import read_settings
from ladder.services.answers import Rejected, TelemetryAnswer
from ladder.services.cooldowns import lift_quota_cooldowns
from ladder.services.live_connections import LiveConnections, Refusal, lock_connections
from ladder.services.reading_items import (
    MAX_AHEAD,
    OLDEST,
    Observation,
    ReadingItem,
    RefusedReadingError,
    UnreadableItem,
    observe,
    order_of,
)
from ladder.services.reading_store import MOST_WINDOWS, ReadingStore, WindowKey, WindowState
from ladder.services.trail import remember_accounts
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

BY_HAND = "by hand"
"""The window that an operator marks where a connection has none that counts."""

Item = ReadingItem | UnreadableItem
_Judged = tuple[WindowKey, Observation] | Refusal
_CROWDED = Refusal("too_many_windows", f"window: a connection has at most {MOST_WINDOWS} windows that are reported")
_WHOSE_NOAUTH = Refusal(
    "provider_required",
    "noauth means one connection only where the readings of the body name it with exactly one provider;"
    " send a body for each provider",
)


def record_readings(
    *,
    items: Sequence[Item],
    complete_for: Sequence[str],
    actor: Actor,
    now: datetime,
    cause: Cause = Cause.READING,
) -> TelemetryAnswer:
    """Record a body of readings received at `now` and count what became of each.

    The newest `observed_at` of a window is current; an older one goes to the history. `complete_for` names
    connections all of whose windows are in the body; one that is not known is rejected under the index that follows
    the last reading's (the number of readings plus its own place); `noauth` there is that of the one provider that
    the readings name it with. A connection has at most MOST_WINDOWS windows that are reported. Windows seen usable
    again lift the quota cooldown that an older report set (C3). A constant number of queries, however long the body.
    `cause` is what the timeline tells of it: an operator may say what a window is, too.
    """
    with deciding_write() as write:
        observed = [_observe(item, now) for item in items]
        named = {item.connection_id for item in items if item.connection_id is not None}
        connections = lock_connections(connection_ids=named.union(complete_for))
        connections.imply(providers=_keyless_paths(items, observed), actor=actor, now=now)
        judged = [_judge(item, one, connections) for item, one in zip(items, observed, strict=True)]
        instants = {one[1].observed_at for one in judged if not isinstance(one, Refusal)}
        store = ReadingStore(connection_keys=connections.keys, instants=instants)
        outcomes = [one if isinstance(one, Refusal) else _record(store, *one) for one in judged]
        _end_words_by_hand(store, judged)
        unknown = _complete(items=items, complete_for=complete_for, connections=connections, store=store, now=now)
        write.changed, write.touched = store.is_changed, connections.touched
        remember_accounts(keys=_maybe_flipping(store, now), cause=cause, now=now)
        store.save()
        if store.is_changed:
            lift_quota_cooldowns(connection_keys=connections.keys, actor=actor, now=now)
    rejected = [Rejected(at, one.code, one.detail) for at, one in enumerate(outcomes) if isinstance(one, Refusal)]
    counts = {word: outcomes.count(word) for word in ("accepted", "duplicates", "superseded")}
    return TelemetryAnswer(**counts, rejected=(*rejected, *unknown))


def _maybe_flipping(store: ReadingStore, now: datetime) -> set[int]:
    """Return the connections that may look another way after this body; the settings are read where any is written."""
    if not store.is_changed:
        return set()
    return store.restless(settings=read_settings(), now=now)


def _observe(item: Item, now: datetime) -> Observation | Refusal:
    if isinstance(item, UnreadableItem):
        return Refusal("invalid_item", item.detail)
    try:
        return observe(item=item, now=now)
    except RefusedReadingError as refused:
        return Refusal(refused.code, refused.detail)


def _keyless_paths(items: Sequence[Item], observed: Sequence[Observation | Refusal]) -> set[str]:
    """Return the providers, as written, whose keyless path a good item names."""
    return {
        item.provider
        for item, one in zip(items, observed, strict=True)
        if item.connection_id == NOAUTH and item.provider is not None and not isinstance(one, Refusal)
    }


def _judge(item: Item, observed: Observation | Refusal, connections: LiveConnections) -> _Judged:
    """Return the window that the item speaks of and what it says, or why it is refused."""
    if isinstance(observed, Refusal):
        return observed
    key = connections.find(connection_id=item.connection_id or "", provider=item.provider)
    return key if isinstance(key, Refusal) else ((key, observed.window), observed)


def _record(store: ReadingStore, key: WindowKey, new: Observation) -> str | Refusal:
    """Put one reading where it belongs and return the word it is counted under, or why there is no place for it."""
    if not store.has_room(key):
        return _CROWDED
    window, known = store.window(key), store.reading(key, new.observed_at)
    if known is not None:
        return _record_again(store, key, known, new)
    store.keep(key, new)
    if window.observed_at is not None and new.observed_at < window.observed_at:
        return "superseded"
    window.take(new)
    _settle_reported(window)
    return "accepted"


def _record_again(store: ReadingStore, key: WindowKey, known: Observation, new: Observation) -> str:
    """Record a second reading of one instant: the lower counts, and its age from the first time it was received."""
    if order_of(new) == order_of(known):
        return "duplicates"
    if order_of(new) > order_of(known):
        return "superseded"
    lower = msgspec.structs.replace(new, received_at=min(known.received_at, new.received_at))
    store.keep(key, lower)
    window = store.window(key)
    if window.observed_at != new.observed_at:
        return "superseded"
    window.take(lower)
    return "accepted"


def _end_words_by_hand(store: ReadingStore, judged: Iterable[_Judged]) -> None:
    """Let a window that an operator marked for want of another end with any newer reading of its connection."""
    for one in judged:
        if isinstance(one, Refusal):
            continue
        (connection_key, name), new = one
        word = store.find((connection_key, BY_HAND)) if name != BY_HAND else None
        if word is not None and word.observed_at is not None and word.observed_at < new.observed_at:
            word.is_dirty |= word.missing_at is None or word.missing_at < new.observed_at
            word.missing_at = _newest(word.missing_at, new.observed_at)
            _settle_reported(word)


def _complete(
    *,
    items: Sequence[Item],
    complete_for: Sequence[str],
    connections: LiveConnections,
    store: ReadingStore,
    now: datetime,
) -> list[Rejected]:
    """Let the windows that a complete list does not name stop counting, and those it names count (Q6)."""
    unknown, wanted = [], set()
    keyless = _keyless_provider(items, connections) if NOAUTH in complete_for else None
    for index, connection_id in enumerate(complete_for, start=len(items)):
        found: int | Refusal = _WHOSE_NOAUTH
        if connection_id != NOAUTH or keyless is not None:
            found = connections.find(connection_id=connection_id, provider=keyless if connection_id == NOAUTH else None)
        if isinstance(found, Refusal):
            unknown.append(Rejected(index, found.code, f"complete_for: {found.detail}"))
        else:
            wanted.add(found)
    by_connection = _items_by_connection(items, connections) if wanted else {}
    for connection_key in wanted:
        _complete_one(by_connection.get(connection_key, []), store.windows_of(connection_key), now)
    return unknown


def _keyless_provider(items: Iterable[Item], connections: LiveConnections) -> str | None:
    """Return the one provider that the readings name `noauth` with, or None where it is not one."""
    named = {connections.canonical(item.provider) for item in items if item.connection_id == NOAUTH and item.provider}
    return named.pop() if len(named) == 1 else None


def _items_by_connection(items: Iterable[Item], connections: LiveConnections) -> dict[int, list[Item]]:
    """Return the items of each connection, rejected ones included."""
    found: dict[int, list[Item]] = {}
    for item in items:
        if item.connection_id is not None:
            key = connections.find(connection_id=item.connection_id, provider=item.provider)
            if not isinstance(key, Refusal):
                found.setdefault(key, []).append(item)
    return found


def _complete_one(items: Sequence[Item], windows: Iterable[WindowState], now: datetime) -> None:
    """Apply a complete list, which is as new as its newest reading, or as `now` where it has none that can be read."""
    instants = [item.observed_at for item in items if item.observed_at is not None]
    said_at = max((one for one in instants if one - now <= MAX_AHEAD), default=now)
    said_at = max(said_at, OLDEST).astimezone(UTC)
    names = {item.window for item in items}
    for window in windows:
        before = (window.named_at, window.missing_at)
        if window.window not in names:
            window.missing_at = _newest(window.missing_at, said_at)
        elif window.observed_at is None or window.observed_at < said_at:
            window.named_at = _newest(window.named_at, said_at)
        window.is_dirty |= before != (window.named_at, window.missing_at)
        _settle_reported(window)


def _settle_reported(window: WindowState) -> None:
    """Work out whether the reporter still sends the window: it was seen or named after it was last missing."""
    seen_at = _newest(window.named_at, window.observed_at)
    is_reported = window.missing_at is None or (seen_at is not None and seen_at > window.missing_at)
    if is_reported != window.is_reported:
        window.remember()
        window.is_reported, window.is_changed = is_reported, True


def _newest(first: datetime | None, second: datetime | None) -> datetime | None:
    return max((one for one in (first, second) if one is not None), default=None)
