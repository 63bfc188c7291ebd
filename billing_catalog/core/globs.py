"""The one glob of the product: `*` stands for any run of characters, over the whole name, any case (T, Q6)."""

import re
from functools import lru_cache


def glob_matches(*, pattern: str, name: str) -> bool:
    """Tell whether `pattern` covers the whole of `name`; every character but `*` stands for itself."""
    return _compiled(pattern).match(name) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    first, *others = (re.escape(part) for part in pattern.split("*"))
    # Each part between two stars may take its first place for good: trying others would cost a caller's pattern of
    # many stars exponential time, and could find nothing more.
    middle = "".join(f"(?>.*?{part})" for part in others[:-1])
    last = f".*{others[-1]}" if others else ""
    return re.compile(rf"{first}{middle}{last}\Z", re.IGNORECASE | re.DOTALL)
