"""The one glob of the product: `*` stands for any run of characters, over the whole name, any case (T, Q6)."""

import re
from functools import lru_cache


def glob_matches(*, pattern: str, name: str) -> bool:
    """Tell whether `pattern` covers the whole of `name`; every character but `*` stands for itself."""
    return _compiled(pattern).match(name) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = (re.escape(part) for part in pattern.split("*"))
    return re.compile(".*".join(parts) + r"\Z", re.IGNORECASE | re.DOTALL)
