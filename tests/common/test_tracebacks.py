"""What a person reads who looks for the cause of a failure: no secret of the installation, no flood by strangers."""

import io
import logging
import sys
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote

from django.test import Client, RequestFactory

from omniroute_admin.common.blotting import Untraced
from omniroute_admin.common.tracebacks import BlottingReporter

NAMES = ("TOTP_KEY", "OIDC_CLIENT_SECRET", "ALERT_WEBHOOK_SECRET")


def fail(*told: str) -> None:
    raise ValueError(told)


def test_the_page_of_a_failure_tells_no_secret_of_the_settings(settings: Any) -> None:
    # Made up here, since the page shows the lines of this file too.
    secrets = [token_urlsafe(32) for _ in NAMES]
    password = f"{token_urlsafe(16)}!"
    for name, value in zip(NAMES, secrets, strict=True):
        setattr(settings, name, value)
    settings.CELERY_BROKER_URL = f"redis://:{quote(password)}@localhost:6379/0"
    try:
        fail(password, quote(password), *secrets)
    except ValueError:
        reporter = BlottingReporter(RequestFactory().get("/"), *sys.exc_info())
    for text in (reporter.get_traceback_html(), reporter.get_traceback_text()):
        assert "ValueError" in text
        assert [secret for secret in (password, quote(password), *secrets) if secret in text] == []


def test_a_wrong_host_name_is_one_line_of_the_log(settings: Any) -> None:
    assert all("untraced" in handler["filters"] for handler in settings.LOGGING["handlers"].values())
    handler = logging.StreamHandler(written := io.StringIO())
    handler.addFilter(Untraced())
    logging.getLogger().addHandler(handler)
    try:
        assert Client().get("/nowhere", headers={"host": "scanner.example.com"}).status_code == 400
    finally:
        logging.getLogger().removeHandler(handler)
    assert "scanner.example.com" in written.getvalue()
    assert "Traceback" not in written.getvalue()
