"""What an operator does to one connection from its page, held against what the page showed when it was opened (SPEC 5).

Every act takes `began`, the values that were seen. Under the lock of the connection they are compared with what is
stored: the same as is wanted already does nothing (a form sent twice, the back button), a value that another changed
meanwhile refuses the act and names it, and only what the sender changed is written. Values are texts.
"""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from ladder.models import Connection, Cooldown, QuotaWindow
from ladder.selectors.form_values import connection_values, cooldown_values, cutoff_values, muted_values, status_values
from ladder.services.connections import delete_connection, update_connection
from ladder.services.cooldowns import clear_cooldown
from ladder.services.live_connections import locked
from ladder.services.windows import mark_exhausted, update_window
from omniroute_admin.common.core.stale import Difference, find_changes, find_differences
from omniroute_admin.common.errors import NotFound
from omniroute_admin.common.history import Actor
from omniroute_admin.common.services.revision import deciding_write

Values = Mapping[str, str]
_EXHAUSTED = "exhausted"
_ON, _OFF = "yes", "no"


class ActOutcome(msgspec.Struct, frozen=True):
    """What came of an act: done, or nothing to do (neither field set), or refused because of `differences`."""

    is_done: bool = False
    differences: tuple[Difference, ...] = ()


class _Act(msgspec.Struct, frozen=True):
    """One act under way: whose, why, and when."""

    connection: Connection
    actor: Actor
    reason: str
    now: datetime

    def run(
        self,
        *,
        began: Values,
        sent: Values,
        read: Callable[[Connection], Values],
        write: Callable[[Connection, Values], None],
    ) -> ActOutcome:
        """Compare under the lock, and write what the sender changed.

        Raises:
            NotFound: the connection was deleted.
        """
        with deciding_write() as deciding:
            row = locked(Connection.objects.live().filter(pk=self.connection.pk)).first()
            if row is None:
                raise NotFound("There is no such connection any more.")
            stored = read(row)
            deciding.changed = False
            if all(stored.get(name) == value for name, value in sent.items()):
                return ActOutcome()
            mine = {name: began.get(name, "") for name in sent}
            differences = find_differences(began=mine, stored={name: stored.get(name, "") for name in sent}, sent=sent)
            if differences:
                return ActOutcome(differences=tuple(differences))
            write(row, find_changes(began=began, sent=sent))
            deciding.changed = True
        return ActOutcome(is_done=True)


def change_connection(
    *, connection: Connection, began: Values, sent: Values, actor: Actor, reason: str, now: datetime
) -> ActOutcome:
    """Change fields of a connection: `is_enabled`, `overage_override`, `label`, `auth_type`, `excluded_models`.

    The reason of the act is the written reason of an override (B4).

    Raises:
        ValidationError: a field is not valid; every one is named.
        NotFound: the connection was deleted.
    """

    def write(row: Connection, changes: Values) -> None:
        values = {name: _stored_value(name, text) for name, text in changes.items()}
        if "overage_override" in changes:
            values["overage_override_reason"] = reason if changes["overage_override"] else ""
        update_connection(connection=row, changes=values, actor=actor, reason=reason, now=now)

    act = _Act(connection, actor, reason, now)
    return act.run(began=began, sent=sent, read=connection_values, write=write)


def _stored_value(name: str, text: str) -> bool | str | list[str] | None:
    if name == "is_enabled":
        return text == _ON
    if name == "excluded_models":
        return text.splitlines()
    return text or None if name in {"overage_override", "auth_type"} else text


def remove_connection(*, connection: Connection, actor: Actor, reason: str, now: datetime) -> ActOutcome:
    """Take a connection out of routing; one that was deleted already stays so (SPEC 3)."""
    try:
        delete_connection(connection=connection, actor=actor, reason=reason, now=now)
    except NotFound:
        return ActOutcome()
    return ActOutcome(is_done=True)


def clear_seen_cooldowns(
    *, connection: Connection, began: Values, chosen: list[str], actor: Actor, reason: str, now: datetime
) -> ActOutcome:
    """Clear the chosen of the cooldowns that were seen; one that was reported since is not meant, and stays (C3).

    Raises:
        NotFound: the connection was deleted.
    """

    def write(row: Connection, changes: Values) -> None:
        for cooldown in Cooldown.objects.filter(connection=row, pk__in=[int(key) for key in changes]):
            clear_cooldown(cooldown=cooldown, actor=actor, reason=reason, now=now)

    def read(row: Connection) -> Values:
        return dict.fromkeys(chosen, "") | cooldown_values(row)

    act = _Act(connection, actor, reason, now)
    return act.run(began=began, sent=dict.fromkeys(chosen, ""), read=read, write=write)


def mute_window(
    *, connection: Connection, began: Values, window: str, is_muted: bool, actor: Actor, reason: str, now: datetime
) -> ActOutcome:
    """Mute a window, or let it count again (Q6).

    Raises:
        NotFound: the connection was deleted, or has no such window.
    """

    def write(row: Connection, _: Values) -> None:
        one = _window(row, window)
        update_window(window=one, changes={"is_muted": is_muted}, actor=actor, reason=reason, now=now)

    act = _Act(connection, actor, reason, now)
    return act.run(began=began, sent={window: _ON if is_muted else _OFF}, read=muted_values, write=write)


def set_window_cutoff(
    *, connection: Connection, began: Values, window: str, cutoff: str, actor: Actor, reason: str, now: datetime
) -> ActOutcome:
    """Give a window a cutoff of its own, a percentage remaining as text; empty: that of the settings (Q7).

    Raises:
        ValidationError: it is no percentage.
        NotFound: the connection was deleted, or has no such window.
    """

    def write(row: Connection, _: Values) -> None:
        changes = {"exit_cutoff_percent": cutoff or None}
        update_window(window=_window(row, window), changes=changes, actor=actor, reason=reason, now=now)

    act = _Act(connection, actor, reason, now)
    return act.run(began=began, sent={window: cutoff}, read=cutoff_values, write=write)


def mark_window_exhausted(
    *,
    connection: Connection,
    began: Values,
    window: str,
    reset_at: datetime | None,
    actor: Actor,
    reason: str,
    now: datetime,
) -> ActOutcome:
    """Mark one window (or, empty, all that count) as exhausted until a newer reading or the reset (Q2).

    Raises:
        BadRequest: a reset that has passed.
        NotFound: the connection was deleted, or has no such window.
    """

    def write(row: Connection, _: Values) -> None:
        mark_exhausted(connection=row, window=window or None, reset_at=reset_at, actor=actor, reason=reason, now=now)

    def read(row: Connection) -> Values:
        resets = dict(row.windows.values_list("window", "reset_at"))
        other = {name for name, at in resets.items() if reset_at is not None and at != reset_at}
        return {name: _status(one, name in other) for name, one in status_values(row).items()}

    names = [window] if window else list(began)
    begun = {name: _status(began.get(name, ""), reset_at is not None) for name in names}
    sent = dict.fromkeys(names, _EXHAUSTED) or {"": _EXHAUSTED}
    act = _Act(connection, actor, reason, now)
    return act.run(began=begun, sent=sent, read=read, write=write)


def _status(word: str, is_other_reset: bool) -> str:
    """Return what was said of a window; exhausted until another reset is not what is asked for."""
    return f"{word} until another reset" if word == _EXHAUSTED and is_other_reset else word


def _window(row: Connection, name: str) -> QuotaWindow:
    found = row.windows.filter(window=name).first()
    if found is None:
        raise NotFound(f"The connection has no window {name!r} any more.")
    return found
