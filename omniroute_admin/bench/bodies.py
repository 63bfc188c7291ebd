"""Bodies of requests, the same for the same seed. Nothing here needs Django."""

import itertools
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

Reader = tuple[str, str]
"""A connection and a window of it, of which readings are sent."""

Said = Literal["percents", "verdicts"]
"""What each reading changes: the percent alone, or whether the connection is usable."""

_LOW, _HIGH = 1, 60
_TICK = timedelta(microseconds=1)


def candidates(
    *, models: Mapping[str, Sequence[str]], connections: Mapping[str, Sequence[str]], count: int, each: int, seed: int
) -> list[dict[str, Any]]:
    """Return candidates whose every list of `each` connections is drawn anew: all distinct, where enough exist."""
    chance = random.Random(seed)  # noqa: S311 - sizes, no secret
    pairs = _pairs(models, count)
    return [_candidate(one, chance.sample(connections[one[0]], min(each, len(connections[one[0]])))) for one in pairs]


def recurring_candidates(
    *, models: Mapping[str, Sequence[str]], connections: Mapping[str, Sequence[str]], count: int, each: int
) -> list[dict[str, Any]]:
    """Return candidates of which all of one provider have the same list."""
    return [_candidate(one, connections[one[0]][:each]) for one in _pairs(models, count)]


def pool_body(listed: Sequence[dict[str, Any]]) -> bytes:
    """Return the body of a pool call."""
    return json.dumps({"candidates": listed}, separators=(",", ":")).encode()


def readings_body(*, readers: Sequence[Reader], count: int, turn: int, now: datetime) -> bytes:
    """Return a body of readings, each with a percent that the turn before did not say; no verdict changes."""
    items = [
        _reading(reader, percent=_percent(turn, place), at=now + place // len(readers) * _TICK)
        for place, reader in zip(range(count), itertools.cycle(readers))
    ]
    return json.dumps({"readings": items}).encode()


def reading_bodies(readers: Sequence[Reader], *, says: Said) -> Iterator[bytes]:
    """Yield bodies of one reading each, for ever, of one window after the other, observed when they are asked for."""
    for turn in itertools.count(1):
        for place, reader in enumerate(readers):
            flipped = _LOW if turn % 2 else _HIGH
            percent = flipped if says == "verdicts" else _percent(turn, place)
            yield json.dumps({"readings": [_reading(reader, percent=percent, at=datetime.now(UTC))]}).encode()


def one_reading(reader: Reader, *, is_usable: bool) -> bytes:
    """Return a body of one reading that makes a window usable, or exhausts it."""
    return json.dumps(
        {"readings": [_reading(reader, percent=_HIGH if is_usable else _LOW, at=datetime.now(UTC))]}
    ).encode()


def usage_body(*, places: Sequence[tuple[str, str]], count: int, turn: str, now: datetime) -> bytes:
    """Return a body of usage events on (connection, model), none of them sent before in another turn."""
    events = [
        {
            "event_id": f"bench-{turn}-{number}",
            "connection_id": connection_id,
            "model": model,
            "occurred_at": _text(now),
            "input_tokens": 1_000 + number,
            "output_tokens": 300,
            "cost_usd": "0.0042",
        }
        for number, (connection_id, model) in zip(range(count), itertools.cycle(places))
    ]
    return json.dumps({"events": events}).encode()


def _pairs(models: Mapping[str, Sequence[str]], count: int) -> list[tuple[str, str]]:
    known = [(provider, model) for provider, names in models.items() for model in names]
    return list(itertools.islice(itertools.cycle(known), count))


def _candidate(pair: tuple[str, str], ids: Sequence[str]) -> dict[str, Any]:
    return {"provider": pair[0], "model": pair[1], "allowed_connection_ids": list(ids)}


def _reading(reader: Reader, *, percent: int, at: datetime) -> dict[str, Any]:
    return {"connection_id": reader[0], "window": reader[1], "remaining_percent": percent, "observed_at": _text(at)}


def _percent(turn: int, place: int) -> int:
    return 40 + (turn * 7 + place) % 50


def _text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
