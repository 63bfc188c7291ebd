"""The signed webhook, against a real server: what arrives, how it is checked, and what each answer means."""

import hashlib
import hmac
import re
from collections.abc import Iterator

import msgspec
import pytest

from ladder.adapters import webhook
from tests.factories_ladder import NOW
from tests.processes import free_port
from tests.receiving import HttpReceiver, http_receiver
from tests.shared import ROOT

SECRET = "a-secret-that-both-ends-know"
MESSAGE = webhook.Message(
    id="6d0c", kind="raised", rule="Plans", alert="7", condition="1:pool_empty:auto/subscription",
    subject="auto/subscription", title="Raised: auto/subscription is empty", text="Nichts übrig.", raised_at=NOW,
    resolved_at=None, revision="12", page="https://ladder.example.com/pools/auto/subscription",
)  # fmt: skip


@pytest.fixture
def receiver() -> Iterator[HttpReceiver]:
    with http_receiver() as found:
        yield found


def send(receiver: HttpReceiver, secret: str = SECRET):
    return webhook.send(address=f"http://{receiver.place}/hook/t0ken", secret=secret, message=MESSAGE, now=NOW)


def test_what_arrives_is_the_message_and_its_signature(receiver: HttpReceiver) -> None:
    assert send(receiver).is_delivered
    (got,) = receiver.requests
    assert msgspec.json.decode(got.body, type=webhook.Message) == MESSAGE
    assert (got.headers["x-ladder-delivery"], got.headers["content-type"]) == ("6d0c", "application/json")
    at = got.headers["x-ladder-timestamp"]
    assert at == str(int(NOW.timestamp()))
    digest = hmac.new(SECRET.encode(), f"{at}.".encode() + got.body, hashlib.sha256).hexdigest()
    assert got.headers["x-ladder-signature"] == f"v1={digest}"


def handbook_check():
    """Return the function that the handbook gives to receivers, as it stands there."""
    text = (ROOT / "docs" / "operations.md").read_text()
    block = next(one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "X-Ladder-Signature" in one)
    assert len([line for line in block.splitlines() if line.strip()]) <= 8
    names: dict = {}
    exec(block, names)
    return names["is_genuine"]


def test_a_receiver_that_checks_as_the_handbook_says_takes_ours_and_no_other(receiver: HttpReceiver) -> None:
    send(receiver)
    send(receiver, secret="another-secret-altogether")
    check, (ours, other) = handbook_check(), receiver.requests
    headers = {name.title(): value for name, value in ours.headers.items()}
    at = NOW.timestamp()
    assert check(headers, ours.body, SECRET, now=at)
    assert not check(headers, ours.body + b" ", SECRET, now=at)
    assert not check(headers | {"X-Ladder-Timestamp": str(int(at) + 1)}, ours.body, SECRET, now=at)
    assert not check(headers, ours.body, SECRET, now=at + 301)
    assert not check({name.title(): value for name, value in other.headers.items()}, other.body, SECRET, now=at)


@pytest.mark.parametrize(
    ("status", "problem", "permanent"),
    [(404, "answered 404", True), (503, "answered 503", False), (429, "answered 429", False),
     (307, "answered 307, and redirects are not followed", True)],
)  # fmt: skip
def test_an_answer_is_told_by_its_status_alone(receiver: HttpReceiver, status, problem, permanent) -> None:
    receiver.answers = [status]
    outcome = send(receiver)
    assert (outcome.problem, outcome.is_permanent) == (problem, permanent)
    assert [one.path for one in receiver.requests] == ["/hook/t0ken"]


def test_nobody_there_is_told_without_the_address_and_nothing_of_it_is_logged(receiver, our_log) -> None:
    send(receiver)
    address = f"http://127.0.0.1:{free_port()}/hook/t0ken"
    outcome = webhook.send(address=address, secret=SECRET, message=MESSAGE, now=NOW)
    assert (outcome.problem, outcome.is_permanent) == ("could not be reached", False)
    assert "t0ken" not in our_log.getvalue()
