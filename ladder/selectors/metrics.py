"""The ladder as metrics, from the same snapshot and judgements that pools and the occupancy are answered from."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from itertools import islice

from ladder.core.occupancy import PoolLine, RungOccupancy, budget_view, build_occupancy
from ladder.core.places import STATE_OF_CODE
from ladder.core.reasons import Code
from ladder.core.snapshot import Snapshot
from ladder.core.values import PAID_RUNGS, Budget, Connection, CooldownCause, Rung, Window
from ladder.selectors.state import get_present
from omniroute_admin.common.core.families import Gauge, gauge, gauges

_SERVES = "auto/thrifty"
_NOBODY = -1
# What may keep a connection off its rung for now is told as 0 too, so that a graph of it has a beginning.
_ALWAYS_TOLD = STATE_OF_CODE.keys()


def read_ladder_metrics(*, now: datetime, connections_at_most: int) -> list[Gauge]:
    """Return what the ladder is at `now`; the remaining percent of so many connections at most.

    Three statements where nothing changed since the last look.
    """
    snapshot, budgets, _ = get_present(now=now)
    ladder = build_occupancy(snapshot=snapshot, now=now)
    return [
        *_of_pools(ladder.pools),
        *_of_rungs(ladder.rungs),
        *_of_windows(snapshot.facts.connections, connections_at_most),
        *_of_money(budgets, now),
        *_of_facts(snapshot, now),
    ]


def _of_pools(lines: Iterable[PoolLine]) -> Iterator[Gauge]:
    by_id = {line.id: line for line in lines}
    returning = ((one.id, one.empty.returns_at) for one in by_id.values() if one.empty is not None)
    serving = by_id[_SERVES].first_rung
    yield gauges(
        "omniroute_pool_empty",
        "1 where the pool over the stored inventory has no candidate.",
        "pool",
        (((name,), line.empty is not None) for name, line in by_id.items()),
    )
    yield gauges(
        "omniroute_pool_candidates",
        "Candidates of the pool over the stored inventory.",
        "pool",
        (((name,), line.candidates) for name, line in by_id.items()),
    )
    yield gauges(
        "omniroute_pool_return_timestamp_seconds",
        "When an empty pool may have a candidate again, where that is known.",
        "pool",
        (((name,), at.timestamp()) for name, at in returning if at is not None),
    )
    yield gauges(
        "omniroute_serving_rung",
        "1 for the rung that auto/thrifty serves from, 0 for the others.",
        "rung",
        (((rung.word,), rung.word == serving) for rung in Rung),
    )
    index = next((int(rung) for rung in Rung if rung.word == serving), _NOBODY)
    yield gauge("omniroute_serving_rung_index", "Index of that rung: 0 subscription to 4 premium, -1 none.", index)


def _of_rungs(rungs: Collection[RungOccupancy]) -> Iterator[Gauge]:
    yield gauges(
        "omniroute_rung_connections",
        "Connections that stand on the rung; one whose models are of several tiers stands on several.",
        "rung",
        (((one.rung,), one.total) for one in rungs),
    )
    yield gauges(
        "omniroute_rung_usable_connections",
        "Connections on the rung that are usable.",
        "rung",
        (((one.rung,), one.usable) for one in rungs),
    )
    yield gauges(
        "omniroute_rung_unusable_connections",
        "Connections on the rung that are not usable, by reason code.",
        "rung code",
        (
            ((one.rung, code.value), one.by_code.get(code.value, 0))
            for one in rungs
            for code in Code
            if code.value in one.by_code or code in _ALWAYS_TOLD
        ),
    )


def _of_windows(connections: Iterable[Connection], at_most: int) -> Iterator[Gauge]:
    told = [(one, windows) for one in connections if (windows := _numbered(one))]
    yield gauges(
        "omniroute_window_remaining_percent",
        "Percent left of a quota window as it was last read, of whatever age; unlimited ones have none.",
        "provider connection window",
        (
            ((one.provider, one.connection_id, window.window), float(window.remaining_percent or 0))
            for one, windows in islice(told, at_most)
            for window in windows
        ),
    )
    yield gauge(
        "omniroute_window_connections_left_out",
        "Connections whose remaining percent is not told: METRICS_CONNECTIONS_AT_MOST.",
        max(0, len(told) - at_most),
    )


def _numbered(one: Connection) -> list[Window]:
    """Return the windows of a connection that are reported and of which a percentage is known."""
    return [
        window
        for window in one.windows
        if window.is_reported and not window.unlimited and window.remaining_percent is not None
    ]


def _of_money(budgets: Mapping[Rung, Budget], now: datetime) -> Iterator[Gauge]:
    views = {rung.word: budget_view(budget=budgets.get(rung, Budget()), now=now) for rung in PAID_RUNGS}
    told = {
        "spent": ("Spent in the present budget window.", lambda view: view.spent_usd),
        "held": ("Reserved by holds that act.", lambda view: view.held_usd),
        "left": ("Left of the budget; none without a budget.", lambda view: view.left_usd),
        "amount": ("The budget of a window; none without one, 0 is off.", lambda view: view.amount_usd),
    }
    for name, (help_text, amount_of) in told.items():
        amounts = ((word, amount_of(view)) for word, view in views.items())
        samples = (((word,), float(amount)) for word, amount in amounts if amount is not None)
        yield gauges(f"omniroute_budget_{name}_usd", help_text, "rung", samples)
    ends = ((word, view.window_end) for word, view in views.items())
    yield gauges(
        "omniroute_budget_window_end_timestamp_seconds",
        "When the present budget window ends.",
        "rung",
        (((word,), end.timestamp()) for word, end in ends if end is not None),
    )


def _of_facts(snapshot: Snapshot, now: datetime) -> Iterator[Gauge]:
    facts = snapshot.facts
    acting = [
        cooldown.cause
        for one in facts.connections
        for cooldown in one.cooldowns
        if cooldown.effective_until is None or cooldown.effective_until > now
    ]
    readings = (window.observed_at for one in facts.connections for window in one.windows)
    newest = max((at for at in readings if at is not None), default=None)
    yield gauges(
        "omniroute_cooldowns",
        "Cooldowns that act, by cause.",
        "cause",
        (((cause.value,), acting.count(cause)) for cause in CooldownCause),
    )
    open_now = sum(until > now for until in facts.breakers.values())
    yield gauge("omniroute_breakers_open", "Providers whose breaker is open.", open_now)
    yield gauge(
        "omniroute_newest_reading_timestamp_seconds",
        "When the newest reading of any window was observed; none without a reading.",
        None if newest is None else newest.timestamp(),
    )
    yield gauge("omniroute_revision", "The revision that all of this is of.", int(facts.revision))
    yield gauge(
        "omniroute_snapshot_connections",
        "Connections in the state that decisions are made from.",
        len(facts.connections),
    )
