"""The words of the timeline: causes, lanes, kinds of acts and reason codes, the same in chart, tables and list."""

from ladder.core.reasons import Code
from ladder.core.timeline.causes import Cause
from ladder.core.timeline.marks import BUDGET_ENDS, Lane
from omniroute_admin.common.core.words import count_text

CAUSE_WORDS: dict[str, str] = {
    Cause.READING: "a reading",
    Cause.RESET: "a quota reset",
    Cause.COOLDOWN: "a cooldown or breaker",
    Cause.BUDGET: "a budget",
    Cause.SETTING: "a setting",
    Cause.OPERATOR: "an operator",
    Cause.CATALOGUE: "the catalogue",
    Cause.TIME: "time: a reading grew too old",
}
"""Why something changed, by the stable word of the cause."""

LANE_WORDS: dict[str, str] = {
    Lane.CHANGE: "connection changes",
    Lane.RESET: "resets",
    Lane.SETTING: "setting changes",
    Lane.CATALOGUE: "catalogue changes",
    Lane.OPERATOR: "operator acts",
}
"""What stands in a lane of the chart."""

KIND_WORDS: dict[str, tuple[str, str]] = {
    "settings": ("ladder settings", "ladder settings"),
    "budget": ("budget", "budgets"),
    "thresholds": ("tier thresholds", "tier thresholds"),
    "billing": ("billing entry", "billing entries"),
    "price": ("price", "prices"),
    "tier-override": ("tier override", "tier overrides"),
    "free-provider": ("free provider", "free providers"),
    "alias": ("provider alias", "provider aliases"),
    "price-source": ("price source", "price sources"),
    "connection": ("connection", "connections"),
    "window": ("quota window", "quota windows"),
    "cooldown": ("cooldown", "cooldowns"),
    "breaker": ("breaker", "breakers"),
}
"""What an act was on: one, and many."""

ACT_WORDS = {"+": "made", "~": "changed", "-": "deleted"}

CODE_WORDS: dict[str, str] = {
    Code.NO_MODELS: "no model of its provider has a current price",
    Code.CONNECTION_DISABLED: "switched off",
    Code.MODEL_EXCLUDED: "not to serve its models",
    Code.RUNG_DISABLED: "the rung's budget is 0",
    Code.BREAKER_OPEN: "the provider's breaker is open",
    Code.COOLDOWN: "in cooldown",
    Code.QUOTA_EXHAUSTED: "at or below the exit cutoff",
    Code.HELD_FOR_REENTRY: "not yet above the re-entry floor",
    Code.RESET_PENDING: "reset, not read since",
    Code.QUOTA_STALE: "the reading is too old",
    Code.QUOTA_UNVERIFIED: "no usable reading",
    Code.BUDGET_SPENT: "the budget is spent or on hold",
}
"""Reason codes of places, in short; a code that is not here stands for itself."""


def happened_words(what: str, count: int) -> str:
    """Return what happened so many times: `2 by a quota reset`, `3 prices`, `budget window of cheap ended`."""
    if what.startswith(BUDGET_ENDS):
        return f"budget window of {what.removeprefix(BUDGET_ENDS)} ended"
    if what in KIND_WORDS:
        return count_text(count, *KIND_WORDS[what])
    return f"{count_text(count, 'change', 'changes')} by {CAUSE_WORDS.get(what, what)}"
