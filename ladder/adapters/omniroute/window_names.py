"""OmniRoute's window keys as this product's window names (SPEC 1: `5h`, `weekly`, `weekly:opus`, ...).

OmniRoute keeps no duration, only a key whose case and blanks vary. A key that is not known here
keeps its name in lower case with single blanks: it still counts as a limit, which can only keep a
plan out, never let one bill.
"""

import re
from typing import Literal, NamedTuple

Kind = Literal["plan", "bonus", "balance"]
_BONUS_SUFFIX = "_freetrial"
_LONGEST = 64

_EVERYWHERE = {
    "session (5h)": "5h",
    "five_hour": "5h",
    "5h": "5h",
    "weekly (7d)": "weekly",
    "seven_day": "weekly",
    "7d": "weekly",
    "weekly": "weekly",
    "monthly": "monthly",
    "daily": "daily",
}
_BY_PROVIDER = {
    "codex": {"session": "5h"},
    "glm": {"session": "5h"},
    "glmt": {"session": "5h"},
    "kimi-coding": {"ratelimit": "rate"},
    "github": {"premium_interactions": "monthly"},
    "kiro": {"agentic_request": "monthly"},
    "amazon-q": {"agentic_request": "monthly"},
    "crof": {"requests today": "daily"},
    "nanogpt": {"daily tokens": "daily", "weekly tokens": "weekly"},
}
# Here each model has its own window, and the key is the model's id. The key says nothing of a
# duration, so none is put into the name.
_KEYED_BY_MODEL = frozenset({"antigravity", "gemini-cli"})
_MODEL_ID = re.compile(r"[a-z0-9][a-z0-9._:/@+-]*", re.ASCII)

_WEEKLY_OF_A_MODEL = re.compile(r"(?:weekly (?P<words>.+) \(7d\)|seven_day_(?P<raw>.+))")
# Weekly windows of a way of use, not of a model: as a model glob they would count for nothing.
_NO_MODEL = frozenset({"oauth apps", "cowork"})
_MODEL_WORDS = re.compile(r"[a-z0-9.-]+( [a-z0-9.-]+)*", re.ASCII)

# A prepaid or bonus balance in money, spent past the plan: no window of the plan.
_BALANCES = frozenset({"credits"})


class WindowName(NamedTuple):
    """`window` is our name, `canonical` the key without its odd case and blanks.

    `model` is a glob for a window of some models only (SPEC Q6). `bonus` marks a pack that adds
    to the plan window whose canonical key is `adds_to`; `balance` is no quota window at all.
    """

    window: str
    canonical: str
    model: str | None
    kind: Kind
    adds_to: str | None


def name_window(*, provider: str, raw: object) -> WindowName | None:
    """Name one window key; None where it is no usable text at all (blank, too long, unprintable)."""
    canonical = " ".join(raw.lower().split()) if isinstance(raw, str) else ""
    if not canonical or len(canonical) > _LONGEST or not canonical.isprintable():
        return None
    if canonical in _BALANCES:
        return WindowName(canonical, canonical, None, "balance", None)
    if canonical.endswith(_BONUS_SUFFIX):
        base = canonical.removesuffix(_BONUS_SUFFIX)
        return WindowName("freetrial", canonical, None, "bonus", base)
    window, model = _window_and_model(provider=provider, canonical=canonical)
    return WindowName(window, canonical, model, "plan", None)


def _window_and_model(*, provider: str, canonical: str) -> tuple[str, str | None]:
    known = _BY_PROVIDER.get(provider, {}).get(canonical) or _EVERYWHERE.get(canonical)
    if known:
        return known, None
    if provider in _KEYED_BY_MODEL and _MODEL_ID.fullmatch(canonical):
        return canonical, canonical
    return _weekly_of_a_model(canonical) or (canonical, None)


def _weekly_of_a_model(canonical: str) -> tuple[str, str] | None:
    """`weekly opus (7d)` counts for every model with "opus" in its id, and for no other."""
    match = _WEEKLY_OF_A_MODEL.fullmatch(canonical)
    words = (match["words"] or match["raw"]).replace("_", " ") if match else ""
    if words in _NO_MODEL or not _MODEL_WORDS.fullmatch(words):
        return None
    return f"weekly:{words.replace(' ', '-')}", f"*{words.replace(' ', '*')}*"
