"""Record that providers refused requests, and let the connections rest (SPEC 4, Rate limits; C1 to C5)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from billing_catalog.core.billing import classify, index_catalog
from billing_catalog.core.values import Billing
from billing_catalog.mapping import read_catalog_rows
from ladder.core.cooldown import asked_until, clamp, is_clamped, reset_that_caused
from ladder.core.timeline.causes import Cause
from ladder.core.values import CooldownCause
from ladder.mapping import to_settings
from ladder.models import Connection, Cooldown, LadderSettings
from ladder.selectors.refusals import RefusalKey, StoredReport
from ladder.services.answers import Rejected, TelemetryAnswer
from ladder.services.cooldowns import CooldownReport, is_overtaken, read_windows
from ladder.services.live_connections import LiveConnections, Refusal, lock_connections
from ladder.services.reading_items import RefusedReadingError, UnreadableItem
from ladder.services.refusal_items import RateLimit, RateLimitItem, rate_limit_of
from ladder.services.refusal_store import RefusalStore
from ladder.services.trail import remember_accounts
from omniroute_admin.common.core.names import NOAUTH
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

REASON = "refused by the provider"
Item = RateLimitItem | UnreadableItem
Streaks = Mapping[RefusalKey, Sequence[tuple[StoredReport, int]]]
_Judged = tuple[RefusalKey, RateLimit] | Refusal


class CooldownTold(msgspec.Struct, frozen=True):
    """A cooldown as it stands after a report: what was asked and what acts (C2); null is "until cleared"."""

    connection_id: str
    asked_until: datetime | None
    effective_until: datetime | None
    clamped: bool
    cause: str


class RateLimitAnswer(TelemetryAnswer, frozen=True, kw_only=True):
    """The four counts, and every cooldown that the good items speak of, in the order of their first mention."""

    cooldowns: tuple[CooldownTold, ...]


def record_rate_limits(*, items: Sequence[Item], actor: Actor, now: datetime) -> RateLimitAnswer:
    """Record a body of rate-limit reports received at `now` and count what became of each.

    A report is known by connection, model, cause and instant: it comes twice, and has one effect, unless it asks for
    longer the second time. The longest end stands in whatever order reports come (C5); one that is older than the
    newest and asks for no more is superseded, and so is one from before an operator cleared the cooldown. A report
    about quota that newer readings overtake sets nothing (C3). A constant number of queries, however long the body.
    """
    with deciding_write() as write:
        understood = [_understand(item, now) for item in items]
        connections = lock_connections(connection_ids={item.connection_id for item in items if item.connection_id})
        connections.imply(providers=_keyless_paths(items, understood), actor=actor, now=now)
        judged = [_judge(item, one, connections) for item, one in zip(items, understood, strict=True)]
        good = [one for one in judged if not isinstance(one, Refusal)]
        recorder = _Recorder(reports=good, actor=actor, now=now)
        outcomes = recorder.record()
        remember_accounts(keys=recorder.store.touched_keys, cause=Cause.COOLDOWN, now=now)
        recorder.store.save_cooldowns(actor=actor, reason=REASON)
        write.changed, write.touched = recorder.store.is_changed, connections.touched
    rejected = [Rejected(index, one.code, one.detail) for index, one in enumerate(judged) if isinstance(one, Refusal)]
    counts = {word: outcomes.count(word) for word in ("accepted", "duplicates", "superseded")}
    return RateLimitAnswer(**counts, rejected=tuple(rejected), cooldowns=recorder.told())


def _understand(item: Item, now: datetime) -> RateLimit | Refusal:
    if isinstance(item, UnreadableItem):
        return Refusal("invalid_item", item.detail)
    try:
        return rate_limit_of(item=item, now=now)
    except RefusedReadingError as refused:
        return Refusal(refused.code, refused.detail)


def _keyless_paths(items: Sequence[Item], understood: Sequence[RateLimit | Refusal]) -> set[str]:
    """Return the providers, as written, whose keyless path a good item names."""
    return {
        item.provider
        for item, one in zip(items, understood, strict=True)
        if item.connection_id == NOAUTH and item.provider is not None and not isinstance(one, Refusal)
    }


def _judge(item: Item, understood: RateLimit | Refusal, connections: LiveConnections) -> _Judged:
    """Return which cooldown the item is about and what it says, or why it is refused."""
    if isinstance(understood, Refusal):
        return understood
    found = connections.find(connection_id=item.connection_id or "", provider=item.provider)
    if isinstance(found, Refusal):
        return found
    return (found, understood.model, understood.cause.value), understood


class _Recorder:
    """Records the good reports of one body; what it needs is read once, up front."""

    def __init__(self, *, reports: Sequence[tuple[RefusalKey, RateLimit]], actor: Actor, now: datetime) -> None:
        self.reports = reports
        self.actor = actor
        self.now = now
        keys = {key[0] for key, _ in reports}
        instants = {one.occurred_at for _, one in reports}
        self.store = RefusalStore(connection_keys=keys, instants=instants, now=now)
        self._settings = to_settings(LadderSettings.objects.get(pk=1))
        self._windows = read_windows(connection_keys=keys, settings=self._settings)
        self._connections = {row.pk: row for row in Connection.objects.filter(pk__in=keys)}
        self._billing = _billing_of(self._connections.values())

    def record(self) -> list[str]:
        """Record every report and return, in their order, the words they are counted under."""
        news = [
            self.store.report(
                key=key,
                one=one,
                asked_until=None if one.is_counted else self._asked_until(key, one, failures=1),
            )
            for key, one in self.reports
        ]
        self.store.save_reports()
        failures = self.store.read_failures()
        counts = {(key, one.occurred_at): count for key, streak in failures.items() for one, count in streak}
        outcomes = [
            self._record(key, one, counts.get((key, one.occurred_at), 1)) if is_news else "duplicates"
            for (key, one), is_news in zip(self.reports, news, strict=True)
        ]
        self._record_later_ones(failures, news)
        return outcomes

    def _record(self, key: RefusalKey, one: RateLimit, failures: int) -> str:
        if self.store.is_cleared(key=key, occurred_at=one.occurred_at):
            return "superseded"
        if self._is_overtaken(key, one.occurred_at):
            return "accepted"
        return "accepted" if self._set(key, one, failures, one.origin) else "superseded"

    def _set(self, key: RefusalKey, one: RateLimit, failures: int, origin: str) -> bool:
        asked = self._asked_until(key, one, failures=failures)
        report = CooldownReport(
            asked_until=asked,
            effective_until=self._effective_until(key, one, asked),
            set_by=self.actor.name,
            origin=origin,
            reported_at=one.occurred_at,
            failure_count=failures if one.failure_count is None else max(one.failure_count, 1),
        )
        return self.store.set(key=key, report=report)

    def _record_later_ones(self, failures: Streaks, news: list[bool]) -> None:
        """Lengthen what a late report makes one more in a row: the reports after it are counted anew (C4)."""
        new: dict[RefusalKey, set[datetime]] = {}
        for (key, one), is_news in zip(self.reports, news, strict=True):
            if is_news:
                new.setdefault(key, set()).add(one.occurred_at)
        for key, instants in new.items():
            for stored, count in _after(failures.get(key, []), instants):
                if not self._is_overtaken(key, stored.occurred_at):
                    one = _as_sent(key, stored)
                    self._set(key, one, count, f"{one.origin}, counted anew")

    def _is_overtaken(self, key: RefusalKey, occurred_at: datetime) -> bool:
        connection_key, model, cause = key
        return cause == CooldownCause.QUOTA and is_overtaken(
            model=model,
            reported_at=occurred_at,
            windows=self._windows.get(connection_key, []),
            settings=self._settings,
            now=self.now,
        )

    def _asked_until(self, key: RefusalKey, one: RateLimit, *, failures: int) -> datetime | None:
        return asked_until(
            cause=one.cause,
            auth_type=self._connections[key[0]].auth_type,
            failure_count=failures if one.failure_count is None else one.failure_count,
            retry_after=one.retry_after,
            occurred_at=one.occurred_at,
        )

    def _effective_until(self, key: RefusalKey, one: RateLimit, asked: datetime | None) -> datetime | None:
        """Return the end after the clamp (C1); a reset that was sent and cannot be read leaves the end as it is."""
        if not is_clamped(billing=self._billing[key[0]], cause=one.cause) or one.is_reset_unreadable:
            return asked
        reset_at = reset_that_caused(
            reported_reset_at=one.reset_at,
            named_window=one.window,
            windows=self._windows.get(key[0], []),
            settings=self._settings,
            now=self.now,
        )
        return clamp(until=asked, reset_at=reset_at, now=self.now)

    def told(self) -> tuple[CooldownTold, ...]:
        """Return the cooldowns that the reports are about, as they stand now."""
        keys = dict.fromkeys(key for key, _ in self.reports)
        rows = [self.store.cooldowns[key] for key in keys if key in self.store.cooldowns]
        return tuple(_told(row, self._connections[row.connection_id].connection_id) for row in rows)


def _told(row: Cooldown, connection_id: str) -> CooldownTold:
    clamped = row.asked_until != row.effective_until
    return CooldownTold(connection_id, row.asked_until, row.effective_until, clamped, row.cause)


def _after(streak: Sequence[tuple[StoredReport, int]], instants: set[datetime]) -> Iterator[tuple[StoredReport, int]]:
    """Return the counted reports that were known before and follow a new one in their row."""
    follows = False
    for one, count in streak:
        is_new = one.occurred_at in instants
        follows = is_new or (follows and count > 1)
        if follows and not is_new and one.is_counted:
            yield one, count


def _as_sent(key: RefusalKey, stored: StoredReport) -> RateLimit:
    return RateLimit(
        occurred_at=stored.occurred_at,
        cause=CooldownCause(key[2]),
        model=key[1],
        reset_at=stored.reset_at,
        is_reset_unreadable=stored.is_reset_unreadable,
        window=stored.window,
    )


def _billing_of(connections: Collection[Connection]) -> dict[int, Billing]:
    """Return the billing class of each connection by the stored catalogue (B1 to B3); one query."""
    catalog = index_catalog(read_catalog_rows())
    return {
        one.pk: classify(
            catalog=catalog, provider=one.provider, connection_id=one.connection_id, auth_type=one.auth_type
        ).billing
        for one in connections
    }
