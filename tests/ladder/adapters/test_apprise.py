"""Apprise, against real servers: mail, and JSON over HTTP; nothing of an address is logged or told."""

import json

import pytest

from ladder.adapters import apprise
from tests.processes import free_port
from tests.receiving import http_receiver, mail_receiver

NOTICE = {"title": "Raised: auto/subscription is empty", "text": "None is left.\nBegan 14:32.", "is_good": False}


def test_a_mail_arrives_with_title_and_text() -> None:
    with mail_receiver() as receiver:
        address = f"mailto://127.0.0.1:{receiver.port}/?from=ladder@example.com&to=ops@example.com"
        assert apprise.send(address=address, **NOTICE).is_delivered
    (mail,) = receiver.mails
    assert (mail["subject"], mail["to"]) == (NOTICE["title"], "ops@example.com")
    assert "None is left." in mail.get_body(("plain",)).get_content()


@pytest.mark.parametrize(("is_good", "kind"), [(False, "warning"), (True, "success")])
def test_a_service_over_http_is_told_whether_it_is_good_news(is_good, kind) -> None:
    with http_receiver() as receiver:
        address = f"json://{receiver.place}/hook/t0ken"
        assert apprise.send(address=address, **NOTICE | {"is_good": is_good}).is_delivered
    body = json.loads(receiver.requests[0].body)
    assert (body["title"], body["message"], body["type"]) == (NOTICE["title"], NOTICE["text"], kind)


@pytest.mark.parametrize(
    ("status", "problem", "permanent"), [(404, "answered 404", True), (503, "answered 503", False)]
)
def test_a_refusal_is_told_by_its_status_alone_and_logged_by_nobody(status, problem, permanent, our_log, capfd) -> None:
    with http_receiver() as receiver:
        receiver.answers = [status]
        outcome = apprise.send(address=f"json://user:passw0rd@{receiver.place}/hook/t0ken", **NOTICE)
    assert (outcome.problem, outcome.is_permanent) == (problem, permanent)
    said = our_log.getvalue() + "".join(capfd.readouterr())
    assert [word for word in ("t0ken", "passw0rd", receiver.place) if word in said] == []


def test_nobody_there_may_pass_and_names_nothing(our_log) -> None:
    outcome = apprise.send(
        address=f"mailto://user:passw0rd@127.0.0.1:{free_port()}?from=b@example.com&to=a@example.com", **NOTICE
    )
    assert not outcome.is_permanent
    assert outcome.problem == "could not be delivered; the service was not reached or refused it"
    assert "passw0rd" not in our_log.getvalue()
