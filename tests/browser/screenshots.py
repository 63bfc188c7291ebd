"""Make docs/screenshots: `python -m tests.browser.screenshots`. Needs Chromium (apt-get install chromium).

The pictures show the small fleet of tests/browser/fleet.py at one fixed moment, in a database of their own.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from ladder.models import QuotaWindow

MOMENT = datetime(2026, 8, 27, 8, 12, 40, tzinfo=UTC)
TARGET = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
CONNECTION = "/connections/claude/claude-alt"
PAGES = {
    "ladder": "/",
    "connections": "/connections",
    "connection": CONNECTION,
    "tuning": "/tuning",
    "catalogue": "/catalogue",
    "catalogue-prices": "/catalogue/prices",
    "catalogue-files": "/catalogue/files",
    "uncurated": "/catalogue/uncurated",
    "spend": "/spend",
    "timeline": "/timeline",
    "alerts": "/alerts",
    "audit": "/audit",
    "keys": "/keys",
    "account": "/account",
    "admin": "/admin/ladder/connection/",
}
"""Every page, shown wide, light and dark; those that an operator opens on a phone are shown narrow too."""

ON_A_PHONE = ("ladder", "connection", "tuning", "spend", "timeline", "alerts", "keys")
PICTURES = (
    *((f"{name}-1440-{theme}", path, 1440, theme) for name, path in PAGES.items() for theme in ("light", "dark")),
    *((f"{name}-390-{theme}", PAGES[name], 390, theme) for name in ON_A_PHONE for theme in ("light", "dark")),
    ("pool-1440-light", "/pools/auto/subscription", 1440, "light"),
)
NARROW_HEIGHT = 1600


def main() -> int:
    """Make the pictures; 1 where there is no browser to make them with."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        import playwright.sync_api  # noqa: F401
        import time_machine
    except ImportError as missing:
        print(f"{missing.name} is not installed: pip install -r requirements.txt", file=sys.stderr)
        return 1
    if chromium is None:
        print("no Chromium on this machine: apt-get install chromium, or name one in CHROMIUM", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder, time_machine.travel(MOMENT, tick=True):
        _start_django(folder)
        with _served() as url:
            _shoot(chromium, url)
    return 0


def _start_django(folder: str) -> None:
    os.environ.update(
        DJANGO_SETTINGS_MODULE="omniroute_admin.settings",
        DJANGO_ALLOW_ASYNC_UNSAFE="true",
        VAR_DIR=folder,
        DATABASE_URL=f"sqlite:///{folder}/pictures.sqlite3",
        DEBUG="true",
        TIME_ZONE_DISPLAY="Europe/Berlin",
    )
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)


@contextmanager
def _served() -> Iterator[str]:
    """Serve pages and static files on a free port of this machine."""
    from django.contrib.staticfiles.handlers import StaticFilesHandler
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(StaticFilesHandler(get_wsgi_application()))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _session() -> str:
    """Return a session of an operator."""
    from django.contrib.auth import get_user_model
    from django.test import Client

    client = Client()
    client.force_login(get_user_model().objects.create_superuser("mira", "mira@example.com", "four pictures of mira"))
    return client.cookies["sessionid"].value


def _fill() -> None:
    from omniroute_admin.common import clock
    from omniroute_admin.common.services.revision import deciding_write
    from tests.browser.fleet import make_fleet

    with deciding_write():
        make_fleet(now=clock.now())
    _spend(now=clock.now())
    _lived(now=clock.now())
    _alert(now=clock.now())
    _keys(now=clock.now())


