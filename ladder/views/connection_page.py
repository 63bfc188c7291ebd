"""What the page of one connection is drawn from, region by region (SPEC 5, 2).

Everything about the decision comes from the code that the API's explain, the occupancy and the pools are made by.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import NoReverseMatch, reverse

from billing_catalog.core.values import Matched, Verdict
from billing_catalog.models import BillingEntry
from ladder.core.explain import judge_connection, pool_places
from ladder.core.judge import Account
from ladder.core.quota import QuotaJudgement, judge_window
from ladder.core.readings.pace import Life, life_of, start_by_name, ticks_of
from ladder.core.reasons import Code
from ladder.core.values import LadderSettings, QuotaVerdict, Window
from ladder.models import Connection, Cooldown
from ladder.selectors.connection_page import (
    cooldowns_of,
    find_catalogue_row,
    read_along,
    read_earlier_resets,
    read_used_up,
    sample_readings,
)
from ladder.selectors.form_values import windows_of
from ladder.selectors.screen import ActingCooldown
from ladder.views.connection_past import past_context
from ladder.views.connection_query import ConnectionAsked
from ladder.views.paging import Leaf, leaf_of
from ladder.views.picture import micros, region_sum, token_of
from ladder.views.presenting.connection import class_view, places_of, pool_words, standing_lines
from ladder.views.presenting.cooldowns import cooldown_views
from ladder.views.presenting.places import Around
from ladder.views.presenting.values import STATES
from ladder.views.presenting.windows import Past, is_binding_told, window_cards, windows_words
from ladder.views.seen import Seen
from omniroute_admin.common.core.screen import Glance, iso_text
from omniroute_admin.common.core.words import clock_text

WINDOWS_A_PAGE, MODELS_A_PAGE, HISTORY_A_PAGE = 12, 50, 20
POINTS_DRAWN = 40
REDRAWN_AFTER = timedelta(minutes=1)
"""A pace and the line of "now" move without any write: the page is drawn anew at least so often."""

REGIONS = ("now", "windows", "cool", "hist", "class", "pools", "spend", "foot")


class Subject(msgspec.Struct, frozen=True):
    """Whose page it is: the row, others that had its name, and what the decision knows of it (None: deleted)."""

    row: Connection
    others: tuple[Connection, ...]
    account: Account | None
    seen: Seen
    asked: ConnectionAsked

    @property
    def glance(self) -> Glance:
        """Return when and where it is looked at."""
        return self.seen.glance

    @property
    def settings(self) -> LadderSettings:
        """Return the settings of the decision."""
        return self.seen.snapshot.facts.settings


def subject_of(*, rows: Sequence[Connection], seen: Seen, asked: ConnectionAsked) -> Subject | None:
    """Return whose page is asked for among the connections of a name; None where none is there, or not that one."""
    row = next((one for one in rows if asked.past in {None, one.pk}), None)
    if row is None:
        return None
    account = None
    if row.deleted_at is None:
        found = seen.snapshot.find_account(connection_id=row.connection_id, provider=row.provider)
        account = found if isinstance(found, Account) else None
    return Subject(row, tuple(one for one in rows if one.pk != row.pk), account, seen, asked)


def region_context(subject: Subject) -> dict[str, Any]:
    """Return all that the regions are drawn from."""
    row, glance = subject.row, subject.glance
    shared = {
        "row": row,
        "name": f"{row.provider}/{row.connection_id}",
        "page_url": reverse("connection", args=[row.provider, row.connection_id]),
        "others": [(one, glance.ago(one.deleted_at) if one.deleted_at else None) for one in subject.others],
        "asked": subject.asked,
        "query": subject.asked.live_query(),
        "revision": subject.seen.occupancy.revision,
        "now_iso": iso_text(glance.now),
        "now_clock": clock_text(at=glance.now, now=glance.now, zone=glance.zone, seconds=True),
        "zone": glance.zone_name,
        "deleted": glance.ago(row.deleted_at) if row.deleted_at else None,
        "account": subject.account,
    }
    read_along(connection=row)
    cooldowns = cooldowns_of(connection=row)
    live = _live(subject, subject.account, cooldowns) if subject.account else {}
    past = past_context(row=row, asked=subject.asked, seen=subject.seen)
    return shared | live | past


def _live(subject: Subject, account: Account, cooldowns: Sequence[Cooldown]) -> dict[str, Any]:
    """Return what only a connection has that the decision knows."""
    snapshot, glance = subject.seen.snapshot, subject.glance
    models = _models(subject)
    models_leaf = leaf_of(total=len(models), page=subject.asked.models_page, size=MODELS_A_PAGE)
    shown = models[models_leaf.part]
    judged = judge_connection(account=account, snapshot=snapshot, now=glance.now)
    pools = pool_places(account=account, models=shown, snapshot=snapshot, now=glance.now)
    breaker_until = _breaker_until(subject)
    row = subject.row
    places = places_of(occupancy=subject.seen.occupancy, provider=row.provider, connection_id=row.connection_id)
    around = Around(settings=subject.settings, glance=glance, cooldowns=_acting(row, cooldowns, glance.now))
    return {
        "lines": standing_lines(places=places, occupancy=subject.seen.occupancy, around=around),
        "rungs": [(place.rung, place.rung_index) for place in places],
        "title_state": STATES[places[0].state.value].word if places else "",
        "still_out": _still_out(judged, breaker_until),
        "cooldowns": cooldown_views(cooldowns=cooldowns, windows=account.connection.windows, glance=glance),
        "breaker_until": glance.until(breaker_until) if breaker_until else None,
        **_windows(subject, account, judged),
        **_class(subject, account.verdict),
        "pools": pool_words(places=pools),
        "model_count": len(snapshot.models_of(provider=row.provider, now=glance.now)),
        "shown_models": shown,
        "models_leaf": models_leaf,
        **_turns("models", models_leaf, subject.asked, "models_page"),
    }


def _breaker_until(subject: Subject) -> datetime | None:
    """Return until when the breaker of the provider is open, None where it is closed."""
    until = subject.seen.snapshot.facts.breakers.get(subject.row.provider)
    return until if until is not None and until > subject.glance.now else None


def _still_out(judged: QuotaJudgement, breaker_until: datetime | None) -> str:
    """Return what clearing the cooldown does not change, empty where nothing else keeps the connection out."""
    if breaker_until is not None:
        return "The breaker of its provider is open, so it stays out all the same."
    if judged.verdict in {QuotaVerdict.EXHAUSTED, QuotaVerdict.HELD}:
        return f"{judged.window} is still {judged.verdict.value}, so it stays out all the same."
    return ""


def _models(subject: Subject) -> tuple[str, ...]:
    """Return the models that the pools are told for: those whose name has what is asked for in it."""
    every = subject.seen.snapshot.models_of(provider=subject.row.provider, now=subject.glance.now)
    part = subject.asked.models.casefold()
    return tuple(model for model in every if part in model.casefold())


def _turns(prefix: str, leaf: Leaf, asked: ConnectionAsked, field: str) -> dict[str, str | None]:
    """Return the queries of the pages before and after this one, None where there is none."""
    return {
        f"{prefix}_previous": asked.query(**{field: leaf.page - 1}) if leaf.page > 1 else None,
        f"{prefix}_next": asked.query(**{field: leaf.page + 1}) if leaf.page < leaf.pages else None,
    }


def _acting(
    row: Connection, cooldowns: Sequence[Cooldown], now: datetime
) -> dict[tuple[str, str], tuple[ActingCooldown, ...]]:
    """Return the acting cooldowns as the rows of the ladder tell them: of each model the longest (C3)."""
    lasting = [one for one in cooldowns if one.effective_until is None or one.effective_until > now]
    lasting.sort(key=lambda one: (one.effective_until is None, one.effective_until or now))
    longest = {one.model or "": one for one in lasting}
    acting = (
        ActingCooldown(one.cause, one.asked_until, one.effective_until, one.set_by, one.model)
        for _, one in sorted(longest.items())
    )
    return {(row.provider, row.connection_id): tuple(acting)}


def _windows(subject: Subject, account: Account, judged: QuotaJudgement) -> dict[str, Any]:
    glance = subject.glance
    windows = _in_order(account.connection.windows, judged)
    leaf = leaf_of(total=len(windows), page=subject.asked.windows_page, size=WINDOWS_A_PAGE)
    shown = windows[leaf.part]
    keys = {one.window: one.pk for one in windows_of(subject.row)}
    pasts = _pasts(shown, keys, subject.settings, glance.now)
    return {
        "cards": window_cards(windows=shown, judged=judged, pasts=pasts, settings=subject.settings, glance=glance),
        "windows_words": windows_words(account=account, judged=judged),
        "binding": judged.window if is_binding_told(judged) else "",
        "windows_leaf": leaf,
        **_turns("windows", leaf, subject.asked, "windows_page"),
    }


def _in_order(windows: Sequence[Window], judged: QuotaJudgement) -> list[Window]:
    """Return the windows in the order of cards: the binding one, those that count by reset, then the others."""
    return sorted(
        windows,
        key=lambda one: (
            not one.is_reported,
            one.is_muted,
            one.window != judged.window,
            one.model is not None,
            one.reset_at is None,
            one.reset_at.timestamp() if one.reset_at else 0.0,
            one.window,
        ),
    )


def _pasts(
    windows: Sequence[Window], keys: Mapping[str, int], settings: LadderSettings, now: datetime
) -> dict[str, Past]:
    """Read what the cards tell of the past; at most three queries, whatever there is of it."""
    known = [(one, keys[one.window]) for one in windows if one.window in keys]
    unnamed = [
        key for one, key in known if one.reset_at and start_by_name(window=one.window, reset_at=one.reset_at) is None
    ]
    earlier = read_earlier_resets(keys=unnamed, now=now)
    lives: dict[int, Life] = {}
    for one, key in known:
        life = life_of(window=one.window, reset_at=one.reset_at, earlier_reset_at=earlier.get(key))
        if life is not None and not one.unlimited and life.reset_at > now:
            lives[key] = life
    instants = {key: ticks_of(life=life, until=now, count=POINTS_DRAWN) for key, life in lives.items()}
    points = sample_readings(instants=instants)
    out = [
        key for one, key in known if judge_window(window=one, settings=settings, now=now).code is Code.QUOTA_EXHAUSTED
    ]
    used_up = read_used_up(keys=out, cutoff=settings.exit_cutoff_percent)
    return {
        one.window: Past(life=lives.get(key), points=tuple(points.get(key, ())), used_up_at=used_up.get(key))
        for one, key in known
    }


def _class(subject: Subject, verdict: Verdict) -> dict[str, Any]:
    entry = _entry(subject.row, verdict.matched)
    view = class_view(verdict=verdict, entry=entry, row=subject.row, glance=subject.glance)
    return {"klass": view, "catalogue_url": _soft_address("catalogue", subject.row.provider)}


def _entry(row: Connection, matched: Matched) -> BillingEntry | None:
    if matched not in {Matched.PROVIDER, Matched.PROVIDER_AUTH_TYPE}:
        return None
    by_auth_type = matched is Matched.PROVIDER_AUTH_TYPE
    return find_catalogue_row(provider=row.provider, auth_type=row.auth_type if by_auth_type else None)


def _soft_address(name: str, provider: str) -> str:
    """Return the address of a page, empty where this installation has none."""
    try:
        return f"{reverse(name)}?q={provider}"
    except NoReverseMatch:
        return ""


def drawn(*, context: dict[str, Any], subject: Subject, acts_sum: str, request: HttpRequest) -> dict[str, Any]:
    """Return the regions, drawn, and the token of the picture; that of the forms tells only what they are made of."""
    regions = {name: render_to_string(f"ladder/connection/_{name}.html", context, request=request) for name in REGIONS}
    sums = {name: region_sum(html) for name, html in regions.items()} | {"acts": acts_sum}
    picture = msgspec.structs.replace(subject.seen.picture, valid_until=_valid_until(subject))
    return {"regions": regions, "sums": sums, "token": token_of(picture, sums=sums)}


def _valid_until(subject: Subject) -> int:
    latest = micros(subject.glance.now + REDRAWN_AFTER)
    until = subject.seen.picture.valid_until
    return min(until, latest) if until else latest
