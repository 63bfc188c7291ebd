"""`/metrics`: who may, in which forms, with which names; and that dashboard, rules and handbook name what there is."""

import json
import re
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.db import OperationalError, connection
from django.test import Client
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from ladder.services.demo import start_demo
from omniroute_admin.common.clock import now
from omniroute_admin.common.meters import meters
from omniroute_admin.services.heartbeats import record_beat, record_run
from tests.factories_ladder import NOW
from tests.router import Router, make_router
from tests.shared import ROOT

DASHBOARD = ROOT / "docs" / "grafana" / "omniroute_admin.json"
ALERTS = ROOT / "docs" / "grafana" / "alerts.yaml"
HANDBOOK = ROOT / "docs" / "operations.md"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
OF_PROMETHEUS = {"up"}
"""What Prometheus itself knows of a target."""


def text_of(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    return b"".join(response.streaming_content).decode()


@pytest.fixture
def demo(db: None) -> None:
    """Fill the database as a demo does, with budgets, a task and signs of life."""
    from ladder.models import RungBudget

    call_command("load_facts", verbosity=0)
    call_command("sync_prices", verbosity=0)
    RungBudget.objects.update(amount_usd=5)
    start_demo(now=now())
    for name in ("beat", "worker", "scheduler"):
        record_beat(name=name, now=NOW)
    record_run(task="a.task", is_success=True, took_seconds=0.25, now=NOW)
    record_run(task="a.task", is_success=False, took_seconds=1.5, now=NOW)


@pytest.fixture
def scraper(db: None) -> Router:
    return make_router("metrics:read")


# --- who may ---------------------------------------------------------------------------------------------------------
@pytest.mark.django_db
def test_a_key_without_the_scope_is_refused_and_nobody_is_asked_for_a_key() -> None:
    refused = make_router("pools:read", "telemetry:write").get("/metrics")
    assert (refused.status_code, refused.json()["code"]) == (403, "scope_lacking")
    nobody = Client().get("/metrics")
    assert (nobody.status_code, nobody["WWW-Authenticate"]) == (401, "Bearer")
    assert nobody["Content-Type"] == "application/problem+json"
    wrong = Client().get("/metrics", headers={"Authorization": "Bearer orl_" + "x" * 43})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "unauthenticated")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("role", "status"), [("viewer", 403), ("operator", 200), ("curator", 403), ("auditor", 200), ("administrator", 200)]
)
def test_a_session_may_by_its_role(client: Client, django_user_model: Any, role: str, status: int) -> None:
    from django.contrib.auth.models import Group

    user = django_user_model.objects.create_user(role)
    user.groups.set(Group.objects.filter(name=role))
    client.force_login(user)
    assert client.get("/metrics").status_code == status


def test_it_is_asked_under_any_host_name_and_without_tls(scraper: Router, settings: Any) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert "omniroute_revision" in text_of(scraper.get("/metrics", Host="10.0.0.7:8000"))
    assert scraper.client.post("/metrics").status_code in {401, 405}


# --- what it says ----------------------------------------------------------------------------------------------------
def test_both_forms_are_well_formed_and_say_the_same(demo: None, scraper: Router) -> None:
    plain_answer = scraper.get("/metrics", Accept="text/plain;version=0.0.4;q=0.5, */*;q=0.1")
    plain = list(text_string_to_metric_families(text_of(plain_answer)))
    assert plain_answer["Content-Type"].startswith("text/plain; version=0.0.4")
    open_answer = scraper.get("/metrics", Accept=f"{OPENMETRICS};q=0.8, text/plain;q=0.5")
    opened = list(openmetrics_families(text_of(open_answer)))
    assert open_answer["Content-Type"].startswith("application/openmetrics-text")
    assert {one.name for one in plain} == {one.name for one in opened}
    assert scraper.get("/metrics", Accept="image/png").status_code == 200


def test_every_name_has_its_unit_and_help_and_the_labels_are_few(demo: None, scraper: Router) -> None:
    for family in text_string_to_metric_families(text_of(scraper.get("/metrics"))):
        assert family.name.startswith("omniroute_"), family.name
        assert family.documentation.endswith("."), family.name
        labels = {label for sample in family.samples for label in sample.labels}
        assert labels <= KNOWN_LABELS[family.name], (family.name, labels)
        if any(word in family.documentation for word in ("How long", "Time", "When")):
            assert family.name.endswith("_seconds"), family.name


