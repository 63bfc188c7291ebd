"""Book what routers used, append-only and each event once (SPEC 4, Usage; M4 to M7)."""

from collections import deque
from collections.abc import Iterable, Sequence
from datetime import datetime

from ladder.core.values import MoneyKind
from ladder.mapping import rung_named
from ladder.models import Connection, UsageEvent
from ladder.services.answers import Rejected, TelemetryAnswer
from ladder.services.booked_connections import lock_booked
from ladder.services.budgets import gates_of, keep_past, lock_budgets, read_gates, read_past
from ladder.services.clashes import write_looking_again
from ladder.services.hold_rows import rungs_of_holds, settle_holds
from ladder.services.live_connections import Refusal
from ladder.services.usage_items import UnreadableItem, UsageItem, problem_of
from ladder.services.usage_judge import UsageJudge
from ladder.services.usage_ledger import Ledger, says_the_same
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.core.periods import Part
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.history import Actor
from omniroute_admin.common.selectors.horizons import horizon_of
from omniroute_admin.common.services.revision import DecidingWrite

Item = UsageItem | UnreadableItem
_Outcome = str | Refusal

_UNKNOWN_EVENT = Refusal("unknown_event", "corrects_event_id: no such event is booked")
_CONFLICT = Refusal("conflict", "event_id: this event is booked with another content; send a correction")

ACCEPTED, DUPLICATE, SUPERSEDED = "accepted", "duplicates", "superseded"


def record_usage(*, items: Sequence[Item], actor: Actor, now: datetime) -> TelemetryAnswer:
    """Book a body of events received at `now` and count what became of each.

    An event that is there already is a duplicate, or rejected as a `conflict` where it says something else. A
    correction is booked at its original's instant, and superseded where a later one is there. Originals are booked
    before corrections, whatever their places in the body. What happened before the horizon of the ledger and is not
    there is rejected as `too_old`. A constant number of queries, however long the body.
    """
    return _answer(write_looking_again(lambda write: _Recorder(items=items, actor=actor, now=now).record(write)))


def _answer(outcomes: Sequence[_Outcome]) -> TelemetryAnswer:
    rejected = [Rejected(index, one.code, one.detail) for index, one in enumerate(outcomes) if isinstance(one, Refusal)]
    counts = {word: outcomes.count(word) for word in (ACCEPTED, DUPLICATE, SUPERSEDED)}
    return TelemetryAnswer(**counts, rejected=tuple(rejected))


