"""Which conditions a rule finds in the facts, and how each is told."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from ladder.core.alerts.rules import EACH, IN_USE, AlertFacts, AlertKind, Condition, Key, Rule
from ladder.core.occupancy import BudgetView, RungOccupancy
from ladder.core.places import Place, State
from ladder.core.values import PAID_RUNGS
from omniroute_admin.common.core.words import clock_text, count_text, money_text, until_text

TRIED = frozenset({State.USABLE, State.UNVERIFIED, State.PENDING, State.STALE})
"""The states in which auto/thrifty has a connection: usable, or worth a try (P4)."""

EVERYBODY = "all connections"
"""Subject of "no reading from anybody"."""

_PAID = tuple(rung.word for rung in PAID_RUNGS)
_HUNDRED = Decimal(100)


def find_conditions(*, rules: Iterable[Rule], facts: AlertFacts) -> dict[str, Condition]:
    """Return what is so of what the rules look for, by key."""
    found = (condition for rule in rules for condition in _FINDERS[rule.kind](rule, facts))
    return {condition.key: condition for condition in found}


def is_exhausted(places: Iterable[Place]) -> bool:
    """Tell whether the places of a rung have none that would be tried; a rung of which all are off is not exhausted."""
    states = {place.state for place in places} - {State.OFF}
    return bool(states) and not states & TRIED


def _condition(rule: Rule, subject: str, title: str, text: str, *page: str | int) -> Condition:
    return Condition(rule.id, rule.kind, subject, title, text, page)


def when(at: datetime | None, facts: AlertFacts) -> str:
    """Return an instant as an alert tells it: `14:32 Europe/Berlin (in 41 min)`."""
    if at is None:
        return "no time is known"
    return f"{clock_at(at, facts)} ({until_text(at=at, now=facts.now)})"


def clock_at(at: datetime, facts: AlertFacts) -> str:
    """Return the clock of an instant with its zone."""
    return f"{clock_text(at=at, now=facts.now, zone=facts.zone)} {facts.zone.key}"


def _named(rungs: Iterable[RungOccupancy], subject: str) -> Iterator[RungOccupancy]:
    yield from (rung for rung in rungs if subject in {"", rung.rung})


def _rungs(rule: Rule, facts: AlertFacts) -> Iterator[Condition]:
    for rung in _named(facts.occupancy.rungs, rule.subject):
        places = [place for place in facts.occupancy.places if place.rung == rung.rung]
        if is_exhausted(places):
            text = _exhausted_text(rung, [place for place in places if place.state is not State.OFF], facts)
            yield _condition(rule, rung.rung, f"The rung {rung.rung} is exhausted", text, "ladder")


def _exhausted_text(rung: RungOccupancy, places: list[Place], facts: AlertFacts) -> str:
    counts = ", ".join(f"{count} {code}" for code, count in sorted(rung.by_code.items()))
    returns = None if any(one.returns_at is None for one in places) else min(
        (one.returns_at for one in places if one.returns_at is not None), default=None
    )  # fmt: skip
    of = count_text(len(places), "connection", "connections")
    return (
        f"None of {of} on the rung {rung.rung} can serve: {counts}. "
        f"First of the reasons: {places[0].detail}. First back: {when(returns, facts)}."
    )


def _pools(rule: Rule, facts: AlertFacts) -> Iterator[Condition]:
    for line in facts.occupancy.pools:
        if line.id == rule.subject and line.empty is not None:
            text = f"{line.empty.detail} First back: {when(line.empty.returns_at, facts)}."
            yield _condition(rule, line.id, f"{line.id} is empty", text, "pool", line.id)


def _paid(rule: Rule, facts: AlertFacts) -> Iterator[Condition]:
    serving = facts.occupancy.serving_rung
    if serving not in _PAID or rule.subject not in {"", serving}:
        return
    budget = next(rung.budget for rung in facts.occupancy.rungs if rung.rung == serving)
    text = f"No connection below {serving} can serve, so auto/thrifty costs money. {_left(budget, facts)}"
    yield _condition(rule, serving, f"The paid rung {serving} serves now", text, "ladder")


def _left(budget: BudgetView | None, facts: AlertFacts) -> str:
    if budget is None or budget.amount_usd is None or budget.left_usd is None:
        return "It has no budget: no limit."
    end = "" if budget.window_end is None else f" until {when(budget.window_end, facts)}"
    return f"{money_text(budget.left_usd)} of {money_text(budget.amount_usd)} left{end}."


def _budgets(rule: Rule, facts: AlertFacts) -> Iterator[Condition]:
    for rung in _named(facts.occupancy.rungs, rule.subject):
        budget = rung.budget
        if budget is None or not budget.amount_usd:
            continue
        if budget.spent_usd * _HUNDRED >= budget.amount_usd * rule.threshold:
            title = f"The budget of {rung.rung} is spent to {rule.threshold} %"
            yield _condition(rule, rung.rung, title, spent_text(budget, facts), "spend")


def spent_text(budget: BudgetView, facts: AlertFacts) -> str:
    """Return what is spent of a budget, in a sentence. Holds come and go: they are told and do not count."""
    held = f", and {money_text(budget.held_usd)} on hold" if budget.held_usd else ""
    spent = f"{money_text(budget.spent_usd)} of {money_text(budget.amount_usd or Decimal(0))} spent{held}."
    return spent if budget.window_end is None else f"{spent} The window ends {when(budget.window_end, facts)}."


def _readings(rule: Rule, facts: AlertFacts) -> Iterator[Condition]:
    for key, newest in _heard(rule, facts):
        if newest is None or facts.now - newest > timedelta(minutes=rule.threshold):
            yield _silence(rule, key, newest, facts)


def _heard(rule: Rule, facts: AlertFacts) -> Iterator[tuple[tuple[str, ...], datetime | None]]:
    """Yield of whom readings are wanted, and the newest there is; nobody's name is all together."""
    if rule.subject:
        yield from ((key, at) for key, at in facts.readings.items() if rule.subject in {EACH, "/".join(key)})
    elif facts.readings:
        yield (), max((at for at in facts.readings.values() if at is not None), default=None)


