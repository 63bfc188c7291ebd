"""SPEC 3, M6: what is removed of the history changes nothing that is still asked of it."""

from datetime import timedelta

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as FormerSession
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_catalog.models import BillingEntry, TierOverride
from billing_catalog.selectors.past import PastReader
from billing_catalog.services.entries import create_entry, delete_entry, update_entry
from billing_catalog.services.tiers import create_override, delete_override
from billing_catalog.services.undo import preview_undo
from ladder.models import Connection, LadderSettings
from ladder.services.booked_connections import lock_booked
from ladder.services.connections import create_connection, delete_connection, update_connection
from ladder.services.folding import fold_ledger
from ladder.services.old_versions import prune_versions
from ladder.services.pruning import Run
from ladder.services.settings import SettingsChanges, update_settings
from omniroute_admin.common.models_sign_in import Session
from omniroute_admin.common.selectors.history import Asked, find_entries
from omniroute_admin.common.selectors.horizons import audit_horizons
from tests.factories_ladder import NOW, OPERATOR
from tests.ladder.core.strategies import PROPERTY, examples

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)
BEFORE = NOW - 800 * DAY
PROVIDERS = ["alpha", "beta"]


@pytest.fixture(autouse=True)
def nothing_of_the_wall_clock(db):
    """Forget the making of the row of the settings, which is of the day that the test runs."""
    LadderSettings.history.all().delete()


def prune(before=BEFORE, **options):
    return {one.table: one.rows for one in prune_versions(before=before, run=Run(now=NOW, **options)) if one.rows}


def take_no_older(before=BEFORE):
    """Move the horizon of the ledger: events from before are taken no more."""
    fold_ledger(before=before, run=Run(now=NOW))


def by(at, actor=OPERATOR):
    return {"actor": actor, "reason": "a test", "now": at}


def change_settings(days, percent):
    update_settings(changes=SettingsChanges(exit_cutoff_percent=percent), **by(NOW - days * DAY))


