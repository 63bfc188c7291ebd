"""How many messages wait in the broker, and since when: the broker is asked itself, with a second of patience."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from kombu import Connection
from kombu.exceptions import KombuError

SENT_AT = "sent_at"
"""The header of a message that says when it was sent, as ISO text."""

_PATIENCE_SECONDS = 1.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Queue(msgspec.Struct, frozen=True):
    """How many messages wait; when the oldest of them was sent, None where none waits or nobody can tell."""

    waiting: int
    oldest_sent_at: datetime | None


class BrokerUnreachableError(Exception):
    """The broker does not answer."""


def look_at_queue() -> Queue:
    """Return what waits for the worker now.

    Raises:
        BrokerUnreachableError: the broker did not answer in time.
    """
    if settings.CELERY_BROKER_URL.startswith("filesystem:"):
        return _in_files(Path(str(settings.CELERY_BROKER_TRANSPORT_OPTIONS["data_folder_in"])))
    try:
        return _in_broker()
    except Exception as error:  # noqa: BLE001 - each transport raises errors of its own library
        raise BrokerUnreachableError(type(error).__name__) from None


def _in_files(folder: Path) -> Queue:
    """Count the files of messages: the name of each begins with when it was written, in nanoseconds."""
    ending = f".{settings.CELERY_TASK_DEFAULT_QUEUE}.msg"
    try:
        names = sorted(file.name for file in folder.iterdir() if file.name.endswith(ending) and file.name[0] != ".")
    except OSError as error:
        raise BrokerUnreachableError(type(error).__name__) from None
    sent = names[0].partition("_")[0] if names else ""
    return Queue(len(names), _EPOCH + timedelta(microseconds=int(sent) // 1000) if sent.isdecimal() else None)


def _in_broker() -> Queue:
    name = settings.CELERY_TASK_DEFAULT_QUEUE
    patience = {"socket_timeout": _PATIENCE_SECONDS, "socket_connect_timeout": _PATIENCE_SECONDS, "max_retries": 0}
    url = settings.CELERY_BROKER_URL
    with (
        Connection(url, connect_timeout=_PATIENCE_SECONDS, transport_options=patience) as connection,
        connection.channel() as channel,
    ):
        client: Any = getattr(channel, "client", None)
        if hasattr(client, "lindex"):
            return Queue(channel._size(name), _sent_at(client.lindex(name, -1)))
        return Queue(_declared(lambda: channel.queue_declare(name, passive=True)), None)


def _declared(declare: Callable[[], Any]) -> int:
    """Return how many messages a queue has; one that nobody has made yet has none."""
    try:
        return int(declare().message_count)
    except KombuError:
        return 0


def _sent_at(message: bytes | None) -> datetime | None:
    """Return what a message of Redis says of when it was sent; the right end of the list is the oldest."""
    if message is None:
        return None
    try:
        return datetime.fromisoformat(json.loads(message)["headers"][SENT_AT])
    except (ValueError, KeyError, TypeError):
        return None
