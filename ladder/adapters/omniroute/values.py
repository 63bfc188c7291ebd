"""What comes out of an OmniRoute database: frozen values, no secret among them."""

from datetime import datetime
from decimal import Decimal

import msgspec

from ladder.core.values import Combine, CooldownCause, ReadingStatus


class ImportedConnection(msgspec.Struct, frozen=True, kw_only=True):
    """One account; `label` is made of provider and id alone, never of a name or a mail."""

    connection_id: str
    provider: str
    auth_type: str | None
    label: str
    is_enabled: bool


class ImportedReading(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of one quota window.

    `remaining_percent` is percent remaining, 0 to 100, at most eight places, rounded down; it is
    None where the file gives no number or the window is unlimited. `model` is a glob where the
    window counts for some models only (SPEC Q6), `combine` how it joins the others.
    """

    connection_id: str
    provider: str
    window: str
    remaining_percent: Decimal | None
    unlimited: bool
    status: ReadingStatus
    reset_at: datetime | None
    observed_at: datetime
    combine: Combine
    model: str | None


class ImportedCooldown(msgspec.Struct, frozen=True, kw_only=True):
    """A cooldown still running at the time of the import.

    `until` None means "until cleared". `model` is None for the whole connection, else a glob.
    `window` names the quota window that caused it where the file tells (SPEC C1). `reported_at`
    is None where the file gives no readable instant.
    """

    connection_id: str
    provider: str
    model: str | None
    cause: CooldownCause
    until: datetime | None
    reported_at: datetime | None
    window: str | None


class ImportProblem(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was skipped, or taken over with a doubt.

    `key` points at the row by a well-formed id or by its place; `detail` says in words what is
    wrong. Neither repeats a value that could be secret.
    """

    table: str
    key: str
    code: str
    detail: str


class RowsSeen(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows of each kind the file has."""

    connections: int
    snapshots: int
    windows: int
    cache_entries: int


class OmnirouteContents(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the import takes from one file."""

    connections: tuple[ImportedConnection, ...]
    readings: tuple[ImportedReading, ...]
    cooldowns: tuple[ImportedCooldown, ...]
    problems: tuple[ImportProblem, ...]
    seen: RowsSeen