def told(kind=None):
    """Return the entries of the history as (days before NOW, act, changed fields), the newest first."""
    entries = find_entries(asked=Asked(kinds=(kind,) if kind else ()), limit=100)
    return [((NOW - one.at) // DAY, one.act, [change.label for change in one.changes]) for one in entries]


def test_of_each_row_what_held_at_the_horizon_and_all_later_stays():
    for days, percent in ((1000, 3), (900, 4), (850, 5), (700, 6), (10, 7)):
        change_settings(days, percent)
    assert prune(dry_run=True) == {"ladder_historicalladdersettings": 2}
    assert prune() == {"ladder_historicalladdersettings": 2}
    assert [days for days, _, _ in told("settings")] == [10, 700, 850]
    assert prune() == {}
    pruned = audit_horizons()["settings"]
    assert (pruned.before, pruned.removed, pruned.moved_at) == (BEFORE, 2, NOW)
    assert LadderSettings.objects.get().exit_cutoff_percent == 7


def test_an_entry_whose_one_before_is_gone_tells_no_change_that_it_did_not_make():
    for days, percent in ((1000, 3), (900, 4), (850, 5), (700, 6)):
        change_settings(days, percent)
    prune()
    assert told("settings") == [(700, "changed", ["exit cutoff"]), (850, "changed", [])]


def test_what_prices_events_stays_as_far_back_as_any_is_taken():
    entry = create_entry(
        values={"provider": "alpha", "auth_type": None, "billing": "metered", "overage": "unknown"},
        **by(NOW - 1000 * DAY),
    )
    for days, billing in ((900, "subscription"), (850, "metered"), (840, "subscription")):
        entry = update_entry(entry=entry, changes={"billing": billing}, **by(NOW - days * DAY))
    # Without a horizon of the ledger events of any instant are taken.
    assert prune() == {}
    take_no_older(before=NOW - 845 * DAY)
    assert prune() == {"billing_catalog_historicalbillingentry": 2}
    assert [days for days, _, _ in told("billing")] == [840, 850]


def test_the_history_of_a_connection_stays_whole_until_it_is_deleted():
    take_no_older()
    row = create_connection(connection_id="c1", provider="alpha", auth_type="oauth", **by(NOW - 1000 * DAY))
    for days, label in ((950, "one"), (900, "two")):
        row = update_connection(connection=row, changes={"label": label}, **by(NOW - days * DAY))
    assert prune() == {}
    delete_connection(connection=row, **by(NOW - 850 * DAY))
    assert prune() == {"ladder_historicalconnection": 3}
    assert told("connection")[0][:2] == (850, "deleted")


def test_the_admins_log_and_sessions_that_ended_go_too():
    user = User.objects.create_user("ana")
    for days in (801, 799):
        log = LogEntry.objects.create(user=user, action_flag=2, object_repr="x")
        LogEntry.objects.filter(pk=log.pk).update(action_time=NOW - days * DAY)
    for model in (Session, FormerSession):
        for name, ends in (("over", NOW - DAY), ("open", NOW + DAY)):
            model.objects.create(session_key=name, session_data="", expire_date=ends)
    assert prune() == {"django_admin_log": 1, "common_session": 1, "django_session": 1}
    assert [model.objects.get().session_key for model in (Session, FormerSession)] == ["open", "open"]


def test_an_import_of_which_a_part_is_forgotten_is_not_taken_back():
    at = NOW - 900 * DAY
    entries = [
        create_entry(values={"provider": name, "auth_type": None, "billing": "metered", "overage": "unknown"}, **by(at))
        for name in PROVIDERS
    ]
    update_entry(entry=entries[0], changes={"billing": "subscription"}, **by(NOW - 850 * DAY))
    take_no_older()
    assert preview_undo(at=at).is_refused
    prune()
    report = preview_undo(at=at)
    assert report.is_refused
    assert "retention period" in report.outcomes[0].problems[0][1]


@pytest.mark.parametrize("batch", [1, 1000])
def test_it_goes_in_batches(batch):
    for days in range(1000, 990, -1):
        change_settings(days, days - 985)
    seen = []
    prune(batch=batch, progress=seen.append)
    assert seen == [min(batch, 9)] * (9 // min(batch, 9))


acts = st.lists(
    st.tuples(
        st.integers(0, 40),  # days before NOW
        st.sampled_from(["entry", "entry", "override", "auth type", "drop entry", "drop override", "drop connection"]),
        st.sampled_from(PROVIDERS),
        st.sampled_from([None, "oauth", "apikey"]),
        st.sampled_from(["metered", "subscription"]),
    ),
    min_size=1,
    max_size=12,
)


def act(what, provider, auth_type, billing, who):
    """Do one act; what cannot be done is left."""
    entry = BillingEntry.objects.filter(provider=provider, auth_type=auth_type).first()
    override = TierOverride.objects.filter(provider=provider).first()
    connection = Connection.objects.live().filter(connection_id=provider).first()
    row = {"drop entry": entry, "drop override": override, "drop connection": connection}.get(what)
    if what == "entry":
        curate(entry, provider, auth_type, billing, who)
    elif what == "auth type":
        authorise(connection, provider, auth_type, who)
    elif what == "override" and override is None:
        tier = {"metered": "premium", "subscription": "cheap"}[billing]
        create_override(values={"provider": provider, "model_pattern": None, "tier": tier}, **who)
    elif row is not None:
        drop(row, who)


def curate(entry, provider, auth_type, billing, who):
    other = BillingEntry.objects.filter(auth_type=auth_type).exclude(provider=provider).first()
    values = {"provider": provider, "auth_type": auth_type, "billing": billing, "overage": "unknown"}
    if entry is not None:
        update_entry(entry=entry, changes={"billing": billing}, **who)
    elif other is not None:
        # A row that speaks of another provider from now on.
        update_entry(entry=other, changes=values, **who)
    else:
        create_entry(values=values, **who)


def authorise(connection, name, auth_type, who):
    if connection is None:
        create_connection(connection_id=name, provider=name, auth_type=auth_type, **who)
    else:
        update_connection(connection=connection, changes={"auth_type": auth_type}, **who)


def drop(row, who):
    if isinstance(row, BillingEntry):
        delete_entry(entry=row, **who)
    elif isinstance(row, TierOverride):
        delete_override(override=row, **who)
    else:
        delete_connection(connection=row, **who)


def judged(since):
    """Return how every account billed, the tier of its models, and its auth type, at instants from `since` on."""
    past = PastReader(now=NOW).of(providers=PROVIDERS, models=["m"])
    of_all = PastReader(now=NOW).of_all()
    found = []
    at = since
    while at <= NOW + DAY:
        for provider in PROVIDERS:
            for auth_type in (None, "oauth", "apikey"):
                asked = {"provider": provider, "connection_id": "c", "auth_type": auth_type, "at": at}
                found.append((past.billing_of(**asked), of_all.billing_of(**asked)))
            found.append((past.tier_of(provider=provider, model="m", at=at), *booked_on(provider, at)))
        at += DAY / 2
    return found


def booked_on(name, at):
    booked = lock_booked(connection_ids={name})
    row = booked.find(connection_id=name, provider=None, at=at)
    if not isinstance(row, Connection):
        return row, None
    booked.read_auth_types(keys=[row.pk])
    return row.pk, booked.auth_type_of(row, at=at)


@settings(
    PROPERTY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(otherwise=40),
)
@given(done=acts, horizon=st.integers(0, 40), cutoff=st.integers(0, 40))
def test_every_event_that_is_still_taken_is_judged_as_before_m6(done, horizon, cutoff):
    with transaction.atomic():
        for days, *what in sorted(done, key=lambda one: -one[0]):
            act(*what, by(NOW - days * DAY))
        since = NOW - horizon * DAY
        take_no_older(before=since)
        before = judged(since)
        prune(before=NOW - cutoff * DAY)
        assert judged(since) == before
        transaction.set_rollback(True)
