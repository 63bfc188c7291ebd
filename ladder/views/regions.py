"""The regions of a live page: each is drawn alone, and sent again only when its words changed (SPEC 5, 1)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe

from ladder.core.ids import CATEGORIES, FLAT_IDS, PAIR_IDS
from ladder.views.filters import SORTS, Asked, chips, filter_pairs, listing, option_pairs, pool_pairs, query_of
from ladder.views.paging import Leaf
from ladder.views.picture import region_sum, token_of
from ladder.views.presenting.notes import notes
from ladder.views.presenting.places import Around, rung_groups
from ladder.views.presenting.pools import PoolPages, pool_rows, pool_view
from ladder.views.presenting.rungs import steps
from ladder.views.presenting.sentence import exhausted_rungs, headline
from ladder.views.presenting.values import STATES
from ladder.views.seen import Seen
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.core.words import clock_text, percent_text

PICKER_SIZE = 12
"""So many lines of a pool stand on the ladder page; the pool's own page pages through all of them."""

LADDER_REGIONS = ("notes", "now", "rungs", "chips", "conns", "pools", "pool", "foot")
POOL_REGIONS = ("pool", "foot")

POOL_CHOICES = (
    ("All models", tuple(pool_id.id for pool_id in FLAT_IDS)),
    *((category, tuple(pool_id.id for pool_id in PAIR_IDS if pool_id.category == category)) for category in CATEGORIES),
)


def page_context(*, seen: Seen, asked: Asked, names: Iterable[str]) -> dict[str, Any]:
    """Return what a page and its regions are drawn from, the regions themselves drawn already."""
    context = _shared(seen, asked) | _of_regions(seen, asked, frozenset(names))
    drawn = {name: render_to_string(f"ladder/_{name}.html", context) for name in names}
    sums = {name: region_sum(html) for name, html in drawn.items()}
    return context | {"regions": _safe(drawn), "sums": sums, "token": token_of(seen.picture, sums=sums)}


def _safe(drawn: Mapping[str, str]) -> dict[str, SafeString]:
    return {name: mark_safe(html) for name, html in drawn.items()}  # noqa: S308 - templates drew and escaped them


def out_of_band(*, name: str, html: str) -> SafeString:
    """Return a region marked so that the browser puts it in the place of the one it has."""
    marked = html.replace(f'id="r-{name}"', f'id="r-{name}" hx-swap-oob="true"', 1)
    return mark_safe(marked)  # noqa: S308 - a template drew and escaped it


def _shared(seen: Seen, asked: Asked) -> dict[str, Any]:
    glance = seen.glance
    return {
        "asked": asked,
        "revision": seen.occupancy.revision,
        "now_iso": iso_text(glance.now),
        "now_clock": clock_text(at=glance.now, now=glance.now, zone=glance.zone, seconds=True),
        "zone": glance.zone_name,
        "query": query_of(asked),
        "title": _title(seen),
        "sorts": SORTS.items(),
        "pool_choices": POOL_CHOICES,
        "filter_pairs": filter_pairs(asked),
        "pool_pairs": pool_pairs(asked),
        "option_query": urlencode(option_pairs(asked.options)),
        "states": STATES.values(),
        "is_empty": not seen.occupancy.places,
        "settings": seen.snapshot.facts.settings,
        "cutoffs": _cutoffs(seen),
    }


def _title(seen: Seen) -> str:
    if not seen.occupancy.places:
        return "No connection stored"
    return f"{exhausted_rungs(seen.occupancy)} of {len(seen.occupancy.rungs)} rungs exhausted"


def _cutoffs(seen: Seen) -> str:
    settings = seen.snapshot.facts.settings
    low, high = percent_text(settings.exit_cutoff_percent), percent_text(settings.reentry_min_remaining_percent)
    is_below = settings.reentry_min_remaining_percent < settings.exit_cutoff_percent
    return f"exit {low}, re-entry {high}{f' counts as {low}, the exit cutoff' if is_below else ''}"


def _of_regions(seen: Seen, asked: Asked, names: frozenset[str]) -> dict[str, Any]:
    """Return what only some regions need; a page without them does not pay for it."""
    is_ladder = "conns" in names
    context = _of_the_ladder(seen, asked) if is_ladder else {}
    if "pool" in names:
        pages = (
            PoolPages(size=PICKER_SIZE, is_brief=True)
            if is_ladder
            else PoolPages(page=asked.page, left_page=asked.left_page)
        )
        context |= _of_the_pool(seen, asked, pages) | {"is_alone": not is_ladder}
    return context


def _of_the_pool(seen: Seen, asked: Asked, pages: PoolPages) -> dict[str, Any]:
    pool = pool_view(
        pool=seen.pool(asked), occupancy=seen.occupancy, options=asked.options, glance=seen.glance, pages=pages
    )
    return {
        "pool": pool,
        **_turns(pool.leaf, "", lambda page: query_of(asked, page=page)),
        **_turns(pool.left_leaf, "left_", lambda page: query_of(asked, left_page=page)),
    }


def _turns(leaf: Leaf, prefix: str, query: Callable[[int], str]) -> dict[str, str | None]:
    """Return the queries of the pages before and after this one, None where there is none."""
    return {
        f"{prefix}previous_query": query(leaf.page - 1) if leaf.page > 1 else None,
        f"{prefix}next_query": query(leaf.page + 1) if leaf.page < leaf.pages else None,
    }


def _of_the_ladder(seen: Seen, asked: Asked) -> dict[str, Any]:
    occupancy, settings = seen.occupancy, seen.snapshot.facts.settings
    around = Around(settings=settings, glance=seen.glance, cooldowns=seen.cooldowns, labels=seen.labels)
    listed = listing(occupancy=occupancy, asked=asked)
    groups = rung_groups(
        occupancy=occupancy,
        shown=listed.places,
        around=around,
        with_empty=not asked.is_filtered and listed.leaf.page == listed.leaf.pages,
    )
    return {
        "notes": notes(occupancy=occupancy, work=seen.work, glance=seen.glance),
        "headline": headline(occupancy=occupancy, glance=seen.glance, labels=seen.labels),
        "steps": steps(occupancy=occupancy, around=around),
        "shown_rungs": [group.rung for group in groups],
        "pool_query": urlencode(pool_pairs(asked)),
        "chips": chips(occupancy=occupancy, asked=asked),
        "listing": listed,
        "groups": groups,
        "connection_count": len({(place.provider, place.connection_id) for place in occupancy.places}),
        "place_count": len(occupancy.places),
        **_turns(listed.leaf, "conns_", lambda page: query_of(asked, page=page)),
        "pool_rows": pool_rows(occupancy),
    }
