"""An installation in use: the demo fleet, money, refusals, history, people, and many rows."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, time, timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import time_machine
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections
from django.db.utils import load_backend
from django.test import Client

from ladder.models import Connection, QuotaReading, QuotaWindow, UsageEvent
from ladder.services.alert_rules import create_rule
from ladder.services.alerts import look_for_alerts
from ladder.services.demo import move_demo
from ladder.services.timeline import note_flips, sample_occupancy
from omniroute_admin.common.clock import now
from omniroute_admin.common.history import Actor
from omniroute_admin.common.models import Heartbeat, RevisionStep
from omniroute_admin.common.models_sign_in import OidcIdentity, RecoveryCode, SecondFactor, Session, SignInCount
from omniroute_admin.environment import database_from_url
from tests.factories_ladder import AlertDeliveryFactory, AlertFactory, AlertRuleFactory
from tests.router import Router, make_router

MANY = 6_000
POOLS = ["auto/subscription", "auto/thrifty", "auto/coding:thrifty", "auto/best-free"]
SECOND = timedelta(seconds=1)
ODD = 'quote " backslash \\ line\nbreak tab\t ü 漢 🙂 \u2028 end'


def fill() -> Router:
    """Fill the database of this process and return a router that may ask for everything."""
    call_command("quickstart", "--no-serve", "--demo", stdout=StringIO())
    router = make_router()
    at = now()
    move_demo(now=at)
    _report(router)
    note_flips(now=now())
    sample_occupancy(now=now())
    _alerts(at)
    _people()
    _many()
    Heartbeat.objects.create(name="beat", beat_at=at)
    return router


def _report(router: Router) -> None:
    at = (now() - SECOND).isoformat()
    paid = {"connection_id": "demo-openrouter-1", "model": "deepseek/deepseek-chat", "occurred_at": at}
    hold = {"connection_id": "demo-openrouter-1", "model": "deepseek/deepseek-chat", "hold_id": "h1"}
    hold |= {"estimated_cost_usd": "0.25", "ttl_seconds": 600}
    calls: list[tuple[str, str, Any]] = [
        ("post", "telemetry/usage", {"events": [{**paid, "event_id": "e1", "cost_usd": "0.123456"}]}),
        ("post", "telemetry/usage", {"events": [{**paid, "event_id": "e2", "input_tokens": 10, "output_tokens": 3}]}),
        (
            "post",
            "telemetry/usage",
            {"events": [{**paid, "event_id": "e3", "cost_usd": "0.5", "corrects_event_id": "e1"}]},
        ),
        (
            "patch",
            "settings",
            {"exit_cutoff_percent": "2.5", "rung_budgets": {"cheap": {"amount_usd": "5"}}, "reason": ODD},
        ),
        ("post", "holds", hold),
        ("post", "telemetry/breakers", {"events": [{"provider": "codex", "state": "open", "occurred_at": at}]}),
    ]
    for method, path, body in calls:
        answer = router.send(method, f"/api/v1/{path}", body)
        assert answer.status_code < 300, answer.content


def _alerts(at: datetime) -> None:
    """Let a rule with quiet hours, and one without, have raised something with its delivery."""
    by: dict[str, Any] = {"actor": Actor(name="mira"), "reason": ODD, "now": at}
    for subject, quiet in (("auto/subscription", time(22, 30)), ("auto/vision:subscription", None)):
        create_rule(
            kind="pool_empty", name=subject, subject=subject, channels=["ops"], quiet_from=quiet, quiet_to=quiet,
            quiet_days=["monday", "sunday"] if quiet else [], **by,
        )  # fmt: skip
    look_for_alerts(now=at)


def _people() -> None:
    user = User.objects.create_user("kai", "kai@example.com", "correct-horse-battery")
    user.groups.add(Group.objects.get(name="operator"))
    permission = Permission.objects.get(codename="view_connection")
    user.user_permissions.add(permission)
    Group.objects.create(name="night shift").permissions.add(permission)
    kind = ContentType.objects.get_for_model(Connection)
    LogEntry.objects.create(
        user=user, content_type=kind, object_id="1", object_repr=ODD, action_flag=CHANGE, change_message="[]"
    )
    Client().force_login(user)
    SignInCount.objects.create(kind="account", name="x" * 64, tries=3, began_at=now())
    factor = SecondFactor.objects.create(user=user, secret_box=ODD, made_at=now(), last_step=7)
    RecoveryCode.objects.create(factor=factor, code_hash="0" * 64)
    OidcIdentity.objects.create(user=user, issuer="https://id.example.com", subject="kai", made_at=now())
    rule = AlertRuleFactory(quiet_from=time(22, 30, 15, 250), quiet_to=time(6), quiet_days=["monday"])
    AlertDeliveryFactory(alert=AlertFactory(rule=rule))


def _many() -> None:
    at = now() - timedelta(days=2)
    window, account = QuotaWindow.objects.order_by("pk")[0], Connection.objects.get(connection_id="demo-openrouter-1")
    QuotaReading.objects.bulk_create(
        QuotaReading(
            window=window,
            observed_at=at + number * SECOND + timedelta(microseconds=number % 1_000),
            received_at=at,
            remaining_percent=Decimal(number % 10_000_000) / 100_000_000 + 3,
            raw=ODD,
        )
        for number in range(MANY)
    )
    UsageEvent.objects.bulk_create(
        UsageEvent(
            event_id=f"many-{number}",
            connection=account,
            model="m",
            occurred_at=at + number * SECOND,
            received_at=at,
            cost_usd=Decimal(number).scaleb(-6),
            booked_cost=Decimal(number).scaleb(-6),
            booked_usd=Decimal(number).scaleb(-6),
            booked_at=at + number * SECOND,
            rung="cheap",
            billing="metered",
            money_kind="budget",
        )
        for number in range(MANY)
    )


def rows_of() -> dict[str, list[Any]]:
    """Return every row of every table but those a restore does not bring, read by the ORM; of rows that migrations
    make, their names in the place of their numbers."""
    left = {"sessions.Session", "common.Session", "common.SignInCount", "common.KeyAllowance", "common.RevisionStep"}
    left |= {"common.Heartbeat", "common.TaskRun", "common.Revision", "contenttypes.ContentType", "auth.Permission"}
    found: dict[str, list[Any]] = {}
    for model in apps.get_models(include_auto_created=True):
        if model._meta.label not in left:
            names = [_named(field) for field in model._meta.local_concrete_fields]
            rows = model._base_manager.order_by("pk").values_list(*names)
            found[model._meta.label] = [tuple(map(_plain, row)) for row in rows]
    return found


def _named(field: Any) -> str:
    if field.related_model is ContentType:
        return f"{field.name}__model"
    return f"{field.name}__codename" if field.related_model is Permission else str(field.attname)


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, memoryview) else value


def answers(router: Router, at: datetime) -> list[Any]:
    """Return what routers and people are told at an instant that must not change by a restore."""
    with time_machine.travel(at, tick=False):
        return _answers(router)


def _answers(router: Router) -> list[Any]:
    told: list[Any] = []
    for pool in POOLS:
        answer = router.get(f"/api/v1/pools/{pool}?explain=true").json()
        told.append({name: answer[name] for name in answer if name not in {"revision", "evaluated_at", "valid_until"}})
    budgets = router.get("/api/v1/occupancy").json()["rungs"]
    told.append([rung["budget"] for rung in budgets])
    told.append(router.get("/api/v1/settings").json())
    return told


@contextmanager
def standing_on(url: str) -> Iterator[None]:
    """Let this process's default connection be one to another database, within the block."""
    own = connections["default"]
    entry = connections.configure_settings({"default": database_from_url(url) | {"CONN_MAX_AGE": 0}})["default"]
    connections["default"] = other = load_backend(entry["ENGINE"]).DatabaseWrapper(entry, "default")
    try:
        yield
    finally:
        other.close()
        connections["default"] = own


def passing_rows() -> list[int]:
    """Return how many rows there are of what a restore ends: sessions, tries, steps of the revision."""
    return [model.objects.count() for model in (Session, SignInCount, RevisionStep)]
