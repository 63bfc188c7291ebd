"""Channels come from the environment: a bad address stops the start with its name, and is never told."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from omniroute_admin.alert_channels import alert_channels, public_url, webhook_secret
from omniroute_admin.environment import Environment
from tests.processes import manage

SECRET = "s" * 16


def test_each_variable_is_a_channel_by_its_lower_case_name(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("mailtos://user:hidden@example.com?to=ops@example.com\n")
    found = alert_channels(
        Environment(
            {
                "ALERT_CHANNEL_OPS": "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
                "ALERT_CHANNEL_NIGHT_HOOK": "https://example.com/hook",
                "ALERT_CHANNEL_MAIL_FILE": str(tmp_path / "mail"),
                "ALERT_CHANNEL_EMPTY": " ",
            }
        )
    )
    kinds = {name: channel.kind for name, channel in found.items()}
    assert kinds == {"ops": "slack", "night_hook": "webhook", "mail": "mail"}
    assert "hidden" not in repr(found)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"ALERT_CHANNEL_OPS": "slack://hidden"}, "ALERT_CHANNEL_OPS"),
        ({"ALERT_CHANNEL_OPS": "hidden"}, "ALERT_CHANNEL_OPS"),
        ({"ALERT_CHANNEL_OPS": "nonsense://hidden"}, "ALERT_CHANNEL_OPS"),
        ({"ALERT_CHANNEL_OPS": "https://:80/hidden"}, "ALERT_CHANNEL_OPS"),
        ({"ALERT_CHANNEL_OPS": "https://host:port/hidden"}, "ALERT_CHANNEL_OPS"),
        ({"ALERT_CHANNEL_": "https://host/hidden"}, "ALERT_CHANNEL_"),
        ({"ALERT_CHANNEL_ops": "https://host/hidden"}, "ALERT_CHANNEL_ops"),
        ({"ALERT_CHANNEL_OPS_FILE": "/nowhere/at/all"}, "ALERT_CHANNEL_OPS_FILE"),
        ({"ALERT_CHANNEL_OPS": "https://a/hidden", "ALERT_CHANNEL_OPS_FILE": "/x"}, "ALERT_CHANNEL_OPS_FILE"),
    ],
)
def test_a_channel_that_cannot_be_is_refused_by_its_name_alone(values: dict[str, str], named: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        alert_channels(Environment(values))
    assert str(refusal.value).startswith(f"{named}: ")
    assert "hidden" not in str(refusal.value)


@pytest.mark.parametrize(
    ("values", "refused"),
    [
        ({}, True),
        ({"ALERT_WEBHOOK_SECRET": "hidden"}, True),
        ({"ALERT_WEBHOOK_SECRET": SECRET}, False),
    ],
)
def test_a_webhook_needs_a_secret_that_is_one(values: dict[str, str], refused: bool) -> None:
    channels = alert_channels(Environment({"ALERT_CHANNEL_HOOK": "https://example.com/hook"})).values()
    if not refused:
        assert webhook_secret(Environment(values), channels=channels) == SECRET
        return
    with pytest.raises(ImproperlyConfigured, match=r"^ALERT_WEBHOOK_SECRET: ") as refusal:
        webhook_secret(Environment(values), channels=channels)
    assert "hidden" not in str(refusal.value)


def test_without_a_webhook_no_secret_is_needed() -> None:
    assert webhook_secret(Environment({}), channels=[]) == ""


def test_the_public_address_is_one_origin() -> None:
    assert public_url(Environment({})) == ""
    assert public_url(Environment({"PUBLIC_URL": "https://ladder.example.com"})) == "https://ladder.example.com"
    for bad in ("ladder.example.com", "https://a.example, https://b.example", "https://a.example/path"):
        with pytest.raises(ImproperlyConfigured, match=r"^PUBLIC_URL: "):
            public_url(Environment({"PUBLIC_URL": bad}))


def test_a_bad_channel_ends_a_command_with_one_sentence() -> None:
    done = manage("check", ALERT_CHANNEL_OPS="slack://hidden")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("The settings cannot be used. ALERT_CHANNEL_OPS: its address cannot be read;")
    assert "hidden" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