def _lived(*, now: datetime) -> None:
    """Let a day pass: the rung in use, readings of the windows, a changed setting, a worker that lives."""
    from ladder.models import Connection, QuotaWindow
    from ladder.services.settings import SettingsChanges, update_settings
    from omniroute_admin.common.history import Actor
    from omniroute_admin.services.heartbeats import record_beat
    from tests.timeline_rows import add_flip, add_samples, add_turn, begin_timeline

    hours = [now - timedelta(hours=number) for number in (24, 15, 11, 10, 4)]
    served = ("subscription", "cheap", "keyless", "subscription")
    for (start, end), rung in zip(pairwise(hours), served, strict=True):
        add_samples(start=start, end=end, serving=rung)
    add_samples(start=hours[-1], end=now, serving="subscription")
    for at, ceases, begins in zip(hours[1:4], served, served[1:], strict=False):
        add_turn(at, ceases=ceases, begins=begins)
    alt = Connection.objects.get(connection_id="claude-alt")
    for at, states, cause in (
        (hours[1], ("usable", "exhausted"), "reading"),
        (hours[3], ("exhausted", "usable"), "reading"),
        (now - timedelta(minutes=5), ("usable", "cooldown"), "cooldown"),
    ):
        add_flip(at, rung="subscription", states=states, cause=cause, connection=alt, code=_CODES.get(states[1]))
    begin_timeline(now)
    for window in QuotaWindow.objects.filter(connection=alt):
        _read_along(window, now=now)
    changes = SettingsChanges(reentry_min_remaining_percent=Decimal(6))
    actor, why = Actor(name="jonas"), "the team seat flutters around 5 %"
    update_settings(changes=changes, actor=actor, reason=why, now=now - timedelta(hours=2))
    record_beat(name="beat", now=now)


def _alert(*, now: datetime) -> None:
    """Let rules have raised something, and deliveries be in every state."""
    from django.conf import settings

    from ladder.core.alerts.channels import Channel
    from ladder.models import AlertDelivery, AlertRule
    from ladder.services.alert_rules import add_usual_rules, send_test, update_rule
    from ladder.services.alerts import look_for_alerts
    from omniroute_admin.common.history import Actor

    settings.ALERT_CHANNELS = {
        name: Channel(name, kind, "") for name, kind in (("mail", "mail"), ("ops", "slack"), ("hook", "webhook"))
    }
    by = {"actor": Actor(name="mira"), "reason": "a start"}
    add_usual_rules(channel="ops", now=now - timedelta(days=1), **by)
    AlertRule.objects.update(for_seconds=0)
    for kind, changes in (
        ("rung_exhausted", {"channels": ["ops", "mail"], "quiet_from": time(22), "quiet_to": time(7)}),
        ("overage", {"is_enabled": False}),
        ("pool_empty", {"subject": "auto/vision:subscription"}),
        ("unreviewed", {"subject": "cursor"}),
    ):
        rule = AlertRule.objects.get(looks_for=kind)
        update_rule(rule=rule, changes=changes | {"quiet_zone": "Europe/Berlin"}, now=now - timedelta(hours=2), **by)
    look_for_alerts(now=now - timedelta(minutes=41))
    tests = send_test(rule=AlertRule.objects.get(looks_for="rung_exhausted"), actor=Actor(name="mira"), now=now)
    AlertDelivery.objects.filter(kind="raised").update(state="sent", attempts=1, next_attempt_at=None)
    AlertDelivery.objects.filter(pk=tests[0].pk).update(
        state="given_up", attempts=1, next_attempt_at=None, last_error="answered 404"
    )
    last = {"attempts": 1, "last_error": "did not answer within 30 s", "next_attempt_at": now + timedelta(minutes=1)}
    AlertDelivery.objects.filter(pk=tests[1].pk).update(state="failed", **last)


