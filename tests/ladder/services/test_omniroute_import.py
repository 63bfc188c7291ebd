"""Storing what an OmniRoute database says: once, truthfully, and never over an operator."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec
import pytest
from django.db import IntegrityError
from django.db.models import Model

from billing_catalog.models import BillingEntry, ProviderAlias
from ladder.adapters.omniroute import (
    ImportedConnection,
    ImportedCooldown,
    ImportedReading,
    ImportProblem,
    OmnirouteContents,
    RowsSeen,
    read_omniroute,
)
from ladder.core.values import Combine, CooldownCause, ReadingStatus
from ladder.models import Connection, Cooldown, QuotaReading, QuotaWindow
from ladder.services.omniroute_import import import_omniroute
from ladder.services.omniroute_report import Counts, ImportReport
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.selectors.revision import current_revision
from tests.factories import ConnectionFactory, CooldownFactory, QuotaWindowFactory
from tests.shared import needs_shared, shared_path

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 29, 21, 35, tzinfo=UTC)
IMPORTER = Actor(name="a test import")
OPERATOR = Actor(name="an operator")


def a_connection(connection_id: str = "c1", **fields: object) -> ImportedConnection:
    usual = {"provider": "claude", "auth_type": "oauth", "label": f"claude {connection_id}", "is_enabled": True}
    return ImportedConnection(connection_id=connection_id, **(usual | fields))


def a_reading(window: str = "5h", percent: str | None = "50", **fields: object) -> ImportedReading:
    usual = {
        "connection_id": "c1",
        "provider": "claude",
        "unlimited": False,
        "status": ReadingStatus.SAFE,
        "reset_at": NOW + timedelta(hours=2),
        "observed_at": NOW - timedelta(seconds=30),
        "combine": Combine.LIMIT,
        "model": None,
    }
    return ImportedReading(window=window, remaining_percent=percent and Decimal(percent), **(usual | fields))


def a_cooldown(cause: CooldownCause = CooldownCause.RATE_LIMIT, **fields: object) -> ImportedCooldown:
    usual = {
        "connection_id": "c1",
        "provider": "claude",
        "model": None,
        "until": NOW + timedelta(hours=1),
        "reported_at": NOW - timedelta(minutes=10),
        "window": None,
    }
    return ImportedCooldown(cause=cause, **(usual | fields))


def run(
    *,
    connections=(),
    readings=(),
    cooldowns=(),
    problems=(),
    skipped: int = 0,
    now: datetime = NOW,
    dry_run: bool = False,
) -> ImportReport:
    seen = RowsSeen(
        connections=len(connections) + skipped, snapshots=len(readings), windows=len(readings), cache_entries=0
    )
    contents = OmnirouteContents(
        connections=tuple(connections),
        readings=tuple(readings),
        cooldowns=tuple(cooldowns),
        problems=tuple(problems),
        seen=seen,
    )
    return import_omniroute(contents=contents, actor=IMPORTER, now=now, dry_run=dry_run)


def codes(report: ImportReport) -> list[str]:
    return [problem.code for problem in report.problems]


def edit(row: Model, **fields: object) -> None:
    for name, value in fields.items():
        setattr(row, name, value)
    stamp(instance=row, actor=OPERATOR, reason="because", now=NOW)
    row.save()


def everything() -> list[object]:
    """All rows the import can touch, history included, and the revision."""
    models = [Connection, Connection.history.model, Cooldown, Cooldown.history.model, QuotaWindow, QuotaReading]
    rows = [list(model.objects.order_by("pk").values()) for model in models]
    return [*rows, current_revision()]


def test_a_first_run_creates_connection_window_reading_and_cooldown():
    report = run(connections=[a_connection()], readings=[a_reading()], cooldowns=[a_cooldown()])
    one = Counts(created=1)
    assert (report.connections, report.windows, report.readings, report.cooldowns) == (one, one, one, one)
    assert report.problems == ()
    row = Connection.objects.get()
    assert (row.connection_id, row.provider, row.auth_type, row.label) == ("c1", "claude", "oauth", "claude c1")
    assert (row.is_enabled, row.is_implied, row.overage_override) == (True, False, None)
    window = QuotaWindow.objects.get()
    assert (window.window, window.remaining_percent, window.combine) == ("5h", 50, "limit")
    assert window.observed_at == NOW - timedelta(seconds=30)
    cooldown = Cooldown.objects.get()
    assert cooldown.asked_until == cooldown.effective_until == NOW + timedelta(hours=1)
    assert (cooldown.set_by, cooldown.reported_at) == (IMPORTER.name, NOW - timedelta(minutes=10))


def test_the_history_names_who_imported_when_and_why():
    run(connections=[a_connection()])
    version = Connection.history.get()
    assert (version.history_actor, version.history_date) == (IMPORTER.name, NOW)
    assert version.history_change_reason == "Imported from an OmniRoute database"


def test_the_same_file_again_saves_nothing_and_moves_no_revision():
    rows = {
        "connections": [a_connection(), a_connection("c2")],
        "readings": [
            a_reading(),
            a_reading("weekly", None, status=ReadingStatus.UNKNOWN),
            a_reading("x", None, unlimited=True),
        ],
        "cooldowns": [a_cooldown(), a_cooldown(CooldownCause.BAN, connection_id="c2", until=None, reported_at=None)],
    }
    run(**rows)
    before = everything()
    report = run(**rows, now=NOW + timedelta(minutes=5))
    assert everything() == before
    assert report.connections == report.cooldowns == Counts(unchanged=2)
    assert report.windows == report.readings == Counts(unchanged=3)


def test_a_run_that_changes_something_moves_the_revision_once():
    run(connections=[a_connection()])
    before = current_revision()
    report = run(connections=[a_connection(is_enabled=False)], readings=[a_reading()])
    assert report.connections == Counts(changed=1)
    assert current_revision() == before + 1


def test_a_dry_run_reports_the_same_and_writes_nothing():
    rows = {"connections": [a_connection()], "readings": [a_reading()], "cooldowns": [a_cooldown()]}
    before = everything()
    dry = run(**rows, dry_run=True)
    assert everything() == before
    assert dry == msgspec.structs.replace(run(**rows), dry_run=True)


def test_a_row_the_import_made_follows_the_file():
    run(connections=[a_connection()])
    run(connections=[a_connection(is_enabled=False, auth_type="apikey", label="another")])
    row = Connection.objects.get()
    assert (row.is_enabled, row.auth_type, row.label) == (False, "apikey", "another")


def test_an_operators_edit_stays_field_by_field_and_is_reported():
    run(connections=[a_connection()])
    edit(Connection.objects.get(), label="My plan", is_enabled=False, overage_override="meters-to-paid")
    report = run(connections=[a_connection(auth_type="apikey")])
    row = Connection.objects.get()
    assert (row.label, row.is_enabled, row.overage_override) == ("My plan", False, "meters-to-paid")
    assert row.auth_type == "apikey"
    assert codes(report) == ["kept_as_edited", "kept_as_edited"]
    assert report.connections == Counts(changed=1)


def test_an_edit_that_was_taken_back_is_still_the_operators():
    run(connections=[a_connection()])
    edit(Connection.objects.get(), is_enabled=False)
    edit(Connection.objects.get(), is_enabled=True)
    run(connections=[a_connection(is_enabled=False)])
    assert Connection.objects.get().is_enabled


def test_a_connection_someone_else_made_is_left_as_it_is_but_gets_its_readings():
    ConnectionFactory(connection_id="c1", label="Mine", is_enabled=False)
    report = run(connections=[a_connection()], readings=[a_reading()])
    row = Connection.objects.get()
    assert (row.label, row.is_enabled) == ("Mine", False)
    assert (report.connections, report.readings) == (Counts(unchanged=1), Counts(created=1))


def test_an_id_known_under_another_provider_is_skipped_with_all_that_belongs_to_it():
    ConnectionFactory(connection_id="c1", provider="codex")
    report = run(connections=[a_connection()], readings=[a_reading()], cooldowns=[a_cooldown()])
    assert codes(report) == ["provider_mismatch"]
    skipped = Counts(skipped=1)
    assert (report.connections, report.readings, report.cooldowns) == (skipped, skipped, skipped)
    assert not QuotaWindow.objects.exists()


def test_a_provider_alias_is_resolved_on_the_way_in():
    ProviderAlias.objects.create(alias="cc", provider="claude", created_at=NOW, updated_at=NOW)
    run(connections=[a_connection(provider="cc")], readings=[a_reading(provider="cc")])
    assert Connection.objects.get().provider == "claude"
    assert QuotaWindow.objects.get().connection.provider == "claude"


def test_a_connection_deleted_here_is_not_brought_back():
    ConnectionFactory(connection_id="c1", deleted_at=NOW)
    report = run(connections=[a_connection()], readings=[a_reading()])
    assert codes(report) == ["deleted_here"]
    assert not Connection.objects.live().exists()
    assert not QuotaWindow.objects.exists()


def test_a_connection_made_anew_after_a_deletion_is_the_one_that_is_meant():
    ConnectionFactory(connection_id="c1", deleted_at=NOW)
    anew = ConnectionFactory(connection_id="c1")
    run(connections=[a_connection()], readings=[a_reading()])
    assert QuotaWindow.objects.get().connection == anew


def test_a_connection_that_vanished_from_the_file_is_left_alone_and_reported():
    run(connections=[a_connection(), a_connection("c2")], readings=[a_reading()])
    ConnectionFactory(connection_id="never-imported")
    before = everything()
    report = run(connections=[a_connection("c2")])
    assert everything() == before
    assert [(problem.key, problem.code) for problem in report.problems] == [("c1", "vanished")]


def test_rows_the_file_could_not_give_count_as_skipped_and_its_problems_come_first():
    found = ImportProblem(table="provider_connections", key="row 1", code="bad_id", detail="x")
    report = run(connections=[a_connection()], problems=[found], skipped=2)
    assert report.connections == Counts(created=1, skipped=2)
    assert report.problems == (found,)


def test_a_newer_reading_replaces_the_window_and_an_older_one_goes_to_the_history():
    run(connections=[a_connection()], readings=[a_reading(percent="50")])
    newer = run(connections=[a_connection()], readings=[a_reading(percent="40", observed_at=NOW)])
    assert (newer.windows, newer.readings) == (Counts(changed=1), Counts(created=1))
    older = run(connections=[a_connection()], readings=[a_reading(percent="60", observed_at=NOW - timedelta(hours=1))])
    assert (older.windows, older.readings) == (Counts(unchanged=1), Counts(created=1))
    assert QuotaWindow.objects.get().remaining_percent == 40
    assert QuotaReading.objects.count() == 3


def test_a_window_the_last_fetch_no_longer_has_stops_counting_as_in_spec_q6():
    run(connections=[a_connection()], readings=[a_reading("5h"), a_reading("weekly:opus")])
    report = run(connections=[a_connection()], readings=[a_reading("5h", observed_at=NOW)])
    assert dict(QuotaWindow.objects.values_list("window", "is_reported")) == {"5h": True, "weekly:opus": False}
    assert report.windows == Counts(changed=2)


def test_a_window_a_router_reported_later_keeps_counting():
    row = ConnectionFactory(connection_id="c1")
    QuotaWindowFactory(connection=row, window="monthly", observed_at=NOW, received_at=NOW)
    run(connections=[a_connection()], readings=[a_reading("5h")])
    assert QuotaWindow.objects.get(window="monthly").is_reported


def test_an_operators_muting_and_cutoff_of_a_window_stay():
    run(connections=[a_connection()], readings=[a_reading()])
    QuotaWindow.objects.update(is_muted=True, exit_cutoff_percent=20)
    run(connections=[a_connection()], readings=[a_reading(percent="40", observed_at=NOW)])
    window = QuotaWindow.objects.get()
    assert (window.is_muted, window.exit_cutoff_percent, window.remaining_percent) == (True, 20, 40)


def test_a_longer_cooldown_extends_and_a_shorter_one_does_not_shorten_as_in_spec_c5():
    run(connections=[a_connection()], cooldowns=[a_cooldown(until=NOW + timedelta(hours=1))])
    shorter = a_cooldown(until=NOW + timedelta(minutes=5), reported_at=NOW)
    run(connections=[a_connection()], cooldowns=[shorter])
    assert Cooldown.objects.get().effective_until == NOW + timedelta(hours=1)
    longer = a_cooldown(until=NOW + timedelta(hours=3), reported_at=NOW)
    assert run(connections=[a_connection()], cooldowns=[longer]).cooldowns == Counts(changed=1)
    assert Cooldown.objects.get().effective_until == NOW + timedelta(hours=3)


def test_a_cooldown_that_ended_is_set_again_by_a_new_report():
    connection = ConnectionFactory(connection_id="c1")
    CooldownFactory(connection=connection, cause="rate_limit", asked_until=NOW, effective_until=NOW)
    run(connections=[a_connection()], cooldowns=[a_cooldown()])
    assert Cooldown.objects.get().effective_until == NOW + timedelta(hours=1)


def plan(provider: str = "claude") -> None:
    BillingEntry.objects.create(
        provider=provider,
        auth_type="oauth",
        billing="subscription",
        overage="hard-stop",
        created_at=NOW,
        updated_at=NOW,
    )


def a_quota_cooldown(**fields: object) -> ImportedCooldown:
    return a_cooldown(CooldownCause.QUOTA, **({"until": NOW + timedelta(days=365), "window": "5h"} | fields))


def test_a_quota_cooldown_of_a_plan_ends_at_the_reset_of_its_window_as_in_spec_c1_and_c2():
    plan()
    used_up = a_reading("5h", "0")
    run(connections=[a_connection()], readings=[used_up], cooldowns=[a_quota_cooldown()])
    cooldown = Cooldown.objects.get()
    assert cooldown.asked_until == NOW + timedelta(days=365)
    assert cooldown.effective_until == NOW + timedelta(hours=2)


def test_a_clamped_cooldown_is_not_lengthened_by_the_same_file_after_the_reset():
    plan()
    rows = {"connections": [a_connection()], "readings": [a_reading("5h", "0")], "cooldowns": [a_quota_cooldown()]}
    run(**rows)
    before = everything()
    run(**rows, now=NOW + timedelta(hours=5))
    assert everything() == before


@pytest.mark.parametrize("cause", [CooldownCause.RATE_LIMIT, CooldownCause.AUTH])
def test_only_the_cause_quota_is_clamped(cause):
    plan()
    run(
        connections=[a_connection()],
        readings=[a_reading("5h", "0")],
        cooldowns=[a_cooldown(cause, until=NOW + timedelta(days=9))],
    )
    assert Cooldown.objects.get().effective_until == NOW + timedelta(days=9)


def test_a_quota_cooldown_of_a_metered_connection_is_not_clamped():
    run(connections=[a_connection()], readings=[a_reading("5h", "0")], cooldowns=[a_quota_cooldown()])
    assert Cooldown.objects.get().effective_until == NOW + timedelta(days=365)


def test_readings_newer_than_the_report_that_are_usable_lift_the_cause_quota_as_in_spec_c3():
    report = run(connections=[a_connection()], readings=[a_reading("5h", "50")], cooldowns=[a_quota_cooldown()])
    assert codes(report) == ["lifted"]
    assert not Cooldown.objects.exists()


@pytest.mark.parametrize(
    "reading",
    [
        a_reading("5h", "50", observed_at=NOW - timedelta(minutes=11)),
        a_reading("5h", "50", observed_at=NOW - timedelta(minutes=9)),
        a_reading("5h", "1"),
    ],
    ids=["older than the report", "stale", "used up"],
)
def test_other_readings_lift_nothing(reading):
    run(connections=[a_connection()], readings=[reading], cooldowns=[a_quota_cooldown()])
    assert Cooldown.objects.exists()


def test_what_readings_lifted_is_not_set_again_by_the_same_file():
    rows = {"connections": [a_connection()], "readings": [a_reading("5h", "50")], "cooldowns": [a_quota_cooldown()]}
    run(**rows)
    before = everything()
    report = run(**rows, now=NOW + timedelta(hours=5))
    assert everything() == before
    assert (codes(report), report.cooldowns) == (["cleared_here"], Counts(skipped=1))


def test_newer_readings_of_a_later_file_lift_a_cooldown_that_stood_and_move_the_revision():
    run(connections=[a_connection()], readings=[a_reading("5h", "0")], cooldowns=[a_quota_cooldown()])
    before = current_revision()
    run(connections=[a_connection()], readings=[a_reading("5h", "90", observed_at=NOW)])
    assert not Cooldown.objects.exists()
    assert current_revision() == before + 1


def test_a_cooldown_cleared_here_is_set_again_only_by_a_newer_report():
    run(connections=[a_connection()], cooldowns=[a_cooldown()])
    row = Cooldown.objects.get()
    stamp(instance=row, actor=OPERATOR, reason="the account is fine", now=NOW)
    row.delete()
    again = run(connections=[a_connection()], cooldowns=[a_cooldown()])
    assert (codes(again), again.cooldowns) == (["cleared_here"], Counts(skipped=1))
    newer = a_cooldown(reported_at=NOW + timedelta(seconds=1))
    assert run(connections=[a_connection()], cooldowns=[newer]).cooldowns == Counts(created=1)


def test_a_cooldown_the_file_no_longer_has_stays_and_is_reported_as_in_spec_c3():
    run(connections=[a_connection()], cooldowns=[a_cooldown(CooldownCause.BAN, until=None)])
    report = run(connections=[a_connection()])
    assert codes(report) == ["cooldown_gone"]
    assert Cooldown.objects.exists()


def test_a_cooldown_a_router_reported_is_not_missed_in_the_file():
    connection = ConnectionFactory(connection_id="c1", label="claude c1")
    CooldownFactory(connection=connection, asked_until=None, effective_until=None)
    assert codes(run(connections=[a_connection()])) == []


def test_nothing_is_written_where_one_row_fails():
    before = everything()
    with pytest.raises(IntegrityError):
        run(connections=[a_connection()], readings=[a_reading()], cooldowns=[a_cooldown(model="")])
    assert everything() == before


@needs_shared
def test_the_real_file_is_imported_whole_and_the_second_time_changes_nothing():
    plan("claude")
    plan("codex")
    contents = read_omniroute(path=shared_path("omniroute/storage.sqlite"), now=NOW)
    report = import_omniroute(contents=contents, actor=IMPORTER, now=NOW)
    assert report.connections == Counts(created=30)
    assert (report.windows, report.readings) == (Counts(created=25), Counts(created=25))
    assert report.cooldowns == Counts(created=6, skipped=1)
    assert [p.key[:8] for p in report.problems if p.code == "lifted"] == ["7497bc91"]
    before = everything()
    again = import_omniroute(contents=contents, actor=IMPORTER, now=NOW)
    assert everything() == before
    assert again.connections == Counts(unchanged=30)


@needs_shared
def test_the_year_long_cooldown_of_the_real_file_is_cut_at_the_reset_of_its_window():
    plan("codex")
    stale = NOW + timedelta(minutes=10)
    contents = read_omniroute(path=shared_path("omniroute/storage.sqlite"), now=stale)
    import_omniroute(contents=contents, actor=IMPORTER, now=stale)
    cooldown = Cooldown.objects.get(cause="quota", connection__provider="codex")
    assert cooldown.asked_until.year == 2027
    assert cooldown.effective_until == datetime(2026, 11, 29, 23, 36, 33, tzinfo=UTC)
