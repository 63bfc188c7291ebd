"""A place on the ladder as a row of words: state, binding window, what is left, when it is back (SPEC 5)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

import msgspec

from billing_catalog.core.values import Billing, Overage
from ladder.core.occupancy import BudgetView, Occupancy, RungOccupancy
from ladder.core.places import Place, WindowView
from ladder.core.reasons import Code
from ladder.core.values import LadderSettings, QuotaVerdict, ReadingStatus, Rung
from ladder.selectors.screen import ActingCooldown
from ladder.views.presenting.money import budget_words
from ladder.views.presenting.names import Labels
from ladder.views.presenting.values import STATES, TRIED_STATES, Bar
from omniroute_admin.common.core.screen import Glance, Moment, StateWord
from omniroute_admin.common.core.words import count_text, percent_text

QUOTA_CODES = frozenset({Code.QUOTA_EXHAUSTED, Code.HELD_FOR_REENTRY})
COOLDOWNS_SHOWN = 3
WAITING_STATES = frozenset({"held", "exhausted", "cooldown", "breaker", "pending"})


class PlaceRow(msgspec.Struct, frozen=True):
    """One row of the table of connections."""

    key: str
    state: StateWord
    provider: str
    connection_id: str
    label: str
    kind: str
    may_bill: bool
    window: str
    left: str
    bar: Bar | None
    why: str
    others: str
    returns: Moment | None
    returns_zone: str
    not_before: bool
    no_return: str
    age: Moment | None
    age_is_old: bool
    no_age: str
    code: str


class RungGroup(msgspec.Struct, frozen=True):
    """The rows of one rung, under its heading."""

    rung: str
    rung_index: int
    mark: str
    count: str
    note: str
    rows: tuple[PlaceRow, ...]


class Around(msgspec.Struct, frozen=True):
    """What rows are told with beside the place itself: settings, time, the cooldowns that act, and labels."""

    settings: LadderSettings
    glance: Glance
    cooldowns: Mapping[tuple[str, str], tuple[ActingCooldown, ...]] = {}
    labels: Labels = {}


def place_row(*, place: Place, rung: RungOccupancy, around: Around) -> PlaceRow:
    """Return the row of a place; on a paid rung the budget stands where the quota window stands below (M, Q)."""
    paid = rung.budget is not None
    binding = None if paid else place.window
    return PlaceRow(
        key=f"{place.rung_index}-{place.provider}-{place.connection_id}",
        state=STATES[place.state],
        provider=place.provider,
        connection_id=place.connection_id,
        label=around.labels.get((place.provider, place.connection_id), ""),
        kind=_kind(place),
        may_bill=place.may_bill_past_plan,
        window="rung budget" if paid else binding.window if binding else "no window",
        left=budget_words(rung.budget).left if rung.budget else left_words(window=binding, state=place.state),
        bar=None if paid else quota_bar(window=binding, state=place.state, settings=around.settings),
        why=_why(place=place, around=around, paid=paid),
        others="" if paid else _other_windows(place),
        returns=_returns(place=place, rung=rung, glance=around.glance),
        returns_zone=rung.budget.zone if rung.budget and _is_of_budget(place, rung.budget) else "",
        not_before=place.returns_at is not None and place.code in QUOTA_CODES,
        no_return="no reset known" if place.state in WAITING_STATES else "no reset",
        age=around.glance.ago(binding.observed_at) if binding and binding.observed_at else None,
        age_is_old=binding is not None and _is_old(place, binding, around),
        no_age="quota not asked" if paid else "never",
        code=place.code or "",
    )


def _is_old(place: Place, window: WindowView, around: Around) -> bool:
    """Tell whether a reading counts no more because of its age; a window of one model may, whatever the place is."""
    if place.state in {"stale", "pending"}:
        return True
    longest = timedelta(seconds=around.settings.max_reading_age_seconds)
    is_past = window.observed_at is not None and around.glance.now - window.observed_at > longest
    return is_past and window.verdict == QuotaVerdict.UNVERIFIED


def _kind(place: Place) -> str:
    """Return the auth type and how the connection bills; the overage only where there is a plan to run past."""
    auth_type = "no auth" if place.auth_type == "none" else place.auth_type or "no auth type"
    if place.billing == Billing.SUBSCRIPTION:
        return f"{auth_type} · {'overage unknown' if place.overage == Overage.UNKNOWN else place.overage}"
    return f"{auth_type} · {'not curated: metered' if place.billing == Billing.UNKNOWN else place.billing}"


def left_words(*, window: WindowView | None, state: str) -> str:
    """Return what is left in words: a stale number is told as what it was, never as what it is (SPEC 5)."""
    if window is None or state == "pending":
        return "unknown"
    was = "was " if _was(window, state) else ""
    if window.unlimited:
        return f"{was}unlimited"
    if window.remaining_percent is None:
        return "said exhausted" if window.status == ReadingStatus.EXHAUSTED else "unknown"
    return f"{was}{percent_text(window.remaining_percent)} left"


def _was(window: WindowView, state: str) -> bool:
    """Tell whether a window's number is one that counts no more."""
    return state != "usable" and window.verdict == QuotaVerdict.UNVERIFIED


