"""Request bodies on their way in: a client that sends slowly, or too much, costs others neither time nor memory.

Bodies are collected beside the thread that answers requests, so that however many clients drip, none of them holds it.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

from omniroute_admin.common.errors import BadRequest, LengthNeeded, TooBusy, TooLarge, TooSlow


class Pieces(Protocol):
    """A body as the web server hands it out; an empty piece is its end, or that of the connection."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the pieces, each as soon as it is there."""
        ...


def declared_bytes(headers: Mapping[str, str]) -> int:
    """Return how many bytes the body of a request has, as its headers tell.

    Raises:
        LengthNeeded: they leave it open, so that nobody could say when to stop.
        BadRequest: they do not tell a number.
    """
    declared = headers.get("content-length")
    if declared is None:
        if headers.get("transfer-encoding") is not None:
            raise LengthNeeded("Send Content-Length: a body of open length is not read.")
        return 0
    if not (declared.isascii() and declared.isdigit()):
        raise BadRequest("Content-Length is no number.", code="unreadable_body")
    return int(declared)


class _Arrival:
    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.size = 0
        self.is_given_up = False
        self.deadline = asyncio.timeout(None)


class Arrivals:
    """The bodies of one process that are on their way or wait for their answer.

    `most_bytes` is the size of one, `most_together` that of all, in bytes; `seconds` is the time each has to arrive.
    """

    def __init__(self, *, most_bytes: int, most_together: int, seconds: float) -> None:
        self._most_bytes, self._most_together, self._seconds = most_bytes, most_together, seconds
        self._arriving: set[_Arrival] = set()
        self._together = 0

    @asynccontextmanager
    async def body(self, pieces: Pieces, *, declared: int) -> AsyncIterator[bytes]:
        """Collect a body of `declared` bytes; its memory counts until the block ends.

        Raises:
            TooLarge: more than one may have; nothing of it is read.
            TooSlow: it was not there in time.
            TooBusy: it was the largest on its way when all together grew too large.
            BadRequest: the connection broke before all of it came.
        """
        if declared > self._most_bytes:
            raise TooLarge(f"A body has at most {self._most_bytes} bytes.")
        arrival = _Arrival()
        try:
            self._arriving.add(arrival)
            try:
                await self._in_time(arrival, pieces, declared)
            finally:
                self._arriving.discard(arrival)
            yield b"".join(arrival.pieces)
        finally:
            self._together -= arrival.size

    async def _in_time(self, arrival: _Arrival, pieces: Pieces, declared: int) -> None:
        arrival.deadline = asyncio.timeout(self._seconds)
        try:
            async with arrival.deadline:
                await self._collect(arrival, pieces, declared)
        except TimeoutError:
            if not arrival.is_given_up:
                raise TooSlow(f"The body was not there within {self._seconds:g} s.") from None
        if arrival.is_given_up:
            raise TooBusy("Too much is being sent at once. Try again.")
        if arrival.size != declared:
            raise BadRequest("The body broke off before its end.", code="unreadable_body")

    async def _collect(self, arrival: _Arrival, pieces: Pieces, declared: int) -> None:
        async for piece in pieces:
            if not piece or arrival.is_given_up:
                return
            arrival.pieces.append(piece)
            arrival.size += len(piece)
            self._together += len(piece)
            if self._together > self._most_together:
                self._give_up_the_largest()
            if arrival.size >= declared:
                return

    def _give_up_the_largest(self) -> None:
        """Make room: an honest body is hardly ever the largest of those that together are too much."""
        largest = max(self._arriving, key=lambda one: one.size)
        self._together -= largest.size
        largest.pieces.clear()
        largest.size = 0
        largest.is_given_up = True
        largest.deadline.reschedule(asyncio.get_running_loop().time())