def labels_of_samples() -> dict[str, set[str]]:
    fixed = {meter.name.removesuffix("_total"): {*meter.labels, "le"} for meter in meters()}
    one = {
        "omniroute_pool_empty": "pool",
        "omniroute_pool_candidates": "pool",
        "omniroute_pool_return_timestamp_seconds": "pool",
        "omniroute_serving_rung": "rung",
        "omniroute_serving_rung_index": "",
        "omniroute_rung_connections": "rung",
        "omniroute_rung_usable_connections": "rung",
        "omniroute_rung_unusable_connections": "rung code",
        "omniroute_window_remaining_percent": "provider connection window",
        "omniroute_window_connections_left_out": "",
        "omniroute_budget_spent_usd": "rung",
        "omniroute_budget_held_usd": "rung",
        "omniroute_budget_left_usd": "rung",
        "omniroute_budget_amount_usd": "rung",
        "omniroute_budget_window_end_timestamp_seconds": "rung",
        "omniroute_cooldowns": "cause",
        "omniroute_breakers_open": "",
        "omniroute_newest_reading_timestamp_seconds": "",
        "omniroute_revision": "",
        "omniroute_snapshot_connections": "",
        "omniroute_heartbeat_timestamp_seconds": "process",
        "omniroute_task_success_timestamp_seconds": "task",
        "omniroute_task_failure_timestamp_seconds": "task",
        "omniroute_task_failures": "task",
        "omniroute_task_duration_seconds": "task",
        "omniroute_database_up": "",
        "omniroute_build_info": "version python django database",
        "omniroute_broker_up": "",
        "omniroute_queue_messages": "",
        "omniroute_queue_oldest_age_seconds": "",
    }
    return fixed | {name: set(labels.split()) for name, labels in one.items()}


KNOWN_LABELS = labels_of_samples()


def test_every_metric_that_is_known_is_told(demo: None, scraper: Router) -> None:
    told = {family.name for family in text_string_to_metric_families(text_of(scraper.get("/metrics")))}
    assert told == set(KNOWN_LABELS)


def test_periodic_work_is_told_as_it_was_noted(demo: None, scraper: Router) -> None:
    text = text_of(scraper.get("/metrics"))
    at = f"{NOW.timestamp():.8g}".replace("e+09", "")
    for name in ("chain", "worker", "scheduler"):
        assert re.search(rf'omniroute_heartbeat_timestamp_seconds{{process="{name}"}} {at[:3]}', text), text
    assert 'omniroute_task_failures{task="a.task"} 1.0' in text
    assert 'omniroute_task_duration_seconds{task="a.task"} 1.5' in text


def test_what_routers_report_is_counted_by_what_became_of_it(demo: None, scraper: Router) -> None:
    def items() -> dict[str, float]:
        found = re.findall(
            r'^omniroute_telemetry_items_total{kind="readings",outcome="(\w+)"} (\S+)$',
            text_of(scraper.get("/metrics")),
            re.MULTILINE,
        )
        return {word: float(number) for word, number in found}

    before = items()
    reading = {
        "connection_id": "demo-codex-1",
        "window": "5h",
        "remaining_percent": 40,
        "observed_at": f"{now():%FT%TZ}",
    }
    body = {"readings": [reading, reading, reading | {"connection_id": "nobody"}]}
    answer = make_router("telemetry:write").post("/api/v1/telemetry/readings", body).json()
    after = {word: number - before.get(word, 0) for word, number in items().items()}
    words = {"accepted": "accepted", "duplicates": "duplicate", "superseded": "superseded"}
    expected = {word: answer[name] for name, word in words.items()} | {"rejected": len(answer["rejected"])}
    assert {word: after.get(word, 0) for word in expected} == expected
    assert expected["rejected"] == 1


def test_no_key_no_hash_and_no_name_of_a_person_is_in_it(demo: None, scraper: Router, django_user_model: Any) -> None:
    from omniroute_admin.common.models import ApiKey

    django_user_model.objects.create_superuser("a-person", password="correct-horse-battery")
    secret = scraper.headers["Authorization"].removeprefix("Bearer ")
    Client().get(f"/{secret}?key={secret}", headers={"Authorization": f"Bearer {secret}", "User-Agent": secret})
    text = text_of(scraper.get("/metrics"))
    for word in (secret, secret[:12], ApiKey.objects.get().secret_hash, "a-person", "correct-horse"):
        assert word not in text


# --- without the database --------------------------------------------------------------------------------------------
@pytest.mark.django_db(transaction=True)
def test_without_the_database_nobody_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    scraper = make_router("metrics:read")
    connection.close()
    monkeypatch.setitem(connection.settings_dict, "NAME", "/nowhere/at-all")
    answer = scraper.get("/metrics")
    assert (answer.status_code, answer.json()["code"]) == (503, "state_unavailable")
    connection.close()


