"""One connection in words: where it stands now, its class and why, where the pools put it (SPEC 5, 2)."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec

from billing_catalog.core.values import Matched, Overage, Verdict
from billing_catalog.models import BillingEntry
from ladder.core.explain import PoolPlace
from ladder.core.occupancy import Occupancy
from ladder.core.places import Place
from ladder.core.reasons import Code, Family
from ladder.models import Connection
from ladder.views.presenting.places import Around, PlaceRow, place_row
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.core.words import count_text

_OVERAGE_WORDS = {
    Overage.HARD_STOP: "cannot bill past the plan",
    Overage.METERS_TO_PAID: "may bill past the plan",
    Overage.UNKNOWN: "consumed as if it may bill past the plan",
}
_MATCHED_WORDS = {
    Matched.NOAUTH: "the reserved keyless path, whatever the catalogue says",
    Matched.PROVIDER: "the provider-wide row",
    Matched.PROVIDER_AUTH_TYPE: "the row of provider and auth type",
    Matched.NONE: "no row: unknown is consumed as metered",
}
_OUT = {
    "cooldown": "Out of every pool",
    "breaker": "Out of every pool",
    "exhausted": "Out for now",
    "held": "Out for now",
    "off": "Out until somebody changes something",
}
_OLD_AFTER_DAYS = 90

_Outcome = tuple[bool, str, str]
"""What a pool does with one model of the connection: whether it is in, on which rung, else with which code."""


class StandingLine(msgspec.Struct, frozen=True):
    """Where the connection stands on one rung."""

    rung: str
    rung_index: int
    lead: str
    row: PlaceRow
    has_countdown: bool


class ClassView(msgspec.Struct, frozen=True):
    """How the connection bills and who says so; texts are empty where there is nothing to tell."""

    billing: str
    overage: str
    overage_words: str
    matched: str
    matched_words: str
    row_words: str
    reason: str
    source_url: str
    reviewed_on: str
    reviewed_words: str
    review_is_old: bool
    override: str
    override_reason: str
    override_acts: bool
    catalogue_says: str


class PoolOutcome(msgspec.Struct, frozen=True):
    """One thing that a pool does with the connection, and for how many of the models shown."""

    word: str
    rung: str
    code: str
    models: str


class PoolWords(msgspec.Struct, frozen=True):
    """What these pools, all of them alike, do with the connection."""

    ids: tuple[str, ...]
    outcomes: tuple[PoolOutcome, ...]


def places_of(*, occupancy: Occupancy, provider: str, connection_id: str) -> list[Place]:
    """Return the places of one connection, lowest rung first."""
    return [one for one in occupancy.places if (one.provider, one.connection_id) == (provider, connection_id)]


def standing_lines(*, places: Sequence[Place], occupancy: Occupancy, around: Around) -> tuple[StandingLine, ...]:
    """Return where a connection stands, a line for each rung."""
    rungs = {rung.rung: rung for rung in occupancy.rungs}
    lines = []
    for place in places:
        row = place_row(place=place, rung=rungs[place.rung], around=around)
        lines.append(
            StandingLine(
                rung=place.rung,
                rung_index=place.rung_index,
                lead=_lead(place),
                row=row,
                has_countdown=place.returns_at is not None,
            )
        )
    return tuple(lines)


def _lead(place: Place) -> str:
    if place.state.value == "usable":
        return "May serve now"
    return _OUT.get(place.state.value, "Not verified")


def class_view(*, verdict: Verdict, entry: BillingEntry | None, row: Connection, glance: Glance) -> ClassView:
    """Return the class and why; `entry` is the row of the catalogue that matched."""
    url = entry.source_url if entry else ""
    return ClassView(
        billing=verdict.billing.value,
        overage=verdict.overage.value,
        overage_words=_OVERAGE_WORDS[verdict.overage],
        matched=verdict.matched.value,
        matched_words=_MATCHED_WORDS[verdict.matched],
        row_words=f"{entry.provider} + {entry.auth_type or 'any auth type'}" if entry else "",
        reason=entry.reason if entry else "",
        source_url=url if url.startswith(("https://", "http://")) else "",
        reviewed_on=entry.reviewed_on.isoformat() if entry and entry.reviewed_on else "",
        reviewed_words=_reviewed(entry, glance.now),
        review_is_old=_is_old(entry, glance.now),
        override=row.overage_override or "",
        override_reason=row.overage_override_reason,
        override_acts=verdict.overridden,
        catalogue_says=_catalogue_says(verdict, entry),
    )


def _catalogue_says(verdict: Verdict, entry: BillingEntry | None) -> str:
    """Return the overage without the override (B1, B2)."""
    if entry is not None:
        return entry.overage
    return Overage.HARD_STOP.value if verdict.matched is Matched.NOAUTH else Overage.UNKNOWN.value


def _days_since_review(entry: BillingEntry | None, now: datetime) -> int | None:
    return (now.date() - entry.reviewed_on).days if entry and entry.reviewed_on else None


def _is_old(entry: BillingEntry | None, now: datetime) -> bool:
    days = _days_since_review(entry, now)
    return days is not None and days > _OLD_AFTER_DAYS


def _reviewed(entry: BillingEntry | None, now: datetime) -> str:
    if entry is None:
        return ""
    days = _days_since_review(entry, now)
    if days is None:
        return "never"
    by = f" by {entry.reviewed_by}" if entry.reviewed_by else ""
    return f"{by.strip()}, {count_text(days, 'day', 'days')} ago".removeprefix(", ")


def pool_words(*, places: Sequence[PoolPlace]) -> tuple[PoolWords, ...]:
    """Return what the pools do with the connection; models and pools that are treated alike stand together."""
    by_pool: dict[str, Counter[_Outcome]] = {}
    for place in places:
        outcome = (place.is_in, place.rung or "", place.code or "")
        by_pool.setdefault(place.id, Counter())[outcome] += 1
    alike: dict[tuple[tuple[_Outcome, int], ...], list[str]] = {}
    for pool_id, counts in by_pool.items():
        alike.setdefault(tuple(sorted(counts.items(), reverse=True)), []).append(pool_id)
    return tuple(
        PoolWords(ids=tuple(ids), outcomes=tuple(_outcome(*key, count, len(counts)) for key, count in counts))
        for counts, ids in alike.items()
    )


def _outcome(is_in: bool, rung: str, code: str, count: int, kinds: int) -> PoolOutcome:
    family = "" if is_in else "never" if Code(code).family is Family.NEVER else "for now"
    return PoolOutcome(
        word="in" if is_in else f"out, {family}",
        rung=rung,
        code=code,
        models=count_text(count, "model", "models") if kinds > 1 else "",
    )