def _keys(*, now: datetime) -> None:
    """Make keys that live, that were rotated, that have a limit, and one that was revoked."""
    from omniroute_admin.common.history import Actor
    from omniroute_admin.common.models import ApiKey
    from omniroute_admin.common.services.key_rotation import rotate_key
    from omniroute_admin.common.services.keys import create_key, revoke_key

    by = {"actor": Actor(name="mira"), "reason": "a start"}
    calls = ["pools:read", "telemetry:write"]
    wanted = (
        ("router-eu", calls, 40),
        ("router-us", calls, 30),
        ("grafana", ["metrics:read"], 20),
        ("trial", calls, 9),
    )
    made = {}
    for name, scopes, days in wanted:
        made_at = now - timedelta(days=days)
        limit = 600 if name == "trial" else None
        expires_at = made_at + timedelta(days=90)
        made[name], _ = create_key(
            name=name, scopes=scopes, calls_per_minute=limit, expires_at=expires_at, now=made_at, **by
        )
    ApiKey.objects.exclude(name="trial").update(last_used_at=now - timedelta(minutes=1))
    old = made["router-us"].pk
    rotate_key(key_id=old, overlap=timedelta(hours=24), anyway=False, now=now - timedelta(hours=2), **by)
    revoke_key(key=made["trial"], now=now - timedelta(days=2), **by)


_CODES = {"exhausted": "quota_exhausted", "cooldown": "cooldown"}


def _read_along(window: "QuotaWindow", *, now: datetime) -> None:
    """Store the readings of a window that was used up bit by bit."""
    from tests.browser.fleet import add_reading

    left = window.remaining_percent or Decimal(0)
    for step in range(1, 12):
        share = left + (100 - left) * step / 12
        add_reading(window, left=f"{share:.2f}", observed_at=now - timedelta(minutes=18 * step))


def _spend(*, now: datetime) -> None:
    """Spend some of the cheap rung's budget, a part of it only estimated, and hold some more."""
    from ladder.services.holds import HoldRequest, grant_hold
    from ladder.services.usage import record_usage
    from ladder.services.usage_items import UsageItem
    from omniroute_admin.common.history import Actor

    pair, router = {"connection_id": "ds-api", "provider": "deepseek", "model": "deepseek-chat"}, Actor(name="router")
    paid = UsageItem(event_id="paid", occurred_at=now, cost_usd=Decimal("3.15"), **pair)
    record_usage(items=[paid, UsageItem(event_id="unpriced", occurred_at=now, **pair)], actor=router, now=now)
    hold = HoldRequest(hold_id="held", estimated_cost_usd=Decimal("0.65"), ttl_seconds=600, **pair)
    grant_hold(request=hold, actor=router, now=now)


def _shoot(chromium: str, url: str) -> None:
    from playwright.sync_api import sync_playwright

    TARGET.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--disable-gpu"])
        context = browser.new_context(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        page = context.new_page()
        _take(page, f"{url}/login", "login")
        context.add_cookies([{"name": "sessionid", "value": _session(), "url": url}])
        _take(page, url, "nothing-yet")
        _fill()
        for name, path, width, theme in PICTURES:
            page.set_viewport_size({"width": width, "height": NARROW_HEIGHT if width < 840 else 900})
            page.emulate_media(color_scheme=theme)
            _take(page, url + path, name, whole=width >= 840)
        page.set_viewport_size({"width": 1440, "height": 900})
        page.emulate_media(color_scheme="light")
        _try_out(page, url)
        browser.close()


def _try_out(page: "Page", url: str) -> None:
    """Show what a change of the settings would move, as it is typed."""
    page.goto(f"{url}/tuning")
    page.get_by_label("Exit cutoff").fill("40")
    page.locator("#whatif table").first.wait_for()
    page.screenshot(path=TARGET / "tuning-preview-1440-light.png", full_page=True)
    print("docs/screenshots/tuning-preview-1440-light.png")


def _take(page: "Page", address: str, name: str, *, whole: bool = True) -> None:
    page.goto(address)
    page.wait_for_timeout(250)  # charts draw after the page has come
    height = page.evaluate("document.documentElement.scrollHeight") if whole else NARROW_HEIGHT
    size = page.viewport_size or {"width": 1440}
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(height, NARROW_HEIGHT)}
    page.screenshot(path=TARGET / f"{name}.png", full_page=whole, clip=clip)
    print(f"docs/screenshots/{name}.png")


if __name__ == "__main__":
    sys.exit(main())
