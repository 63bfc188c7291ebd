"""The cooldowns of an OmniRoute database (see `omniroute_import`; SPEC C)."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from billing_catalog.core.billing import classify, index_catalog
from billing_catalog.core.values import Overage
from billing_catalog.mapping import read_catalog_rows
from ladder.adapters.omniroute import ImportedCooldown, ImportProblem
from ladder.core.cooldown import clamp, is_clamped, later, reset_that_caused
from ladder.core.quota import counting_windows, judge_windows
from ladder.core.values import CooldownCause, QuotaVerdict, Window
from ladder.mapping import to_settings
from ladder.models import Connection, Cooldown, LadderSettings
from ladder.selectors.state import read_connections
from ladder.services.omniroute_connections import IMPORT_REASON
from ladder.services.omniroute_report import Counts, Tally
from omniroute_admin.common.history import Actor, stamp

ORIGIN = "an OmniRoute database"
_TABLE = "provider_connections"
_Key = tuple[int, str | None, str]


def store_cooldowns(
    *, cooldowns: Sequence[ImportedCooldown], stored: Mapping[str, Connection], actor: Actor, now: datetime
) -> Tally:
    """Set the cooldowns of the stored connections, clamped (C1) and never shortened (C5)."""
    writer = _Writer(stored=stored, actor=actor, now=now)
    for imported in cooldowns:
        writer.store(imported)
    writer.report_gone(cooldowns)
    return Tally(counts=Counts(**writer.counts), problems=tuple(writer.problems))


class _Writer:
    """Stores one cooldown after another; everything it needs is read once, up front."""

    def __init__(self, *, stored: Mapping[str, Connection], actor: Actor, now: datetime) -> None:
        self.stored = stored
        self.actor = actor
        self.now = now
        self.counts = {"created": 0, "changed": 0, "unchanged": 0, "skipped": 0}
        self.problems: list[ImportProblem] = []
        self._catalog = index_catalog(read_catalog_rows())
        self._settings = to_settings(LadderSettings.objects.get(pk=1))
        self._windows = {
            (connection.provider, connection.connection_id): connection.windows
            for connection in read_connections(settings=self._settings)
        }
        keys = [connection.pk for connection in stored.values()]
        self._present = {_key(row): row for row in _rows_of(keys)}
        self._cleared = _cleared_at(keys)

    def store(self, imported: ImportedCooldown) -> None:
        """Set one cooldown, unless it is set already, was cleared here since, or is lifted by newer readings."""
        connection = self.stored.get(imported.connection_id)
        if connection is None:
            self.counts["skipped"] += 1
            return
        key = (connection.pk, imported.model, imported.cause.value)
        row = self._present.get(key)
        if row is None and _is_cleared(reported_at=imported.reported_at, cleared_at=self._cleared.get(key)):
            self._skip(imported, "cleared_here", "The cooldown was cleared here after this report; not set again.")
        elif self._is_lifted(connection, imported):
            self._skip(imported, "lifted", "Newer readings say that the quota is usable; not set (C3).")
        elif row is None:
            self._save(Cooldown(connection=connection, model=imported.model, cause=imported.cause.value), imported)
            self.counts["created"] += 1
        else:
            self.counts["changed" if self._extend(row, imported) else "unchanged"] += 1

    def _extend(self, row: Cooldown, imported: ImportedCooldown) -> bool:
        """Lengthen a running cooldown (C5) or set an ended one again; tell whether the row was saved.

        The same report again changes nothing, even where the clamp has ended it meanwhile.
        """
        is_running = row.effective_until is None or row.effective_until > self.now
        if _is_same_report(row, imported):
            return False
        if is_running and later(row.asked_until, imported.until) == row.asked_until:
            return False
        self._save(row, imported)
        return True

    def _save(self, row: Cooldown, imported: ImportedCooldown) -> None:
        row.asked_until = imported.until
        row.effective_until = self._effective_until(row.connection, imported)
        row.reported_at = imported.reported_at or self.now
        row.set_by = self.actor.name
        row.origin = ORIGIN
        stamp(instance=row, actor=self.actor, reason=IMPORT_REASON, now=self.now)
        row.save()

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

    def _is_lifted(self, connection: Connection, imported: ImportedCooldown) -> bool:
        """Whether readings newer than the report judge the quota usable, which lifts the cause `quota` alone (C3)."""
        if imported.cause is not CooldownCause.QUOTA or imported.reported_at is None:
            return False
        # A cooldown of every model is judged on the windows that count for every model.
        windows = counting_windows(windows=self._windows_of(connection), model=imported.model or "")
        if any(window.observed_at is None or window.observed_at <= imported.reported_at for window in windows):
            return False
        judged = judge_windows(windows=windows, settings=self._settings, now=self.now)
        return judged.verdict is QuotaVerdict.USABLE

    def _windows_of(self, connection: Connection) -> tuple[Window, ...]:
        return self._windows[connection.provider, connection.connection_id]

    def report_gone(self, cooldowns: Sequence[ImportedCooldown]) -> None:
        """Name the imported cooldowns that run here and are not in the file any more.

        They stay: only time or an operator lifts them, and newer readings the ones about quota (C3).
        """
        named = {(item.connection_id, item.model, item.cause.value) for item in cooldowns}
        for row in self._present.values():
            is_running = row.effective_until is None or row.effective_until > self.now
            place = (row.connection.connection_id, row.model, row.cause)
            if row.origin == ORIGIN and is_running and place not in named:
                detail = f"The file no longer has the cooldown {row.cause}; it stays until it ends or is cleared here."
                self._report(row.connection.connection_id, "cooldown_gone", detail)

    def _skip(self, imported: ImportedCooldown, code: str, detail: str) -> None:
        self.counts["skipped"] += 1
        self._report(imported.connection_id, code, detail)

    def _report(self, connection_id: str, code: str, detail: str) -> None:
        self.problems.append(ImportProblem(table=_TABLE, key=connection_id, code=code, detail=detail))


def _rows_of(keys: Sequence[int]) -> Iterable[Cooldown]:
    return Cooldown.objects.filter(connection__in=keys).select_related("connection").order_by("id")


def _key(row: Cooldown) -> _Key:
    return row.connection_id, row.model, row.cause


def _is_same_report(row: Cooldown, imported: ImportedCooldown) -> bool:
    is_known = imported.reported_at is None or imported.reported_at <= row.reported_at
    return is_known and row.asked_until == imported.until


def _is_cleared(*, reported_at: datetime | None, cleared_at: datetime | None) -> bool:
    return cleared_at is not None and (reported_at is None or reported_at <= cleared_at)


def _cleared_at(keys: Sequence[int]) -> dict[_Key, datetime]:
    """When each cooldown that is gone was last cleared, from the history."""
    rows = Cooldown.history.filter(connection_id__in=keys, history_type="-").order_by("history_date")
    return {
        (connection_id, model, cause): at
        for connection_id, model, cause, at in rows.values_list("connection_id", "model", "cause", "history_date")
    }
