"""The demo fleet: which connections it has and how each one's quota goes up and down.

Real providers, so that the shipped facts and prices apply; short cycles, so that every state shows within minutes.
Seconds and percent remaining throughout.
"""

from decimal import Decimal

from ladder.core.demo.moves import DemoConnection, DemoRest, DemoWindow, Stretch
from ladder.core.values import CooldownCause
from omniroute_admin.common.core.names import NOAUTH

_DAY = 86_400
# The epoch was a Thursday; weeks begin on Mondays.
_MONDAY = 4 * _DAY


def _stretch(seconds: int, start: int | None, end: int | None, *, is_read: bool = True) -> Stretch:
    """Return a stretch from whole percentages."""
    first, last = (None if percent is None else Decimal(percent) for percent in (start, end))
    return Stretch(seconds, first, last, is_read)


def _weekly(start: int, end: int, *, window: str = "weekly", model: str | None = None) -> DemoWindow:
    return DemoWindow(window=window, stretches=(_stretch(7 * _DAY, start, end),), shift=_MONDAY, model=model)


_STEADY = DemoConnection(
    connection_id="demo-claude-1",
    provider="claude",
    auth_type="oauth",
    label="demo: plan with room",
    windows=(
        DemoWindow(window="5h", stretches=(_stretch(1440, 100, 9), _stretch(120, 9, 0), _stretch(240, 0, 0))),
        _weekly(97, 34),
        _weekly(94, 21, window="weekly:opus", model="*opus*"),
    ),
)
_USED_UP = DemoConnection(
    connection_id="demo-claude-2",
    provider="claude",
    auth_type="oauth",
    label="demo: plan used up, resets soon",
    windows=(
        DemoWindow(
            window="5h",
            stretches=(_stretch(60, 100, 100, is_read=False), _stretch(120, 99, 1), _stretch(180, 1, 0)),
        ),
        _weekly(92, 44),
    ),
)
_HELD = DemoConnection(
    connection_id="demo-claude-3",
    provider="claude",
    auth_type="oauth",
    label="demo: plan held after a dip",
    windows=(
        DemoWindow(
            window="5h",
            stretches=(_stretch(140, 100, 3), _stretch(40, 1, 1), _stretch(240, 4, 4), _stretch(60, 12, 8)),
        ),
        _weekly(88, 52),
    ),
)
_RESTING = DemoConnection(
    connection_id="demo-codex-1",
    provider="codex",
    auth_type="oauth",
    label="demo: plan in clamped cooldown",
    windows=(DemoWindow(window="5h", stretches=(_stretch(300, 100, 0), _stretch(240, 0, 0))), _weekly(95, 40)),
    rests=(DemoRest(cause=CooldownCause.QUOTA, cycle=540, after=310, asks=1800, clamped=True),),
)
_STALE = DemoConnection(
    connection_id="demo-codex-2",
    provider="codex",
    auth_type="oauth",
    label="demo: plan without news",
    read_once=(("5h", Decimal(64)), ("weekly", Decimal(71))),
)
_UNVERIFIED = DemoConnection(
    connection_id="demo-cursor-1",
    provider="cursor",
    auth_type="oauth",
    label="demo: plan that may bill on",
    windows=(DemoWindow(window="monthly", stretches=(_stretch(180, 61, 61), _stretch(180, None, None)), resets=False),),
)
_FREE = DemoConnection(
    connection_id="demo-kiro-1",
    provider="kiro",
    auth_type="oauth",
    label="demo: free, no model priced",
    windows=(DemoWindow(window="monthly", stretches=(_stretch(30 * _DAY, 100, 35),)),),
)
_CHEAP = DemoConnection(
    connection_id="demo-deepseek-1",
    provider="deepseek",
    auth_type="apikey",
    label="demo: metered, rate limited",
    rests=(DemoRest(cause=CooldownCause.RATE_LIMIT, cycle=240, after=60, asks=80),),
)
_MIXED = DemoConnection(
    connection_id="demo-openrouter-1",
    provider="openrouter",
    auth_type="apikey",
    label="demo: metered, three rungs",
    windows=(DemoWindow(window="daily", stretches=(_stretch(900, 100, 1), _stretch(300, 0, 0))),),
)
_KEYLESS = DemoConnection(
    connection_id=NOAUTH,
    provider="ovhcloud",
    auth_type="none",
    label="demo: path without a key",
)

FLEET = (_STEADY, _USED_UP, _HELD, _RESTING, _STALE, _UNVERIFIED, _FREE, _CHEAP, _MIXED, _KEYLESS)
