"""SPEC 3, the timeline: whatever is written when, one late look tells what a look after every write tells."""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal

import msgspec
import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from billing_catalog.models import BillingEntry, ModelPrice, TierOverride
from billing_catalog.services.entries import update_entry
from billing_catalog.services.prices import create_price, update_price
from billing_catalog.services.tiers import create_override, delete_override
from ladder.core.occupancy import build_occupancy
from ladder.core.snapshot import Snapshot
from ladder.core.timeline.causes import Standing
from ladder.core.timeline.flips import differing, picture_of
from ladder.core.values import Period, ReadingStatus
from ladder.models import Connection, Cooldown, RungBudget, RungFlip, TimelineCursor
from ladder.selectors.state import forget_snapshot, read_facts
from ladder.services.breakers import BreakerItem, record_breakers
from ladder.services.budgets import reset_budget
from ladder.services.closing import expire_holds
from ladder.services.connections import create_connection, delete_connection, update_connection
from ladder.services.cooldowns import clear_cooldowns
from ladder.services.holds import HoldRequest, grant_hold, release_hold
from ladder.services.reading_items import reading_item
from ladder.services.readings import record_readings
from ladder.services.refusal_items import RateLimitItem
from ladder.services.refusals import record_rate_limits
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, update_settings
from ladder.services.thinning import thin_readings
from ladder.services.timeline import note_flips
from ladder.services.windows import mark_exhausted, update_window
from omniroute_admin.common.errors import ProductError
from tests.factories import BillingEntryFactory
from tests.factories_ladder import NOW, OPERATOR, REPORTER
from tests.ladder.core.strategies import PROPERTY, examples
from tests.ladder.services.booking import event, make_ladder, record

pytestmark = pytest.mark.django_db

TICK = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
BY = {"actor": OPERATOR, "reason": "a test"}
GAPS = [0, 0, 1, 5, 10, 61, 171, 181, 3600, 86400]
PLANS = ["plan", "more"]
EVERYONE = [*PLANS, "paid"]


def row(connection_id):
    return Connection.objects.live().filter(connection_id=connection_id).first()


def read(now, connection_id, window, percent, age, reset, *, complete=False):
    said = {"remaining_percent": Decimal(percent)} if isinstance(percent, int) else {"status": ReadingStatus(percent)}
    item = reading_item(
        connection_id=connection_id,
        window=window,
        observed_at=now - age * SECOND,
        reset_at=None if reset is None else now + reset * SECOND,
        model="op*" if window == "opus" else None,
        **said,
    )
    whole = [connection_id] if complete else []
    record_readings(items=[item], complete_for=whole, actor=REPORTER, now=now)


def refuse(now, connection_id, cause, age, length):
    item = RateLimitItem(
        connection_id=connection_id,
        occurred_at=now - age * SECOND,
        cause=cause,
        retry_after=msgspec.Raw(str(length).encode()),
    )
    record_rate_limits(items=[item], actor=REPORTER, now=now)


def clear(now, connection_id):
    if row(connection_id):
        clear_cooldowns(connection=row(connection_id), causes=None, now=now, **BY)


def mark(now, connection_id):
    if row(connection_id):
        mark_exhausted(connection=row(connection_id), window=None, reset_at=None, now=now, **BY)


def edit_window(now, connection_id, field):
    window = row(connection_id) and row(connection_id).windows.first()
    if window:
        cutoff = None if window.exit_cutoff_percent else Decimal(20)
        changes = {"is_muted": not window.is_muted} if field == "mute" else {"exit_cutoff_percent": cutoff}
        update_window(window=window, changes=changes, now=now, **BY)


def edit_connection(now, connection_id, act):
    one = row(connection_id)
    if one is None:
        create_connection(connection_id=connection_id, provider="claude", auth_type="oauth", now=now, **BY)
    elif act == "delete":
        delete_connection(connection=one, now=now, **BY)
    else:
        changes = {"is_enabled": not one.is_enabled} if act == "pause" else {"excluded_models": ["op*"]}
        update_connection(connection=one, changes=changes, now=now, **BY)


def break_circuit(now, provider, age, length):
    if length is None:
        said = {"state": "closed"}
    else:
        said = {"state": "open", "open_until": msgspec.Raw(msgspec.json.encode(now + length * SECOND))}
    item = BreakerItem(provider=provider, occurred_at=now - age * SECOND, **said)
    record_breakers(items=[item], actor=REPORTER, now=now)


