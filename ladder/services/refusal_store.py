"""What is known of refusals and the cooldowns they set, held while a body is judged, written in a few statements."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

import msgspec

from ladder.core.cooldown import Report, failures_in_a_row, later
from ladder.models import Cooldown, RefusalReport
from ladder.selectors.refusals import RefusalKey, StoredReport, read_cleared, read_streaks
from ladder.services.cooldowns import LIFTED, CooldownReport, changes_of, is_over
from ladder.services.refusal_items import RateLimit
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.statements import insert_many, update_many, write_history

_ASKED = ("is_counted", "asked_until")
_NAMED = ("reset_at", "is_reset_unreadable", "window")
_SET = ("asked_until", "effective_until", "set_by", "origin", "reported_at", "failure_count")


class KnownReport(msgspec.Struct):
    """A report while a body is judged; `id` None is one not stored yet."""

    is_counted: bool
    asked_until: datetime | None
    one: RateLimit | None = None
    """What was sent, of a new one."""
    id: int | None = None
    is_changed: bool = False

    def absorb(self, *, is_counted: bool, asked_until: datetime | None) -> bool:
        """Take in the same report once more; tell whether it asks for more than it did (C5)."""
        if is_counted:
            is_more = not self.is_counted and self.asked_until is not None
            self.is_counted = True if is_more else self.is_counted
        else:
            # No end and not counted: until cleared, which nothing exceeds.
            is_endless = self.asked_until is None and not self.is_counted
            longer = asked_until if self.asked_until is None else later(self.asked_until, asked_until)
            is_more = not is_endless and longer != self.asked_until
            self.asked_until = longer if is_more else self.asked_until
        self.is_changed |= is_more
        return is_more


class RefusalStore:
    """Reports and cooldowns of some connections."""

    def __init__(self, *, connection_keys: Collection[int], instants: Collection[datetime], now: datetime) -> None:
        """Load both, and what operators cleared; three queries."""
        self.now = now
        self._keys = connection_keys
        self._reports: dict[tuple[RefusalKey, datetime], KnownReport] = {}
        self._load_reports(instants)
        rows = Cooldown.objects.filter(connection__in=connection_keys).order_by("id")
        self.cooldowns: dict[RefusalKey, Cooldown] = {(row.connection_id, row.model, row.cause): row for row in rows}
        self._acted_until = {key: self._end_of(row) for key, row in self.cooldowns.items()}
        self._touched: dict[RefusalKey, Cooldown] = {}
        self.cleared = read_cleared(connection_keys=connection_keys, lifted=LIFTED)

    def _load_reports(self, instants: Collection[datetime]) -> None:
        rows = RefusalReport.objects.filter(connection__in=self._keys, occurred_at__in=instants).order_by()
        columns = ("connection_id", "model", "cause", "occurred_at", *_ASKED, "id")
        for connection_key, model, cause, occurred_at, is_counted, asked_until, pk in rows.values_list(*columns):
            self._reports[(connection_key, model, cause), occurred_at] = KnownReport(is_counted, asked_until, id=pk)

    def report(self, *, key: RefusalKey, one: RateLimit, asked_until: datetime | None) -> bool:
        """Keep a report; tell whether it is news, or asks for more than the same one did."""
        known = self._reports.get((key, one.occurred_at))
        if known is not None:
            return known.absorb(is_counted=one.is_counted, asked_until=asked_until)
        self._reports[key, one.occurred_at] = KnownReport(one.is_counted, asked_until, one=one, is_changed=True)
        return True

    def save_reports(self) -> None:
        """Write the reports, new ones and changed ones."""
        changed = [(key, known) for (key, _), known in self._reports.items() if known.is_changed]
        insert_many(
            model=RefusalReport,
            columns=("connection", "model", "cause", "occurred_at", *_NAMED, *_ASKED, "received_at"),
            rows=(
                [*key, *_values(known.one, ("occurred_at", *_NAMED)), *_values(known, _ASKED), self.now]
                for key, known in changed
                if known.one is not None
            ),
        )
        again = (known for _, known in changed if known.one is None)
        update_many(model=RefusalReport, columns=_ASKED, rows=(_values(known, (*_ASKED, "id")) for known in again))

    def read_failures(self) -> dict[RefusalKey, list[tuple[StoredReport, int]]]:
        """Return by key, in order of time, the reports since it was last cleared: each, and how many-th in a row."""
        failures = {}
        for key, streak in read_streaks(connection_keys=self._keys, now=self.now).items():
            counting = [one for one in streak if not self.is_cleared(key=key, occurred_at=one.occurred_at)]
            counts = failures_in_a_row(reports=[Report(one.occurred_at, one.succeeded_at) for one in counting])
            failures[key] = list(zip(counting, counts, strict=True))
        return failures

    def is_cleared(self, *, key: RefusalKey, occurred_at: datetime) -> bool:
        """Tell whether an operator cleared the cooldown after that instant: what is older sets it no more."""
        cleared_at = self.cleared.get(key)
        return cleared_at is not None and occurred_at < cleared_at

    def set(self, *, key: RefusalKey, report: CooldownReport) -> bool:
        """Let a report act on the cooldown of a key (C5); tell whether it is the newest, or has a longer end."""
        row = self.cooldowns.get(key)
        if row is None:
            row = Cooldown(connection_id=key[0], model=key[1], cause=key[2])
            changes = msgspec.structs.asdict(report)
        else:
            changes = changes_of(kept=row, report=report, now=self.now)
        is_news = "effective_until" in changes or report.reported_at >= row.reported_at
        for name, value in changes.items():
            setattr(row, name, value)
        if changes:
            self.cooldowns[key] = self._touched[key] = row
        return is_news

    @property
    def is_changed(self) -> bool:
        """Tell whether a decision may come out differently: another cooldown acts, or to another end."""
        return any(self._end_of(row) != self._acted_until.get(key, self.now) for key, row in self._touched.items())

    @property
    def touched_keys(self) -> Collection[int]:
        """Return the connections of which a cooldown is to be written."""
        return {connection_key for connection_key, _, _ in self._touched}

    def _end_of(self, row: Cooldown) -> datetime | None:
        """Return until when a cooldown acts, `now` where it acts no more."""
        return self.now if is_over(until=row.effective_until, now=self.now) else row.effective_until

    def save_cooldowns(self, *, actor: Actor, reason: str) -> None:
        """Write the cooldowns and their history."""
        new = [row for row in self._touched.values() if row.pk is None]
        old = [row for row in self._touched.values() if row.pk is not None]
        update_many(model=Cooldown, columns=_SET, rows=(_values(row, (*_SET, "id")) for row in old))
        columns = ("connection_id", "model", "cause", *_SET)
        insert_many(model=Cooldown, columns=("connection", *columns[1:]), rows=(_values(row, columns) for row in new))
        if new:
            self._find_new_ids(new)
        for kind, rows in (("~", old), ("+", new)):
            write_history(model=Cooldown, rows=rows, kind=kind, actor=actor, reason=reason, now=self.now)

    def _find_new_ids(self, new: Iterable[Cooldown]) -> None:
        rows = Cooldown.objects.filter(connection__in={row.connection_id for row in new}).order_by()
        columns = ("connection_id", "model", "cause", "id")
        ids = {(key, model, cause): pk for key, model, cause, pk in rows.values_list(*columns)}
        for row in new:
            row.pk = ids[row.connection_id, row.model, row.cause]


def _values(row: object, names: Iterable[str]) -> list[Any]:
    return [getattr(row, name) for name in names]
