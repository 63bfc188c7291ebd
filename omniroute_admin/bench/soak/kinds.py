"""What is called in a soak, how often, and what each call says."""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from urllib.parse import quote

import msgspec

from omniroute_admin.bench.bodies import Reader, one_reading, pool_body, reading_bodies, readings_body, usage_body
from omniroute_admin.bench.client import Answer, request
from omniroute_admin.bench.stage import Stage
from omniroute_admin.common import clock

EXPECTED = 25
"""Readings a second that an installation of 2,000 connections is expected to take (each is read every 80 seconds), and
as many pool calls. Twice that is what `manage.py bench` measures pools beside.
"""

PAGES, POLL_SECONDS = 3, 3.0
"""Ladder pages that are looked at, at the expected rate, and how often each asks."""

_CANDIDATES, _EACH, _BULK, _EVENTS = 50, 3, 50, 5
_TOKEN = re.compile(rb'data-token="([^"]+)"')
_PERCENTS_A_VERDICT = 9


class Talk:
    """One connection's part of a kind: it makes requests, and hears the answers where the next one depends on them."""

    def __init__(self, ask: Callable[["Talk"], bytes]) -> None:
        """Take what makes a request; `said` is what it needs of the answer before."""
        self._ask = ask
        self.said = ""
        self.turns = itertools.count()

    def ask(self) -> bytes:
        """Return the next request."""
        return self._ask(self)

    def hear(self, answer: Answer) -> None:
        """Remember what the next request has to repeat."""
        etag = answer.header("ETag")
        found = _TOKEN.search(answer.body)
        if found is not None:
            self.said = unescape(found[1].decode())
        elif etag is not None:
            self.said = etag


class Kind(msgspec.Struct, frozen=True):
    """One kind of call. `per_second` is how often at the expected rate, `talks` over how many connections."""

    name: str
    per_second: float
    talks: int
    make: Callable[[int], Talk]
    good: tuple[int, ...] = (200,)


def kinds_of(stage: Stage, *, run: str) -> list[Kind]:
    """Return every kind; `run` is a word that no other run on the same database has."""
    return [*_pools(stage), *_telemetry(stage, run), *_people(stage)]


def _pools(stage: Stage) -> Iterator[Kind]:
    body = pool_body(_candidates(stage))
    asked = json.dumps({"id": "auto/thrifty", "candidates": json.loads(body)["candidates"], "settings": _STRICTER})
    get = stage.get("/api/v1/pools/auto/thrifty")
    post = stage.post("/api/v1/pools/auto/subscription", body)
    evaluate = stage.post("/api/v1/evaluate", asked.encode())
    occupancy = stage.get("/api/v1/occupancy")
    yield Kind("pool", 10, 3, lambda _: Talk(lambda _: get))
    yield Kind("pool-if-changed", 7.5, 3, lambda _: Talk(lambda talk: _if_changed(stage, talk.said)), (200, 304))
    yield Kind("pool-posted", 7.5, 3, lambda _: Talk(lambda _: post))
    yield Kind("evaluate", 0.05, 1, lambda _: Talk(lambda _: evaluate))
    yield Kind("occupancy", 0.05, 1, lambda _: Talk(lambda _: occupancy))


_STRICTER = {"exit_cutoff_percent": 30, "reentry_min_remaining_percent": 40}


def _candidates(stage: Stage) -> list[dict[str, object]]:
    fleet = stage.fleet
    pairs = [(provider, model) for provider, models in fleet.models.items() for model in models]
    return [
        {"provider": provider, "model": model, "allowed_connection_ids": fleet.connections[provider][:_EACH]}
        for provider, model in pairs[:_CANDIDATES]
    ]


def _if_changed(stage: Stage, etag: str) -> bytes:
    known = {"If-None-Match": etag} if etag else {}
    return stage.get("/api/v1/pools/auto/thrifty", **known)


def _telemetry(stage: Stage, run: str) -> Iterator[Kind]:
    def usage(number: int) -> Talk:
        return Talk(lambda talk: stage.post(_USAGE, _events(stage, talk, f"{run}-{number}")))

    def hold(number: int) -> Talk:
        return Talk(lambda talk: _hold(stage, f"{run}-{number}-{next(talk.turns)}"))

    yield Kind("reading", 22.5, _SHARES, lambda number: _readings(stage, _share(stage.fleet.readers, number)))
    yield Kind("readings-bulk", 0.05, 1, lambda _: Talk(lambda talk: stage.post(_READINGS, _bulk(stage, talk))))
    yield Kind("usage", 5, 4, usage)
    yield Kind("hold", 2.5, 3, hold, (201,))


_READINGS, _USAGE = "/api/v1/telemetry/readings", "/api/v1/telemetry/usage"
_SHARES = 8


def _share(readers: Sequence[Reader], number: int) -> Sequence[Reader]:
    """Return the windows that one connection tells of."""
    return readers[number::_SHARES] or readers[:1]


def _readings(stage: Stage, readers: Sequence[Reader]) -> Talk:
    """Return what sends readings of a share of the windows, each told by one connection only, so in order."""
    percents = reading_bodies(readers, says="percents")
    flips = itertools.cycle([False, True])

    def ask(talk: Talk) -> bytes:
        turn = next(talk.turns)
        if turn % (_PERCENTS_A_VERDICT + 1) == _PERCENTS_A_VERDICT:
            body = one_reading(readers[0], is_usable=next(flips))
        else:
            body = next(percents)
        return stage.post(_READINGS, body)

    return Talk(ask)


def _bulk(stage: Stage, talk: Talk) -> bytes:
    return readings_body(readers=stage.fleet.readers, count=_BULK, turn=next(talk.turns), now=clock.now())


def _events(stage: Stage, talk: Talk, run: str) -> bytes:
    return usage_body(places=stage.fleet.places, count=_EVENTS, turn=f"{run}-{next(talk.turns)}", now=clock.now())


def _hold(stage: Stage, name: str) -> bytes:
    connection_id, model = stage.fleet.places[-1]
    hold = {"hold_id": f"soak-{name}", "connection_id": connection_id, "model": model}
    return stage.post("/api/v1/holds", json.dumps({**hold, "estimated_cost_usd": "0.01", "ttl_seconds": 60}).encode())


def _people(stage: Stage) -> Iterator[Kind]:
    pages = itertools.cycle(["/", "/connections", "/spend", "/timeline", "/audit"])
    yield Kind("poll", PAGES / POLL_SECONDS, PAGES, lambda _: Talk(lambda talk: _poll(stage, talk)), (200, 204))
    yield Kind("page", 0.025, 1, lambda _: Talk(lambda _: stage.visit(next(pages))))
    yield Kind("settings", 1 / 60, 1, lambda _: Talk(lambda talk: _save(stage, next(talk.turns))))


def _poll(stage: Stage, talk: Talk) -> bytes:
    """Return the poll of a page that knows the picture it was last sent; it begins with the page."""
    if not talk.said:
        return stage.visit("/")
    headers = {"Cookie": f"sessionid={stage.cookie}", "HX-Request": "true"}
    return request("GET", f"/live/ladder?show=ladder&v={quote(talk.said)}", headers=headers)


def _save(stage: Stage, turn: int) -> bytes:
    body = json.dumps({"exit_cutoff_percent": 2 + turn % 2, "reason": "a soak"}).encode()
    return request("PATCH", "/api/v1/settings", headers={"Authorization": f"Bearer {stage.key}"}, body=body)
