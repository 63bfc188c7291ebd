"""The list of stored connections: search, filters, order, pages (SPEC 5, 2)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict

from ladder.core.places import Place
from ladder.core.snapshot import Snapshot
from ladder.views.filters import Chip
from ladder.views.paging import Leaf, leaf_of, page_number
from ladder.views.presenting.values import STATES

PAGE_SIZE = 50
RESET, LEAST_LEFT, STATE = "reset", "left", "state"
SORTS = {"": "Name", STATE: "State", RESET: "Soonest reset", LEAST_LEFT: "Least left"}
ENABLED, PAUSED = "enabled", "paused"
_LONGEST_SEARCH = 200
_BILLINGS = ("subscription", "metered", "keyless", "unknown")
_ORDER_OF_STATES = {key: place for place, key in enumerate(STATES)}


class ListAsked(msgspec.Struct, frozen=True):
    """What the list was asked for; words it does not know are left out."""

    search: str = ""
    providers: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    billings: frozenset[str] = frozenset()
    enabled: frozenset[str] = frozenset()
    sort: str = ""
    page: int = 1

    @property
    def is_filtered(self) -> bool:
        """Tell whether anything narrows the list."""
        return bool(self.search or self.providers or self.states or self.billings or self.enabled)

    def query(self, *, page: int | None = None) -> str:
        """Return the query string of what is asked, with another page where given."""
        pairs = [("q", self.search)] if self.search else []
        for name, values in (
            ("provider", self.providers),
            ("state", self.states),
            ("billing", self.billings),
            ("enabled", self.enabled),
        ):
            pairs += [(name, value) for value in sorted(values)]
        pairs += [("sort", self.sort)] if self.sort else []
        number = page or self.page
        return urlencode([*pairs, *([("page", str(number))] if number > 1 else [])])


class Listed(msgspec.Struct, frozen=True):
    """One stored connection with its places, lowest rung first; the first of them speaks for it."""

    provider: str
    connection_id: str
    label: str
    is_enabled: bool
    billing: str
    places: tuple[Place, ...]

    @property
    def state(self) -> str:
        """Return the state on its lowest rung."""
        return self.places[0].state.value if self.places else "off"


class ListPage(msgspec.Struct, frozen=True):
    """One page of the connections that the filters leave, and the filters with their counts."""

    rows: list[Listed]
    leaf: Leaf
    total: int
    chips: dict[str, list[Chip]]


def list_asked(query: QueryDict) -> ListAsked:
    """Return what a query string asks for."""
    sort = query.get("sort", "")
    return ListAsked(
        search=query.get("q", "").replace("\x00", "").strip()[:_LONGEST_SEARCH],
        providers=frozenset(query.getlist("provider")),
        states=frozenset(query.getlist("state")) & STATES.keys(),
        billings=frozenset(query.getlist("billing")) & set(_BILLINGS),
        enabled=frozenset(query.getlist("enabled")) & {ENABLED, PAUSED},
        sort=sort if sort in SORTS else "",
        page=page_number(query.get("page", "")),
    )


def listed_of(*, snapshot: Snapshot, places: Sequence[Place], labels: Mapping[tuple[str, str], str]) -> list[Listed]:
    """Return the stored connections, by provider and id; a keyless path that only a report speaks of is none."""
    by_name: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        by_name.setdefault((place.provider, place.connection_id), []).append(place)
    rows = [
        Listed(
            provider=account.connection.provider,
            connection_id=account.connection.connection_id,
            label=labels.get((account.connection.provider, account.connection.connection_id), ""),
            is_enabled=account.connection.is_enabled,
            billing=account.verdict.billing.value,
            places=tuple(by_name.get((account.connection.provider, account.connection.connection_id), ())),
        )
        for account in snapshot.accounts
        if not account.connection.is_implied
    ]
    return sorted(rows, key=lambda one: (one.provider, one.connection_id))


def list_page(*, rows: Sequence[Listed], asked: ListAsked) -> ListPage:
    """Return the page that is asked for; past the end the last one there is."""
    fitting = [one for one in rows if _fits(one, asked)]
    leaf = leaf_of(total=len(fitting), page=asked.page, size=PAGE_SIZE)
    return ListPage(
        rows=sorted(fitting, key=_ORDERS[asked.sort])[leaf.part], leaf=leaf, total=len(rows), chips=_chips(rows, asked)
    )


_VALUES: dict[str, Callable[[Listed], str]] = {
    "provider": lambda one: one.provider,
    "state": lambda one: one.state,
    "billing": lambda one: one.billing,
    "enabled": lambda one: ENABLED if one.is_enabled else PAUSED,
}


def _chosen(asked: ListAsked) -> dict[str, frozenset[str]]:
    return {
        "provider": asked.providers,
        "state": asked.states,
        "billing": asked.billings,
        "enabled": asked.enabled,
    }


def _fits(one: Listed, asked: ListAsked, *, but: str = "") -> bool:
    chosen = _chosen(asked)
    if any(chosen[name] and name != but and _VALUES[name](one) not in chosen[name] for name in chosen):
        return False
    text = f"{one.provider}/{one.connection_id} {one.label}".casefold()
    return all(word in text for word in asked.search.casefold().split())


def _chips(rows: Sequence[Listed], asked: ListAsked) -> dict[str, list[Chip]]:
    """Return the filters with their counts; a filter's own choice does not lower the counts beside it."""
    chosen = _chosen(asked)
    values = {
        "provider": sorted({one.provider for one in rows} | asked.providers),
        "state": list(STATES),
        "billing": list(_BILLINGS),
        "enabled": [ENABLED, PAUSED],
    }
    counts = {name: Counter(_VALUES[name](one) for one in rows if _fits(one, asked, but=name)) for name in values}
    return {
        name: [
            Chip(
                name=name,
                value=value,
                count=counts[name][value],
                is_checked=value in chosen[name],
                state=STATES[value] if name == "state" else None,
            )
            for value in listed
        ]
        for name, listed in values.items()
    }


def _by_name(one: Listed) -> tuple[str, str]:
    return one.provider, one.connection_id


def _by_state(one: Listed) -> tuple[int, tuple[str, str]]:
    return _ORDER_OF_STATES[one.state], _by_name(one)


def _by_reset(one: Listed) -> tuple[bool, float, tuple[str, str]]:
    place = one.places[0] if one.places else None
    at = (place.returns_at or (place.window.reset_at if place.window else None)) if place else None
    return at is None, at.timestamp() if at else 0.0, _by_name(one)


def _by_left(one: Listed) -> tuple[bool, Decimal, tuple[str, str]]:
    window = one.places[0].window if one.places else None
    left = window.remaining_percent if window else None
    return left is None, left if left is not None else Decimal(0), _by_name(one)


_ORDERS: dict[str, Callable[[Listed], tuple[object, ...]]] = {
    "": _by_name,
    STATE: _by_state,
    RESET: _by_reset,
    LEAST_LEFT: _by_left,
}
