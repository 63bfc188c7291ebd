"""The states of a place and the bars of the ladder, as values for templates."""

import msgspec

from omniroute_admin.common.core.screen import StateWord

STATES: dict[str, StateWord] = {
    key: StateWord(key=key, word=word, shape=key, tone=tone)
    for key, word, tone in (
        ("usable", "usable", "usable"),
        ("unverified", "unverified", "unverified"),
        ("pending", "reset pending", "unverified"),
        ("stale", "stale", "stale"),
        ("held", "held", "held"),
        ("exhausted", "exhausted", "exhausted"),
        ("cooldown", "cooldown", "cooldown"),
        ("breaker", "breaker open", "cooldown"),
        ("off", "off", "off"),
    )
}
"""Every state a place can be in, in the order a filter lists them."""

TRIED_STATES = frozenset({"usable", "unverified", "pending", "stale"})
"""States in which the thrifty grouping tries a place of the rungs 0 to 2 (P4)."""


class Bar(msgspec.Struct, frozen=True):
    """A bar of percent left, 0 to 100 wide.

    `kind`: `solid` measured, `stale` hatched, `dashed` unknown, `line` unlimited. `hold` is the width of the money on
    hold beside the fill, hatched by the pattern `hatch`. `marks` are the cutoff and the floor.
    """

    kind: str
    width: str = "0"
    hold: str = "0"
    hatch: str = "hatch-money"
    edged: bool = False
    marks: tuple[str, ...] = ()