def tune(now, **changes):
    update_settings(changes=SettingsChanges(**changes), now=now, **BY)


def budget(now, rung, **changes):
    tune(now, rung_budgets=BudgetsChanges(**{rung: BudgetChanges(**changes)}))


def use(now, number, model, cost, age, hold):
    fields = {"hold_id": f"h{hold}"} if hold is not None else {}
    record(event(f"e{number}", cost, at=now - age * SECOND, model=model, **fields), now=now)


def hold(now, number, model, amount, ttl):
    request = HoldRequest(
        hold_id=f"h{number}",
        connection_id="paid",
        provider=None,
        model=model,
        estimated_cost_usd=Decimal(amount),
        ttl_seconds=ttl,
    )
    grant_hold(request=request, actor=REPORTER, now=now)


def recurate(now, act):
    if act == "override":
        known = TierOverride.objects.first()
        if known:
            delete_override(override=known, now=now, **BY)
        else:
            create_override(values={"provider": "openrouter", "model_pattern": "sm*", "tier": "free"}, now=now, **BY)
    elif act == "billing":
        entry = BillingEntry.objects.get(provider="claude")
        other = {"subscription": "metered", "metered": "subscription"}[entry.billing]
        update_entry(entry=entry, changes={"billing": other}, now=now, **BY)
    elif act == "price":
        price = ModelPrice.objects.get(provider="openrouter", model="small", effective_to=None)
        other = Decimal(9) if price.input_usd_per_million < 1 else Decimal("0.5")
        update_price(price=price, changes={"input_usd_per_million": other}, now=now, **BY)
    else:
        values = {"provider": "claude", "model": f"later-{now:%s%f}", "effective_from": now + 70 * SECOND}
        create_price(values=values, now=now, **BY)


plans, everyone = st.sampled_from(PLANS), st.sampled_from(EVERYONE)
models = st.sampled_from(["small", "big"])
amounts = st.sampled_from(["0.4", "0.5", "0.6", "1"])
ages = st.sampled_from([0, 0, 0, 5, 100, 181, 4000, 90_000])
percents = st.sampled_from([0, 1, 2, 3, 4, 6, 50, 60, "exhausted", "unknown"])
rungs = st.sampled_from(["cheap", "premium"])
acts = st.one_of(
    st.tuples(
        st.just(read), plans, st.sampled_from(["5h", "opus"]), percents, ages, st.sampled_from([None, 3600, 30, -1]),
    ),
    st.tuples(st.just(lambda now, one: read(now, one, "week", 50, 0, 3600, complete=True)), plans),
    st.tuples(
        st.just(refuse), everyone, st.sampled_from(["quota", "rate_limit", "auth"]), ages,
        st.sampled_from([1, 30, 3600]),
    ),
    st.tuples(st.just(clear), everyone),
    st.tuples(st.just(mark), everyone),
    st.tuples(st.just(edit_window), plans, st.sampled_from(["mute", "cutoff"])),
    st.tuples(st.just(edit_connection), plans, st.sampled_from(["pause", "delete", "exclude"])),
    st.tuples(
        st.just(break_circuit), st.sampled_from(["claude", "openrouter"]), ages,
        st.sampled_from([None, 1, 60, -10]),
    ),
    st.tuples(st.just(lambda now, cutoff: tune(now, exit_cutoff_percent=Decimal(cutoff))), st.sampled_from([2, 5, 10])),
    st.tuples(st.just(lambda now, age: tune(now, max_reading_age_seconds=age)), st.sampled_from([10, 180, 3600])),
    st.tuples(
        st.just(lambda now, rung, amount: budget(now, rung, amount_usd=amount)), rungs,
        st.sampled_from([None, Decimal(0), Decimal(1), Decimal(1)]),
    ),
    st.tuples(
        st.just(lambda now, rung, period: budget(now, rung, period=period, zone="Europe/Berlin")), rungs,
        st.sampled_from([Period.DAILY, Period.WEEKLY]),
    ),
    st.tuples(st.just(lambda now, rung: reset_budget(rung=rung, now=now, **BY)), rungs),
    st.tuples(
        st.just(use), st.integers(1, 99), models, amounts, ages,
        st.one_of(st.none(), st.none(), st.integers(1, 3)),
    ),
    st.tuples(st.just(hold), st.integers(1, 3), models, amounts, st.sampled_from([1, 60, 600])),
    st.tuples(st.just(lambda now, number: release_hold(hold_id=f"h{number}", now=now)), st.integers(1, 3)),
    st.tuples(st.just(recurate), st.sampled_from(["override", "billing", "price", "later"])),
    st.tuples(st.just(lambda now: thin_readings(now=now, keep_all_for=timedelta(0)))),
)  # fmt: skip
stories = st.lists(st.tuples(st.sampled_from(GAPS), acts), min_size=1, max_size=12)


