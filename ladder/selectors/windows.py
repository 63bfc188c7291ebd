"""Quota windows with what the rules say of each now (Q1 to Q7)."""

from collections.abc import Sequence
from datetime import datetime

from ladder.core.quota import judge_window
from ladder.mapping import to_settings, window_of
from ladder.models import LadderSettings, QuotaWindow
from ladder.selectors.held import held_windows


def judge_rows(*, rows: Sequence[QuotaWindow], now: datetime) -> list[QuotaWindow]:
    """Return the rows, each with `is_held` (Q5) and its own `verdict` (Q1 to Q4) put on; two queries for all."""
    settings = to_settings(LadderSettings.objects.get(pk=1))
    held = held_windows(settings=settings, window_ids=[row.pk for row in rows])
    for row in rows:
        window = window_of(row, is_held=row.pk in held)
        row.is_held = window.held  # type: ignore[attr-defined]
        row.verdict = judge_window(window=window, settings=settings, now=now).verdict.value  # type: ignore[attr-defined]
    return list(rows)