def test_a_database_that_goes_after_the_key_was_checked_leaves_the_counts(scraper: Router) -> None:
    def gone(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "ladder_" in sql:
            raise OperationalError("the server closed the connection")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(gone):
        text = text_of(scraper.get("/metrics"))
    assert "\nomniroute_database_up 0.0\n" in text
    assert "omniroute_http_request_duration_seconds_count" in text
    assert "omniroute_pool_empty{" not in text


# --- what stands on the names ----------------------------------------------------------------------------------------
def names_told(demo_text: str) -> set[str]:
    return {sample.name for family in text_string_to_metric_families(demo_text) for sample in family.samples} | {
        family.name for family in text_string_to_metric_families(demo_text)
    }


def names_in(expression: str) -> set[str]:
    """Return the metrics that a query names: words that are no function, no label and no part of a text."""
    bare = re.sub(r'"[^"]*"', '""', expression)
    bare = re.sub(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)", "", bare)
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", bare)
    words = re.findall(r"[a-zA-Z_:][\w:]*(?!\w)(?!\s*\()", bare)
    return {word for word in words if word not in {"and", "or", "unless", "bool", "offset"}}


def dashboard_queries() -> list[str]:
    board = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]


def alert_queries() -> list[str]:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return [rule["expr"] for group in groups for rule in group["rules"]]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ('max by (pool) (a_b{c="d e"})', {"a_b"}),
        ("histogram_quantile(0.9, sum by (le, x) (rate(h_bucket[5m]))) > 0.1", {"h_bucket"}),
        ("(a + b) / (c > 0) and d unless on (x) e", {"a", "b", "c", "d", "e"}),
        ("time() - max(t_seconds)", {"t_seconds"}),
    ],
)
def test_the_reader_of_queries_finds_the_metrics(expression: str, names: set[str]) -> None:
    assert names_in(expression) == names


def test_dashboard_and_rules_ask_for_metrics_that_there_are_with_labels_they_have(demo: None, scraper: Router) -> None:
    make_router("pools:read").get("/api/v1/pools/auto/thrifty")
    told = names_told(text_of(scraper.get("/metrics"))) | OF_PROMETHEUS
    # Counts of what has not happened yet have a name and no sample.
    told |= {f"{meter.name}{end}" for meter in meters() for end in ("", "_bucket", "_count", "_sum")}
    queries = [*dashboard_queries(), *alert_queries()]
    assert len(queries) > 50
    for query in queries:
        assert names_in(query), query
        assert names_in(query) <= told, (query, names_in(query) - told)
        for name, labels in re.findall(r"(\w+)\{([^}]*)\}", query):
            family = re.sub(r"_(bucket|count|sum|total)$", "", name)
            asked = set(re.findall(r"(\w+)\s*(?:=|!=|=~|!~)", labels)) - {"job"}
            assert asked <= KNOWN_LABELS.get(family, set()), query


def test_every_state_and_count_is_on_the_dashboard() -> None:
    asked = {
        re.sub(r"_(bucket|count|sum|total)$", "", name) for query in dashboard_queries() for name in names_in(query)
    }
    not_drawn = {"omniroute_rung_connections", "omniroute_pool_candidates", "omniroute_serving_rung"}
    assert set(KNOWN_LABELS) - asked == not_drawn


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    board = json.loads(DASHBOARD.read_text())
    assert board["schemaVersion"] >= 36
    assert (board["uid"], bool(board["title"])) == ("omniroute-admin", True)
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    rows = [panel["title"] for panel in panels if panel["type"] == "row"]
    assert rows == ["Decision", "Quota", "Money", "API", "Periodic work"]
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"]) > 0


def test_every_rule_says_how_grave_it_is_and_what_it_means() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"]["summary"].endswith(".")


def test_the_handbook_lists_what_is_told(demo: None, scraper: Router) -> None:
    families = list(text_string_to_metric_families(text_of(scraper.get("/metrics"))))
    listed = re.findall(r"^\| `(omniroute_\w+)` \| (.*?) \| (.*) \|$", HANDBOOK.read_text(), re.MULTILINE)
    labels = {name: " ".join(sorted(KNOWN_LABELS[name] - {"le"})) for name in KNOWN_LABELS}
    endings = {"counter": "_total"}
    expected = {f"{one.name}{endings.get(one.type, '')}": (labels[one.name], one.documentation) for one in families}
    assert {name: (" ".join(sorted(told.split())), meaning) for name, told, meaning in listed} == expected