def quota_bar(*, window: WindowView | None, state: str, settings: LadderSettings) -> Bar:
    """Return the bar of a binding window: stale looks different from low, unknown from empty (SPEC 5)."""
    if window is not None and window.unlimited:
        return Bar(kind="line")
    if window is None or window.remaining_percent is None or state == "pending":
        return Bar(kind="dashed")
    cutoff = window.exit_cutoff_percent
    low = settings.exit_cutoff_percent if cutoff is None else cutoff
    high = max(low, settings.reentry_min_remaining_percent)
    return Bar(
        kind="stale" if state == "stale" or _was(window, state) else "solid",
        width=_width(window.remaining_percent),
        marks=tuple(dict.fromkeys((_width(low), _width(high)))),
    )


def _width(percent: Decimal) -> str:
    return f"{min(max(percent, Decimal(0)), Decimal(100)):.2f}".rstrip("0").rstrip(".")


def _why(*, place: Place, around: Around, paid: bool) -> str:
    """Return why a place is where it is, in the few words a row has room for; the code stands beside it."""
    fallback = place.detail or ("quota is not asked on this rung" if paid else "")
    cooldowns = _cooldown_words(place, around)
    tried = _tried_words(place, around.settings) or fallback
    words = (cooldowns,) if cooldowns and place.code == Code.COOLDOWN else (tried, cooldowns)
    also = f"also on {', '.join(place.also_on)}" if place.also_on else ""
    return " · ".join(filter(None, (*words, also)))


def _cooldown_words(place: Place, around: Around) -> str:
    """Return the cooldowns that act, that of every model first; one of a single model is named as such (C2, C3).

    A place that is tried all the same tells which of its models rest.
    """
    acting = around.cooldowns.get((place.provider, place.connection_id), ())
    whole = next((one for one in acting if one.model is None), None)
    single = [one for one in acting if one.model is not None and (whole is None or _outlasts(one, whole))]
    shown = [*([whole] if whole else []), *single] if place.code == Code.COOLDOWN else single
    if place.code != Code.COOLDOWN and place.state not in TRIED_STATES:
        return ""
    more = len(shown) - COOLDOWNS_SHOWN
    words = [_one_cooldown(one, around) for one in shown[:COOLDOWNS_SHOWN]]
    return " · ".join([*words, *([f"and {count_text(more, 'model', 'models')} more"] if more > 0 else [])])


def _outlasts(one: ActingCooldown, other: ActingCooldown) -> bool:
    if other.effective_until is None:
        return False
    return one.effective_until is None or one.effective_until > other.effective_until


def _one_cooldown(cooldown: ActingCooldown, around: Around) -> str:
    """Return cause, model, both instants and who set it (C2): what was asked, and what acts."""
    what = cooldown.cause if cooldown.model is None else f"{cooldown.cause} for {cooldown.model} only"
    by = f", set by {cooldown.set_by}" if cooldown.set_by else ""
    asked, effective = _clock(cooldown.asked_until, around), _clock(cooldown.effective_until, around)
    if cooldown.asked_until == cooldown.effective_until:
        return f"{what}: until {effective}{by}"
    return f"{what}: asked until {asked}, clamped to {effective}{by}"


def _clock(at: datetime | None, around: Around) -> str:
    return "cleared" if at is None else around.glance.until(at).clock


