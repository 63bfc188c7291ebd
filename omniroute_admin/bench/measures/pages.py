"""The ladder page and its poll, as a signed-in person's browser asks for them."""

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote

from omniroute_admin.bench.client import Client
from omniroute_admin.bench.errors import BenchError
from omniroute_admin.bench.measures.pools import after_a_write, stage_client
from omniroute_admin.bench.results import Result
from omniroute_admin.bench.stage import Stage, alternately, asking, beside_floor

POLL_TARGET = 1.5
_FLOOR_IS = "an empty page, the session checked"
_TOKEN = re.compile(rb'data-token="([^"]+)"')
_OK, _UNCHANGED = 200, 204


def measure_page(stage: Stage) -> Iterator[Result]:
    """Measure the whole ladder page: unchanged, and just after another connection committed a change."""
    with stage_client(stage) as client, stage_client(stage) as writer:
        page, floor = asking(client, stage.visit("/")), asking(client, stage.visit("/live/bench"), _UNCHANGED)
        for name, act in (("page", page), ("page-revised", after_a_write(stage, writer, page))):
            timings = alternately(stage.options.few_rounds, name, act, floor)
            yield beside_floor(name=name, timings=timings, floor_is=_FLOOR_IS, target=None)


def measure_poll(stage: Stage) -> Iterator[Result]:
    """Measure the poll of a page on which nothing changed."""
    with stage_client(stage) as client:
        floor = asking(client, stage.visit("/live/bench"), _UNCHANGED)
        timings = alternately(stage.options.many_rounds, "poll", Poll(stage, client), floor)
    yield beside_floor(name="poll", timings=timings, floor_is=_FLOOR_IS, target=POLL_TARGET)


class Poll:
    """The act of polling; where the picture changed by itself, the new one is polled for."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self._stage, self._client = stage, client
        self._asked = stage.visit(poll_path(stage, client))

    def __call__(self, _: int) -> float:
        """Poll once, and return how long the answer without content took.

        Raises:
            BenchError: the picture changes again and again.
        """
        for _try in range(3):
            answer = self._client.expect(self._asked, _OK, _UNCHANGED)
            if answer.status == _UNCHANGED:
                return answer.seconds
            self._asked = self._stage.visit(poll_path(self._stage, self._client))
        raise BenchError("the picture changes between two polls")


def poll_path(stage: Stage, client: Client) -> str:
    """Return the address that the ladder page, as it is now, polls.

    Raises:
        BenchError: the page has no token.
    """
    found = _TOKEN.search(client.expect(stage.visit("/")).body)
    if found is None:
        raise BenchError("the ladder page has no token to poll with")
    return f"/live/ladder?show=ladder&v={quote(unescape(found[1].decode()))}"
