"""What keeps OmniRoute from using a connection, as cooldowns (SPEC C).

Three places say so: `test_status` with a word that OmniRoute's selection skips for good,
`rate_limited_until` with an instant, and for codex an instant per scope of models.

A past instant is no cooldown: the row still says `unavailable` then, but OmniRoute uses the
connection again and clears the row with the next success.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from ladder.adapters.omniroute.codex import CodexState
from ladder.adapters.omniroute.connections import TABLE, ConnectionRow
from ladder.adapters.omniroute.fields import OddValue, problem, read_instant
from ladder.adapters.omniroute.values import ImportedConnection, ImportedCooldown, ImportProblem
from ladder.core.cooldown import RETRY_AFTER_CAP
from ladder.core.values import CooldownCause

# Out whatever rate_limited_until says. `deactivated` and `invalid` are not skipped by OmniRoute
# itself, but an account that was closed or whose sign-in is refused serves nothing either.
_STANDING: dict[str, CooldownCause] = {
    "banned": CooldownCause.BAN,
    "deactivated": CooldownCause.BAN,
    "expired": CooldownCause.AUTH,
    "invalid": CooldownCause.AUTH,
    "credits_exhausted": CooldownCause.QUOTA,
}
_PASSING = frozenset({"", "unknown", "active", "error", "unavailable"})
_BY_ERROR: dict[str, CooldownCause] = {
    "rate_limited": CooldownCause.RATE_LIMIT,
    "upstream_rate_limited": CooldownCause.RATE_LIMIT,
    "429": CooldownCause.RATE_LIMIT,
    "quota_exhausted": CooldownCause.QUOTA,
    "credits_exhausted": CooldownCause.QUOTA,
    "402": CooldownCause.QUOTA,
    "unauthorized": CooldownCause.AUTH,
    "auth_missing": CooldownCause.AUTH,
    "missing_api_key": CooldownCause.AUTH,
    "oauth_invalid_token": CooldownCause.AUTH,
    "token_expired": CooldownCause.AUTH,
    "token_refresh_failed": CooldownCause.AUTH,
    "unrecoverable_refresh_error": CooldownCause.AUTH,
    "reauth_required": CooldownCause.AUTH,
    "upstream_auth_error": CooldownCause.AUTH,
    "401": CooldownCause.AUTH,
    "account_deactivated": CooldownCause.BAN,
    "forbidden": CooldownCause.BAN,
    "403": CooldownCause.BAN,
}
# Errors of the server or the network: of the four causes only this one ends by time alone.
_DEFAULT_CAUSE = CooldownCause.RATE_LIMIT
_CODEX_WINDOWS = {"5h": "5h", "7d": "weekly"}
# The scope `codex` is every model but the spark ones. A glob cannot say "all but", so it stands
# for all: spark models are a few, and leaving them out costs no money.
_CODEX_SCOPES: dict[object, str | None] = {"codex": None, "spark": "*spark*"}
_CLOCK_TOLERANCE = timedelta(seconds=60)


def read_cooldowns(
    *, connection: ImportedConnection, row: ConnectionRow, codex: CodexState | None, now: datetime
) -> tuple[list[ImportedCooldown], list[ImportProblem]]:
    """The cooldowns of one connection that run at `now`, one per model and cause: the longest (SPEC C3)."""
    problems: list[ImportProblem] = []
    reader = _Reader(connection=connection, row=row, codex=codex, now=now, problems=problems)
    return _longest_of_each(reader.cooldowns()), problems


def _longest_of_each(cooldowns: Iterator[ImportedCooldown]) -> list[ImportedCooldown]:
    longest: dict[tuple[str | None, CooldownCause], ImportedCooldown] = {}
    for cooldown in cooldowns:
        key = (cooldown.model, cooldown.cause)
        if key not in longest or _outlasts(cooldown, longest[key]):
            longest[key] = cooldown
    return list(longest.values())


def _outlasts(one: ImportedCooldown, other: ImportedCooldown) -> bool:
    """Until cleared is longer than any instant."""
    return other.until is not None and (one.until is None or one.until > other.until)


class _Reader:
    """Reads one row; what is odd goes to `problems`."""

    def __init__(
        self,
        *,
        connection: ImportedConnection,
        row: ConnectionRow,
        codex: CodexState | None,
        now: datetime,
        problems: list[ImportProblem],
    ) -> None:
        self.connection = connection
        self.row = row
        self.codex = codex
        self.now = now
        self.problems = problems
        self.reported_at = self._reported_at()

    def cooldowns(self) -> Iterator[ImportedCooldown]:
        """Yield what runs now, longest and shorter ones alike."""
        yield from self._whole_connection()
        for scope, raw in self.codex.limited_scopes if self.codex else ():
            yield from self._codex_scope(scope=scope, raw=raw)

    def _whole_connection(self) -> Iterator[ImportedCooldown]:
        until = self._future_instant(raw=self.row.rate_limited_until, column="rate_limited_until")
        status = _word(self.row.test_status)
        standing = _STANDING.get(status)
        if standing == CooldownCause.QUOTA:
            # Out until someone tops up or tests it, unless the file says when it comes back.
            yield self._cooldown(cause=CooldownCause.QUOTA, until=until)
        elif standing:
            yield self._cooldown(cause=standing, until=None)
        elif until:
            yield self._cooldown(cause=self._cause(), until=until)
        if standing is None and status not in _PASSING:
            self._report("unknown_status", "test_status is no word OmniRoute writes; only the instant was looked at.")

    def _codex_scope(self, *, scope: object, raw: object) -> Iterator[ImportedCooldown]:
        """Codex limits are the plan's windows run dry, so the cause is quota."""
        if scope not in _CODEX_SCOPES:
            self._report("unknown_scope", "codexScopeRateLimitedUntil has a scope that is not known; skipped.")
            return
        until = self._future_instant(raw=raw, column="provider_specific_data.codexScopeRateLimitedUntil")
        if until:
            yield self._cooldown(cause=CooldownCause.QUOTA, until=until, model=_CODEX_SCOPES[scope])

    def _cooldown(self, *, cause: CooldownCause, until: datetime | None, model: str | None = None) -> ImportedCooldown:
        return ImportedCooldown(
            connection_id=self.connection.connection_id,
            provider=self.connection.provider,
            model=model,
            cause=cause,
            until=until,
            reported_at=self.reported_at,
            window=self._exhausted_window() if cause == CooldownCause.QUOTA else None,
        )

    def _cause(self) -> CooldownCause:
        """By the kind of the last error, else by its code.

        A codex 429 that names the window that ran dry is about quota: only as such can the
        reset of that window end it early (SPEC C1).
        """
        cause = _BY_ERROR.get(_word(self.row.last_error_type)) or _BY_ERROR.get(_word(self.row.error_code))
        if cause == CooldownCause.RATE_LIMIT and self._exhausted_window():
            return CooldownCause.QUOTA
        return cause or _DEFAULT_CAUSE

    def _exhausted_window(self) -> str | None:
        raw = self.codex.exhausted_window if self.codex else None
        return _CODEX_WINDOWS.get(raw) if isinstance(raw, str) else None

    def _reported_at(self) -> datetime | None:
        """When the state was met: last error, else last change of the row; None if not readable.

        An instant in the future is a wrong clock, and would keep newer readings from lifting it.
        """
        for raw in (self.row.last_error_at, self.row.updated_at):
            try:
                instant = read_instant(raw)
            except OddValue:
                continue
            if instant and instant <= self.now + _CLOCK_TOLERANCE:
                return instant
        return None

    def _future_instant(self, *, raw: object, column: str) -> datetime | None:
        try:
            instant = read_instant(raw)
        except OddValue as odd:
            self._report("bad_instant", f"{column} {odd}; no cooldown was taken from it.")
            return None
        if instant is None or instant <= self.now:
            return None
        if instant > self.now + RETRY_AFTER_CAP:
            self._report("long_cooldown", f"{column} lies more than 30 days ahead; taken over as it is.")
        return instant

    def _report(self, code: str, detail: str) -> None:
        self.problems.append(problem(table=TABLE, key=self.connection.connection_id, code=code, detail=detail))


def _word(raw: object) -> str:
    """A status, error type or code in lower case; numbers are stored as text with `.0` behind."""
    return str(raw).strip().lower().removesuffix(".0") if isinstance(raw, str | int | float) else ""
