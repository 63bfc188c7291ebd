"""The embedded broker: no message is ever seen half written, and none is lost between processes that live."""

import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from kombu import Connection, Exchange, Queue

from omniroute_admin import broker

SENDERS = 4
EACH = 50
LARGE = "x" * 50_000


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    broker.install()
    for name in ("messages", "control"):
        (tmp_path / name).mkdir()
    folder = str(tmp_path / "messages")
    return {"data_folder_in": folder, "data_folder_out": folder, "control_folder": str(tmp_path / "control")}


@pytest.fixture
def connection(options: dict[str, str]) -> Iterator[Connection]:
    with Connection("filesystem://", transport_options=options) as made:
        yield made


def test_the_address_filesystem_means_the_atomic_transport(connection: Connection) -> None:
    assert isinstance(connection.transport, broker.Transport)


def test_messages_arrive_in_the_order_of_sending(connection: Connection) -> None:
    box = connection.SimpleQueue("work")
    for number in range(20):
        box.put(number)
    assert [box.get(block=False).payload for _ in range(20)] == list(range(20))
    box.close()


def test_a_reader_beside_writers_takes_every_large_message_whole(options: dict[str, str]) -> None:
    def send(sender: int) -> None:
        with Connection("filesystem://", transport_options=options) as own:
            box = own.SimpleQueue("work")
            for number in range(EACH):
                box.put({"sender": sender, "number": number, "filling": LARGE})
            box.close()

    threads = [threading.Thread(target=send, args=(sender,)) for sender in range(SENDERS)]
    with Connection("filesystem://", transport_options=options) as own:
        box = own.SimpleQueue("work")
        for thread in threads:
            thread.start()
        seen = [box.get(timeout=60).payload for _ in range(SENDERS * EACH)]
        box.close()
    for thread in threads:
        thread.join()
    assert {len(message["filling"]) for message in seen} == {len(LARGE)}
    for sender in range(SENDERS):
        assert [message["number"] for message in seen if message["sender"] == sender] == list(range(EACH))


def test_a_file_still_being_written_is_no_message(connection: Connection, options: dict[str, str]) -> None:
    box = connection.SimpleQueue("work")
    box.put("whole")
    (whole,) = Path(options["data_folder_in"]).iterdir()
    (whole.parent / f".{whole.name}.0.tmp").write_text('{"body": "hal')
    assert box.get(block=False).payload == "whole"
    with pytest.raises(queue.Empty):
        box.get(block=False)
    box.close()


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        broker.write_whole(tmp_path / "taken", b"content")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_second_connection_of_a_process_binds_for_itself(options: dict[str, str], tmp_path: Path) -> None:
    other = options | {"control_folder": str(tmp_path / "other")}
    for chosen in (options, other):
        with Connection("filesystem://", transport_options=chosen) as own:
            box = own.SimpleQueue("work")
            box.put("sent")
            assert box.get(block=False).payload == "sent"
            box.close()


def test_queues_bound_at_once_by_many_are_all_kept(options: dict[str, str]) -> None:
    exchange = Exchange("shared", type="direct")

    def bind(number: int) -> None:
        with Connection("filesystem://", transport_options=options) as own:
            Queue(f"q{number}", exchange, routing_key=f"k{number}")(own.default_channel).declare()

    threads = [threading.Thread(target=bind, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with Connection("filesystem://", transport_options=options) as own:
        assert {row.queue for row in own.default_channel.get_table("shared")} == {f"q{n}" for n in range(12)}
