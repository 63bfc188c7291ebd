"""The embedded message broker: kombu's transport in files, made atomic.

The stock transport writes a message where a reader may take it half written, which loses it and ends the whole
worker. Here a file is written aside and renamed. Delivery is at most once: a worker that is killed loses the message it
had taken, so that every task can be repeated and nothing acknowledged to a router rides on a message.
"""

import fcntl
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import time_ns
from typing import Any

from kombu.transport import TRANSPORT_ALIASES, filesystem, virtual
from kombu.utils.json import dumps


class Channel(filesystem.Channel):
    """A channel whose messages and bindings appear whole or not at all."""

    def _put(self, queue: str, payload: Any, **_: Any) -> None:  # type: ignore[override] # kombu names it both ways
        # The time is padded with zeros: the reader takes the names in order, so that is the order of sending.
        name = f"{time_ns():020d}_{uuid.uuid4()}.{queue}.msg"
        write_whole(Path(self.data_folder_out) / name, dumps(payload).encode())

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        wanted = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
        with _alone(Path(self.control_folder)):
            table = self.get_table(exchange)
            if wanted not in table:
                write_whole(self._exchange_file(exchange), dumps([wanted, *table]).encode())


class Transport(filesystem.Transport):
    """The transport that `filesystem://` names in this product."""

    Channel = Channel

    def __init__(self, client: Any, **options: Any) -> None:
        """Open the transport with a memory of its own of what is bound.

        The stock one shares it in the process and notes a binding before it is written: another thread would send
        into the gap, where a message has no queue and is lost without a word.
        """
        super().__init__(client, **options)
        self.state = virtual.BrokerState()


def install() -> None:
    """Make `filesystem://` mean the transport of this module."""
    TRANSPORT_ALIASES["filesystem"] = f"{__name__}:Transport"


def write_whole(file: Path, content: bytes) -> None:
    """Write a file so that no reader ever sees a part of it."""
    aside = file.with_name(f".{file.name}.{uuid.uuid4()}.tmp")
    try:
        aside.write_bytes(content)
        aside.replace(file)
    finally:
        aside.unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: two processes that bind a queue at once must not undo each other's line."""
    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / ".lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
