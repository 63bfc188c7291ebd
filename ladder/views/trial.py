"""A change tried out: what it would move, worked out beside the ladder as it is, and told (SPEC 5, 3)."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

import msgspec

from ladder.core.moves import Edits
from ladder.core.values import Rung
from ladder.selectors.settings import BudgetSettings
from ladder.selectors.whatif import WhatIf, work_out
from ladder.views.presenting.whatif import WhatIfView, whatif_view
from ladder.views.seen import Seen, see

_TRIES = 3
"""How often both sides are worked out again where a write came between the two."""


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What is tried: the edits, and what of the form was left out of them because it is wrong."""

    edits: Edits = Edits()
    budgets: Mapping[Rung, BudgetSettings] = {}
    resets: Collection[Rung] = ()
    problems: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def try_out(*, trial: Trial, now: datetime) -> tuple[WhatIf, WhatIfView]:
    """Return what the trial would move, as values and in words; nothing is stored."""
    for _ in range(_TRIES):
        seen = see(now=now)
        answer = _answer(seen, trial, now)
        if answer.revision == seen.occupancy.revision:
            break
    return answer, _view(seen, answer, trial)


def _answer(seen: Seen, trial: Trial, now: datetime) -> WhatIf:
    return work_out(
        stored=seen.snapshot,
        occupancy=seen.occupancy,
        edits=trial.edits,
        budgets=trial.budgets,
        resets=trial.resets,
        now=now,
    )


def _view(seen: Seen, answer: WhatIf, trial: Trial) -> WhatIfView:
    notes: Iterable[str] = trial.notes
    return whatif_view(answer=answer, glance=seen.glance, labels=seen.labels, problems=trial.problems, notes=notes)