def _tried_words(place: Place, settings: LadderSettings) -> str:
    """Return the words for what is not verified: it says what each grouping makes of it (P2, P4, P10)."""
    out_of = "best-free" if place.rung_index == Rung.FREE else "subscription"
    if place.code == Code.RESET_PENDING:
        known = place.window.remaining_percent if place.window else None
        was = "" if known is None else f"was {percent_text(known)} left; "
        return f"{was}waits for a reading after the reset"
    if place.code == Code.QUOTA_STALE:
        return f"older than {settings.max_reading_age_seconds} s: tried by thrifty, out of {out_of}"
    if place.code == Code.QUOTA_UNVERIFIED and place.rung_index == Rung.KEYLESS:
        return "no quota is reported here; tried by thrifty"
    if place.code == Code.QUOTA_UNVERIFIED:
        return f"no usable reading: tried by thrifty, out of {out_of}"
    return ""


def _other_windows(place: Place) -> str:
    """Return the windows beside the binding one, with what became of each."""
    shown = place.window.window if place.window else None
    return " · ".join(_window_words(view) for view in place.windows if view.window != shown)


def _window_words(view: WindowView) -> str:
    note = ", muted" if view.is_muted else "" if view.is_reported else ", no longer reported"
    model = f" for {view.model}" if view.model else ""
    return f"{view.window}{model} {left_words(window=view, state=view.verdict)}{note}"


def _returns(*, place: Place, rung: RungOccupancy, glance: Glance) -> Moment | None:
    """Return when a place comes back, else when its window resets or did; a quota return is a "not before" (Q9)."""
    at = place.returns_at or _reset_of(place, rung)
    if at is None:
        return None
    told = glance.in_zone(rung.budget.zone) if rung.budget and _is_of_budget(place, rung.budget) else glance
    return told.ago(at) if at <= glance.now else told.until(at)


def _is_of_budget(place: Place, budget: BudgetView) -> bool:
    """Tell whether what a place's row tells is the end of the budget's window, which has its own zone (M3)."""
    return place.returns_at is None or ends_with_budget(place, budget)


def ends_with_budget(place: Place, budget: BudgetView) -> bool:
    """Tell whether a place comes back when the budget's window ends."""
    return place.code == Code.BUDGET_SPENT and place.returns_at == budget.window_end


def _reset_of(place: Place, rung: RungOccupancy) -> datetime | None:
    if rung.budget is not None:
        return rung.budget.window_end if rung.budget.amount_usd else None
    return place.window.reset_at if place.window else None


def rung_groups(*, occupancy: Occupancy, shown: list[Place], around: Around, with_empty: bool) -> tuple[RungGroup, ...]:
    """Return the shown places under the headings of their rungs, lowest rung first: the order a router tries."""
    groups = []
    for rung in sorted(occupancy.rungs, key=lambda each: each.rung_index):
        mine = [place for place in shown if place.rung_index == rung.rung_index]
        if mine or (with_empty and not rung.total):
            rows = tuple(place_row(place=place, rung=rung, around=around) for place in mine)
            groups.append(_group(occupancy=occupancy, rung=rung, rows=rows, glance=around.glance))
    return tuple(groups)


def _group(*, occupancy: Occupancy, rung: RungOccupancy, rows: tuple[PlaceRow, ...], glance: Glance) -> RungGroup:
    mark = "serving" if rung.rung == occupancy.serving_rung else "next" if rung.rung == occupancy.next_rung else ""
    return RungGroup(
        rung=rung.rung,
        rung_index=rung.rung_index,
        mark=mark,
        count=f"{rung.usable} of {rung.total} usable" if rung.total else "no connections here",
        note=budget_words(rung.budget, glance=glance).whole if rung.budget else _next_back(occupancy, rung, glance),
        rows=rows,
    )


def _next_back(occupancy: Occupancy, rung: RungOccupancy, glance: Glance) -> str:
    """Return when the next of a rung's places is back, where one is out for now and its return is known."""
    here = (
        place for place in occupancy.places if place.rung_index == rung.rung_index and place.state in WAITING_STATES
    )
    returns = [place.returns_at for place in here if place.returns_at and place.returns_at > glance.now]
    return f"next back not before {glance.until(min(returns)).clock}" if returns else ""
