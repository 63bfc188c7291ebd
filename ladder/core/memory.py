"""How much is remembered of what callers choose: its memory is bounded."""

from typing import Any

_MOST = 20_000


def make_room(memory: dict[Any, Any]) -> None:
    """Let go of everything where a memory is full, before one more thing is put into it."""
    if len(memory) >= _MOST:
        memory.clear()