class _Recorder:
    """One body on its way into the ledger, under the locks of its connections."""

    def __init__(self, *, items: Sequence[Item], actor: Actor, now: datetime) -> None:
        self._actor, self._now = actor, now
        self._outcomes: dict[int, _Outcome] = {}
        self._good: dict[int, UsageItem] = {}
        for index, item in enumerate(items):
            problem = problem_of(item, now=now)
            if problem is not None:
                self._outcomes[index] = problem
            elif isinstance(item, UsageItem):
                self._good[index] = item

    def record(self, write: DecidingWrite) -> list[_Outcome]:
        good = self._good.values()
        self._connections = lock_booked(connection_ids={item.connection_id for item in good})
        keyless = {item.provider for item in good if item.connection_id == NOAUTH and item.provider is not None}
        is_implied = self._connections.imply(providers=keyless, actor=self._actor, now=self._now)
        named = {item.event_id for item in good}.union(item.corrects_event_id or "" for item in good)
        corrections = {index: item for index, item in self._good.items() if item.corrects_event_id}
        self._ledger = Ledger(event_ids=named, with_corrections=bool(corrections))
        # Read after the rows: one that was taken out before they were read lies behind the horizon that is read now.
        self._horizon = horizon_of(Part.LEDGER)
        fresh = self._find_connections()
        self._judge = self._make_judge(fresh.values(), corrections.values())
        self._book_originals(fresh)
        self._book_corrections(corrections)
        write.changed = _save(self._ledger, self._now) or is_implied
        write.shown = bool(self._ledger.new)
        return [outcome for _, outcome in sorted(self._outcomes.items())]

    def _find_connections(self) -> dict[int, Connection]:
        """Return on whom the events are booked that are neither there yet nor corrections."""
        fresh: dict[int, Connection] = {}
        for index, item in self._good.items():
            if item.corrects_event_id or self._is_known(index, item) or self._is_too_old(index, item):
                continue
            found = self._connections.find(
                connection_id=item.connection_id, provider=item.provider, at=item.occurred_at
            )
            if isinstance(found, Refusal):
                self._outcomes[index] = found
            else:
                fresh[index] = found
        return fresh

    def _make_judge(self, fresh: Iterable[Connection], corrections: Iterable[UsageItem]) -> UsageJudge:
        booked = {one.pk: one for one in fresh}
        self._connections.read_auth_types(keys=list(booked))
        originals = [self._ledger.original_of(item.corrects_event_id or "") for item in corrections]
        providers = {one.provider for one in booked.values()}
        providers |= {row.connection.provider for row in originals if row is not None}
        models = {item.model for item in self._good.values()}
        return UsageJudge(providers=providers, models=models, connections=self._connections, now=self._now)

    def _book_originals(self, fresh: dict[int, Connection]) -> None:
        for index, booked in fresh.items():
            item = self._good[index]
            # Once more: the same id may stand twice in the body.
            if not self._is_known(index, item):
                self._ledger.add(self._judge.original(item, booked), original=None)
                self._outcomes[index] = ACCEPTED

    def _book_corrections(self, corrections: dict[int, UsageItem]) -> None:
        """Book each correction after what it corrects: one may correct another of the same body."""
        waiting: dict[str, list[int]] = {}
        for index, item in corrections.items():
            waiting.setdefault(item.corrects_event_id or "", []).append(index)
        ready = deque(event_id for event_id in waiting if self._ledger.find(event_id) is not None)
        while ready:
            for index in waiting.pop(ready.popleft(), []):
                self._book_correction(index, corrections[index])
                name = corrections[index].event_id
                if name in waiting and self._ledger.find(name) is not None:
                    ready.append(name)
        for index in (index for left in waiting.values() for index in left):
            self._book_correction(index, corrections[index])

    def _book_correction(self, index: int, item: UsageItem) -> None:
        if self._is_known(index, item):
            return
        original = self._ledger.original_of(item.corrects_event_id or "")
        fault = self._mismatch(item, original)
        if original is None and self._is_too_old(index, item):
            return
        if original is None or fault is not None:
            self._outcomes[index] = fault or _UNKNOWN_EVENT
            return
        booking = self._ledger.add(self._judge.correction(item, original), original=original)
        self._outcomes[index] = ACCEPTED if booking.counts else SUPERSEDED

    def _mismatch(self, item: UsageItem, original: UsageEvent | None) -> Refusal | None:
        """Return why a correction cannot be one of its original: it says what it cost, not who did what."""
        if original is None:
            return _UNKNOWN_EVENT
        provider = None if item.provider is None else self._connections.provider_of(item.provider)
        connection = original.connection
        pairs = {
            "connection_id": item.connection_id == connection.connection_id,
            "provider": provider in {None, connection.provider},
            "model": item.model == original.model,
            "is_overage": item.is_overage in {None, original.is_overage},
        }
        wrong = [name for name, is_same in pairs.items() if not is_same]
        return Refusal("correction_mismatch", f"{', '.join(wrong)}: not as in the original") if wrong else None

    def _is_too_old(self, index: int, item: UsageItem) -> bool:
        """Tell whether an event that is not there may have been: then it is refused, and never booked twice."""
        if self._horizon is None or item.occurred_at >= self._horizon:
            return False
        detail = f"occurred_at: before {iso_text(self._horizon)}; what happened earlier is kept as sums only"
        self._outcomes[index] = Refusal("too_old", detail)
        return True

    def _is_known(self, index: int, item: UsageItem) -> bool:
        """Tell whether the event is there already, and count it as a duplicate or a conflict."""
        row = self._ledger.find(item.event_id)
        if row is None:
            return False
        provider = None if item.provider is None else self._connections.provider_of(item.provider)
        self._outcomes[index] = DUPLICATE if says_the_same(row, item, provider=provider) else _CONFLICT
        return True


def _save(ledger: Ledger, now: datetime) -> bool:
    """Write the new rows, settle the holds they name, and tell whether a rung closed, opened, or will at another time.

    The budgets are locked first: of two bodies that together cross a line the second sees the first.
    """
    if not ledger.new:
        return False
    drawn = {rung_named(row.rung) for row in ledger.new if row.money_kind == MoneyKind.BUDGET}
    named = {row.hold_id: row for row in reversed(ledger.new) if row.hold_id}
    rungs = drawn | rungs_of_holds(hold_ids=named)
    past = read_past(rows=lock_budgets(rungs=rungs), now=now)
    ledger.save()
    settle_holds(events=named)
    gates = read_gates(rungs=rungs, now=now)
    keep_past(past=past, gates=gates, now=now)
    return gates_of(past=past, now=now) != gates