@pytest.fixture(autouse=True)
def ladder(db):
    """A plan that is read, another one, a key on both paid rungs, a budget of 1.00 each; the first look is taken."""
    make_ladder()
    BillingEntry.objects.filter(provider="claude").delete()
    BillingEntryFactory(provider="claude", auth_type=None, billing="subscription", overage="hard-stop")
    create_connection(connection_id="more", provider="claude", auth_type="oauth", now=NOW, **BY)
    RungBudget.objects.update(amount_usd=Decimal(1))
    read(NOW, "plan", "5h", 50, 0, 3600)
    note_flips(now=NOW)


def act(story, *, before, after):
    """Play a story, calling `before` and `after` around each act, and return the instant of its end."""
    now = NOW
    for gap, (what, *said) in story:
        now += gap * SECOND
        before(now)
        with suppress(ProductError):  # refused, as anyone might be: nothing is written
            what(now, *said)
        after(now)
    return now


def picture(now):
    facts = read_facts(revision=0, now=now)
    keys = {(one.provider, one.connection_id): one.pk for one in Connection.objects.live()}
    return picture_of(occupancy=build_occupancy(snapshot=Snapshot(facts), now=now), keys=keys)


def told(rows):
    """Return flips in words; a connection of the story has another key in each playing."""
    order = {key: number for number, key in enumerate(Connection.objects.order_by("pk").values_list("pk", flat=True))}
    return [
        (one.at - NOW, order.get(one.connection_id), one.rung, one.from_state, one.to_state, one.code, one.cause)
        for one in rows
    ]


class Watcher:
    """Looks before and after each act, and checks that the look after it tells what the act changed, and no more."""

    def look(self, now):
        known = RungFlip.objects.count()
        note_flips(now=now)
        return list(RungFlip.objects.order_by("id"))[known:]

    def before(self, now):
        self.look(now)
        self.seen = picture(now)

    def after(self, now):
        present = picture(now)
        new = self.look(now)
        spots = [(one.connection_id or 0, one.rung) for one in new]
        assert sorted(spots) == sorted(differing(self.seen, present))
        assert all(now <= one.at < now + SECOND / 1000 for one in new)
        assert {one.cause for one in new}.isdisjoint({"time", "reset"})
        for spot, one in zip(spots, new, strict=True):
            assert one.from_state == self.seen.get(spot, Standing("")).state
            assert (one.to_state, one.code) == (
                present.get(spot, Standing("")).state,
                present.get(spot, Standing("")).code,
            )


def ignore(now):
    """Look at nothing."""


def play(story, *, before, after, until):
    """Play a story in vain and return what the timeline tells of it, looked at until then."""
    with transaction.atomic():
        try:
            now = act(story, before=before, after=after) + until * SECOND
            forget_snapshot()
            note_flips(now=now)
            assert note_flips(now=now) == 0
            kept = {
                (key, rung): Standing(state, code) for key, rung, state, code in TimelineCursor.objects.get().picture
            }
            assert kept == picture(now)
            return told(RungFlip.objects.order_by("at", "id"))
        finally:
            transaction.set_rollback(True)


@settings(
    PROPERTY,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=examples(otherwise=15),
)
@given(story=stories, until=st.sampled_from(GAPS))
def test_one_late_look_tells_what_a_look_after_every_write_tells_and_that_is_what_each_changed(story, until):
    watcher = Watcher()
    every = play(story, before=watcher.before, after=watcher.after, until=until)
    assert play(story, before=ignore, after=ignore, until=until) == every
    tidying = {"before": ignore, "after": lambda now: expire_holds(now=now)}
    assert play(story, **tidying, until=until) == every
    assert Cooldown.objects.count() == 0
