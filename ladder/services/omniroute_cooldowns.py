"""The cooldowns of an OmniRoute database (see `omniroute_import`; SPEC C)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from billing_catalog.core.billing import classify, index_catalog
from billing_catalog.core.values import Overage
from billing_catalog.mapping import read_catalog_rows
from ladder.adapters.omniroute import ImportedCooldown, ImportProblem
from ladder.core.cooldown import clamp, is_clamped, reset_that_caused
from ladder.core.values import Window
from ladder.mapping import to_settings
from ladder.models import Connection, Cooldown, LadderSettings
from ladder.selectors.state import read_connections
from ladder.services.cooldowns import lift_quota_cooldowns, set_cooldown
from ladder.services.omniroute_connections import IMPORT_REASON
from ladder.services.omniroute_report import Counts, Tally
from omniroute_admin.common.history import Actor

ORIGIN = "an OmniRoute database"
_TABLE = "provider_connections"
_STATE = ("connection_id", "model", "cause", "asked_until", "effective_until", "reported_at", "set_by", "origin")

Key = tuple[int, str | None, str]
CooldownStates = dict[Key, tuple[object, ...]]


def cooldown_states(stored: Mapping[str, Connection]) -> CooldownStates:
    """What every cooldown of the stored connections says, to tell afterwards what changed."""
    rows = Cooldown.objects.filter(connection__in=[connection.pk for connection in stored.values()])
    return {(row[0], row[1], row[2]): row[3:] for row in rows.values_list(*_STATE)}


def store_cooldowns(
    *,
    cooldowns: Sequence[ImportedCooldown],
    stored: Mapping[str, Connection],
    before: CooldownStates,
    actor: Actor,
    now: datetime,
) -> Tally:
    """Set the cooldowns of the stored connections: clamped (C1), never shortened (C5), lifted by newer readings (C3).

    `before` is what there was before this import recorded any reading.
    """
    writer = _Writer(stored=stored, actor=actor, now=now)
    for imported in cooldowns:
        writer.store(imported)
    # The readings came first, and lift only what stood then.
    lift_quota_cooldowns(connection_keys=[connection.pk for connection in stored.values()], actor=actor, now=now)
    counts = writer.count(cooldowns=cooldowns, before=before)
    writer.report_gone(cooldowns)
    return Tally(counts=counts, problems=tuple(writer.problems))


class _Writer:
    """Stores one cooldown after another; everything it needs is read once, up front."""

    def __init__(self, *, stored: Mapping[str, Connection], actor: Actor, now: datetime) -> None:
        self.stored = stored
        self.actor = actor
        self.now = now
        self.problems: list[ImportProblem] = []
        self._catalog = index_catalog(read_catalog_rows())
        self._settings = to_settings(LadderSettings.objects.get(pk=1))
        self._windows = {
            (connection.provider, connection.connection_id): connection.windows
            for connection in read_connections(settings=self._settings)
        }
        self._present = {(row.connection_id, row.model, row.cause): row for row in self._rows()}
        self._cleared = _cleared_at([connection.pk for connection in stored.values()])
        self._not_set: set[Key] = set()

    def _rows(self) -> Iterable[Cooldown]:
        keys = [connection.pk for connection in self.stored.values()]
        return Cooldown.objects.filter(connection__in=keys).select_related("connection").order_by("id")

    def store(self, imported: ImportedCooldown) -> None:
        """Set one cooldown, unless this very report is known, or was cleared or lifted here since."""
        connection = self.stored.get(imported.connection_id)
        if connection is None:
            return
        key = (connection.pk, imported.model, imported.cause.value)
        known = self._present.get(key)
        if known is None and _is_cleared(reported_at=imported.reported_at, cleared_at=self._cleared.get(key)):
            self._not_set.add(key)
            self._report(imported.connection_id, "cleared_here", f"{imported.cause} ended here after it was reported.")
        elif known is None or not _is_same_report(known, imported):
            # A report that is known is not looked at again: past the reset that cut it, the clamp would let go of it.
            self._set(connection, imported, known)

    def _set(self, connection: Connection, imported: ImportedCooldown, known: Cooldown | None) -> None:
        set_cooldown(
            connection=connection,
            model=imported.model,
            cause=imported.cause,
            asked_until=imported.until,
            effective_until=self._effective_until(connection, imported),
            set_by=self.actor.name,
            origin=ORIGIN,
            reported_at=imported.reported_at or (known.reported_at if known else self.now),
            failure_count=known.failure_count if known else 1,
            actor=self.actor,
            reason=IMPORT_REASON,
            now=self.now,
        )

    def _effective_until(self, connection: Connection, imported: ImportedCooldown) -> datetime | None:
        """Until when it acts: cut at the reset of the quota that caused it, for a plan-included connection (C1)."""
        verdict = classify(
            catalog=self._catalog,
            provider=connection.provider,
            connection_id=connection.connection_id,
            auth_type=connection.auth_type,
            overage_override=Overage(connection.overage_override) if connection.overage_override else None,
        )
        if not is_clamped(billing=verdict.billing, cause=imported.cause):
            return imported.until
        reset_at = reset_that_caused(
            reported_reset_at=None,
            named_window=imported.window,
            windows=self._windows_of(connection),
            settings=self._settings,
            now=self.now,
        )
        return clamp(until=imported.until, reset_at=reset_at, now=self.now)

    def _windows_of(self, connection: Connection) -> tuple[Window, ...]:
        return self._windows[connection.provider, connection.connection_id]

    def count(self, *, cooldowns: Sequence[ImportedCooldown], before: CooldownStates) -> Counts:
        """Compare what there is now with `before`; what newer readings lifted at once is reported and skipped."""
        after = cooldown_states(self.stored)
        outcomes = [self._outcome(imported, before, after) for imported in cooldowns]
        return Counts(**{word: outcomes.count(word) for word in ("created", "changed", "unchanged", "skipped")})

    def _outcome(self, imported: ImportedCooldown, before: CooldownStates, after: CooldownStates) -> str:
        connection = self.stored.get(imported.connection_id)
        key = (connection.pk, imported.model, imported.cause.value) if connection else None
        if key is None or key in self._not_set:
            return "skipped"
        if key not in after:
            self._report(imported.connection_id, "lifted", "Readings newer than the report say usable (C3).")
            return "skipped"
        if key not in before:
            return "created"
        return "unchanged" if before[key] == after[key] else "changed"

    def report_gone(self, cooldowns: Sequence[ImportedCooldown]) -> None:
        """Name the imported cooldowns that run here and are not in the file any more.

        They stay: only time or an operator lifts them, and newer readings the ones about quota (C3).
        """
        named = {(item.connection_id, item.model, item.cause.value) for item in cooldowns}
        for row in self._rows():
            is_running = row.effective_until is None or row.effective_until > self.now
            place = (row.connection.connection_id, row.model, row.cause)
            if row.origin == ORIGIN and is_running and place not in named:
                detail = f"The file no longer has the cooldown {row.cause}; it stays until it ends or is cleared here."
                self._report(row.connection.connection_id, "cooldown_gone", detail)

    def _report(self, connection_id: str, code: str, detail: str) -> None:
        self.problems.append(ImportProblem(table=_TABLE, key=connection_id, code=code, detail=detail))


def _is_same_report(row: Cooldown, imported: ImportedCooldown) -> bool:
    is_known = imported.reported_at is None or imported.reported_at <= row.reported_at
    return is_known and row.asked_until == imported.until


def _is_cleared(*, reported_at: datetime | None, cleared_at: datetime | None) -> bool:
    return cleared_at is not None and (reported_at is None or reported_at <= cleared_at)


def _cleared_at(keys: Sequence[int]) -> dict[Key, datetime]:
    """When each cooldown that is gone was last cleared or lifted, from the history."""
    rows = Cooldown.history.filter(connection_id__in=keys, history_type="-").order_by("history_date")
    return {
        (connection_id, model, cause): at
        for connection_id, model, cause, at in rows.values_list("connection_id", "model", "cause", "history_date")
    }