def _silence(rule: Rule, key: tuple[str, ...], newest: datetime | None, facts: AlertFacts) -> Condition:
    who = "/".join(key) or EVERYBODY
    last = "There never was one." if newest is None else f"The newest is of {clock_at(newest, facts)}."
    text = (
        f"{last} A plan without a fresh reading is not in auto/subscription; "
        "routers send readings to POST /api/v1/telemetry/readings."
    )
    page = ("connection", *key) if key else ("connections",)
    return _condition(rule, who, f"No readings from {who} for {rule.threshold} min", text, *page)


def _entries(rule: Rule, facts: AlertFacts) -> Iterator[Condition]:
    today = facts.now.date()
    for entry in facts.entries:
        is_meant = entry.is_in_use if rule.subject == IN_USE else rule.subject in {"", entry.provider}
        if is_meant and (today - entry.since).days > rule.threshold:
            name = f"{entry.provider} ({entry.auth_type or 'provider-wide'})"
            last = "Last reviewed" if entry.is_reviewed else "Never reviewed, made"
            text = (
                f"{last} on {entry.since.isoformat()}. Plans change how they bill: check it, and say so with "
                "the button Reviewed today."
            )
            title = f"The billing entry of {name} is unreviewed for {count_text(rule.threshold, 'day', 'days')}"
            subject = f"{entry.provider}/{entry.auth_type or ''}"
            yield _condition(rule, subject, title, text, "catalogue-row", "billing", entry.pk)


def _overage(rule: Rule, facts: AlertFacts) -> Iterator[Condition]:
    billed: Mapping[Key, Decimal] = facts.overage_usd.get(rule.threshold, {})
    for key, usd in sorted(billed.items()):
        name = "/".join(key)
        if usd > 0 and rule.subject in {"", name}:
            within = count_text(rule.threshold, "hour", "hours")
            text = f"{money_text(usd)} within {within}. It is real money and in no budget."
            yield _condition(rule, name, f"{name} bills past its plan", text, "connection", *key)


_FINDERS: Mapping[AlertKind, Callable[[Rule, AlertFacts], Iterator[Condition]]] = {
    AlertKind.RUNG_EXHAUSTED: _rungs,
    AlertKind.POOL_EMPTY: _pools,
    AlertKind.PAID_SERVING: _paid,
    AlertKind.BUDGET: _budgets,
    AlertKind.NO_READINGS: _readings,
    AlertKind.UNREVIEWED: _entries,
    AlertKind.OVERAGE: _overage,
}
