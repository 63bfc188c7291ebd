"""What the address of the ladder page asks for: filters, order, page, and the pool to show (SPEC 5)."""

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict

from ladder.core.occupancy import Occupancy
from ladder.core.places import Place
from ladder.core.values import MixedRungs, PoolOptions, Rung
from ladder.views.paging import Leaf, leaf_of, page_number
from ladder.views.presenting.values import STATES
from omniroute_admin.common.core.screen import StateWord

PAGE_SIZE = 50
RESET, LEAST_LEFT = "reset", "left"
SORTS = {"": "Router order", RESET: "Soonest reset", LEAST_LEFT: "Least left"}
DEFAULT_POOL = "auto/thrifty"


class Asked(msgspec.Struct, frozen=True):
    """What a page was asked for; words it does not know are left out, so an old bookmark still shows a page.

    `page` is that of the connections on the ladder page, of the candidates on a pool's; `left_page` of those left out.
    """

    rungs: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    providers: frozenset[str] = frozenset()
    sort: str = ""
    page: int = 1
    left_page: int = 1
    pool_id: str = DEFAULT_POOL
    options: PoolOptions = PoolOptions(explain=True)

    @property
    def is_filtered(self) -> bool:
        """Tell whether any filter is set."""
        return bool(self.rungs or self.states or self.providers)


class Chip(msgspec.Struct, frozen=True):
    """One value of a filter, with how many places it would show beside the other filters."""

    name: str
    value: str
    count: int
    is_checked: bool
    state: StateWord | None = None


class Listing(msgspec.Struct, frozen=True):
    """One page of the places that the filters leave."""

    places: list[Place]
    leaf: Leaf


def asked_of(query: QueryDict, *, pool_ids: Iterable[str], pool_id: str | None = None) -> Asked:
    """Return what a query string asks for; `pool_id` is given where the path names the pool."""
    wanted = pool_id or query.get("pool", "")
    return Asked(
        rungs=frozenset(query.getlist("rung")) & {rung.word for rung in Rung},
        states=frozenset(query.getlist("state")) & STATES.keys(),
        providers=frozenset(query.getlist("provider")),
        sort=query.get("sort", "") if query.get("sort", "") in SORTS else "",
        page=page_number(query.get("page", "")),
        left_page=page_number(query.get("left", "")),
        pool_id=wanted if wanted in set(pool_ids) else DEFAULT_POOL,
        options=_options_of(query),
    )


def _options_of(query: QueryDict) -> PoolOptions:
    merge = query.get("mixed_rungs") == MixedRungs.MERGE
    return PoolOptions(
        mixed_rungs=MixedRungs.MERGE if merge else MixedRungs.SPLIT,
        lowest_rung_only=query.get("lowest_rung_only") == "true",
        explain=True,
    )


def filter_pairs(asked: Asked) -> list[tuple[str, str]]:
    """Return the filters and the order as pairs of a query string, always in one order."""
    sets = (("rung", asked.rungs), ("state", asked.states), ("provider", asked.providers))
    pairs = [(name, value) for name, values in sets for value in sorted(values)]
    return [*pairs, *([("sort", asked.sort)] if asked.sort else [])]


def pool_pairs(asked: Asked) -> list[tuple[str, str]]:
    """Return the choice of the pool as pairs of a query string."""
    pairs = [("pool", asked.pool_id)] if asked.pool_id != DEFAULT_POOL else []
    return [*pairs, *option_pairs(asked.options)]


def option_pairs(options: PoolOptions) -> list[tuple[str, str]]:
    """Return the options of a pool, as the API's own query parameters."""
    pairs = [("mixed_rungs", options.mixed_rungs.value)] if options.mixed_rungs is MixedRungs.MERGE else []
    return [*pairs, *([("lowest_rung_only", "true")] if options.lowest_rung_only else [])]


def query_of(asked: Asked, *, page: int | None = None, left_page: int | None = None) -> str:
    """Return the query string of what is asked, with another page where given."""
    return urlencode([*filter_pairs(asked), *pool_pairs(asked), *page_pairs(asked, page=page, left_page=left_page)])


def page_pairs(asked: Asked, *, page: int | None = None, left_page: int | None = None) -> list[tuple[str, str]]:
    """Return the pages as pairs of a query string, without those that are the first."""
    numbers = (("page", page or asked.page), ("left", left_page or asked.left_page))
    return [(name, str(number)) for name, number in numbers if number > 1]


def chips(*, occupancy: Occupancy, asked: Asked) -> dict[str, list[Chip]]:
    """Return the three filters with their counts; a filter's own choice does not lower the counts beside it."""
    places = occupancy.places
    rungs = Counter(place.rung for place in places if _fits(place, asked, but="rung"))
    states = Counter(place.state.value for place in places if _fits(place, asked, but="state"))
    providers = Counter(place.provider for place in places if _fits(place, asked, but="provider"))
    listed = sorted({place.provider for place in places} | asked.providers)
    return {
        "rung": [_chip("rung", rung.rung, rungs, asked.rungs) for rung in occupancy.rungs],
        "state": [_chip("state", key, states, asked.states, state=state) for key, state in STATES.items()],
        "provider": [_chip("provider", provider, providers, asked.providers) for provider in listed],
    }


def _chip(
    name: str, value: str, counts: Counter[str], checked: frozenset[str], *, state: StateWord | None = None
) -> Chip:
    return Chip(name=name, value=value, count=counts[value], is_checked=value in checked, state=state)


def _fits(place: Place, asked: Asked, *, but: str = "") -> bool:
    return (
        (but == "rung" or not asked.rungs or place.rung in asked.rungs)
        and (but == "state" or not asked.states or place.state in asked.states)
        and (but == "provider" or not asked.providers or place.provider in asked.providers)
    )


def listing(*, occupancy: Occupancy, asked: Asked) -> Listing:
    """Return the page of places that is asked for; past the end the last one there is."""
    fitting = [place for place in occupancy.places if _fits(place, asked)]
    leaf = leaf_of(total=len(fitting), page=asked.page, size=PAGE_SIZE)
    return Listing(places=_ordered(fitting, asked.sort)[leaf.part], leaf=leaf)


def _ordered(places: list[Place], sort: str) -> list[Place]:
    """Return the places ordered inside each rung; the order of the rungs themselves is the ladder and stands."""
    if sort == RESET:
        return sorted(places, key=lambda place: (place.rung_index, *_reset_key(place)))
    if sort == LEAST_LEFT:
        return sorted(places, key=lambda place: (place.rung_index, *_left_key(place)))
    return sorted(places, key=lambda place: place.rung_index)


def _reset_key(place: Place) -> tuple[bool, float]:
    at = place.returns_at or (place.window.reset_at if place.window else None)
    return at is None, at.timestamp() if at else 0.0


def _left_key(place: Place) -> tuple[bool, bool, Decimal]:
    unlimited = bool(place.window and place.window.unlimited)
    known = place.window.remaining_percent if place.window else None
    return unlimited, known is None, known if known is not None else Decimal(0)
