"""Save the tuning page: only what its sender changed, and nothing where somebody else changed something since."""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ladder.core.values import Period, Weekday
from ladder.selectors.settings import StoredSettings
from ladder.selectors.tuning import Texts, amount_of, texts_of
from ladder.services.settings import (
    BudgetChanges,
    BudgetsChanges,
    SettingsChanges,
    ThresholdChanges,
    update_settings,
)
from omniroute_admin.common.core.stale import Difference, find_changes, find_differences
from omniroute_admin.common.history import Actor

T = TypeVar("T")


class StaleTuningError(Exception):
    """Somebody saved other settings since the page was opened; nothing is saved (SPEC 5, 3).

    `stored` is what they are now, as texts; `differences` are the fields that the two sides do not agree on.
    """

    def __init__(self, stored: Texts, differences: list[Difference]) -> None:
        super().__init__("The settings were changed in between.")
        self.stored = stored
        self.differences = differences


class _SavedAlreadyError(Exception):
    """All that is wanted is so already."""


class Saved(msgspec.Struct, frozen=True):
    """What was saved: the old and the new text by field; `is_repeated` says that all of it was so already."""

    changes: Mapping[str, tuple[str, str]]
    is_repeated: bool = False


def save_tuning(*, began: Texts, sent: Texts, actor: Actor, reason: str, now: datetime) -> Saved:
    """Save what differs in `sent` from what the page showed when it was opened, and nothing else of it.

    Sent twice, it has one effect.

    Raises:
        StaleTuningError: another person's change would be overwritten, or stands beside this one.
        BadRequest: the thresholds would not be in order.
    """
    wanted = find_changes(began=began, sent=sent)
    if not wanted:
        return Saved({})
    try:
        update_settings(
            changes=_to_changes(wanted),
            actor=actor,
            reason=reason,
            now=now,
            check=lambda stored: _check(stored, began, wanted),
        )
    except _SavedAlreadyError:
        return Saved({}, is_repeated=True)
    return Saved({name: (began[name], text) for name, text in wanted.items()})


def _check(stored: StoredSettings, began: Texts, wanted: Texts) -> None:
    texts = texts_of(stored)
    if all(texts[name] == text for name, text in wanted.items()):
        raise _SavedAlreadyError
    differences = find_differences(began=began, stored=texts, sent={**began, **wanted})
    disputed = [one for one in differences if not one.is_same]
    if disputed:
        raise StaleTuningError(texts, disputed)


def _to_changes(wanted: Texts) -> SettingsChanges:
    return SettingsChanges(
        exit_cutoff_percent=_read(wanted, "exit_cutoff_percent", Decimal),
        reentry_min_remaining_percent=_read(wanted, "reentry_min_remaining_percent", Decimal),
        max_reading_age_seconds=_read(wanted, "max_reading_age_seconds", int),
        tier_thresholds=ThresholdChanges(
            free=_read(wanted, "tier_free", Decimal), cheap=_read(wanted, "tier_cheap", Decimal)
        ),
        rung_budgets=BudgetsChanges(cheap=_budget_changes(wanted, "cheap"), premium=_budget_changes(wanted, "premium")),
    )


def _budget_changes(wanted: Texts, rung: str) -> BudgetChanges:
    return BudgetChanges(
        amount_usd=_read(wanted, f"{rung}_amount", amount_of),
        period=_read(wanted, f"{rung}_period", Period),
        week_starts_on=_read(wanted, f"{rung}_week_starts_on", Weekday),
        zone=_read(wanted, f"{rung}_zone", str),
    )


def _read(wanted: Texts, name: str, read: Callable[[str], T]) -> T | UnsetType:
    return read(wanted[name]) if name in wanted else UNSET
