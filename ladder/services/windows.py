"""What an operator may change of a quota window: mute it, give it a cutoff of its own (Q6, Q7)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ladder.models import Connection, QuotaWindow
from ladder.services.live_connections import locked
from omniroute_admin.common.history import Actor, stamp
from omniroute_admin.common.services.revision import deciding_write

OPERATOR_FIELDS = ("is_muted", "exit_cutoff_percent")


def update_window(
    *, window: QuotaWindow, changes: Mapping[str, Any], actor: Actor, reason: str, now: datetime
) -> QuotaWindow:
    """Change `is_muted` and `exit_cutoff_percent` (percent remaining, null: that of the settings) and return the row.

    What telemetry owns stays as it stands in the database; nothing is written where nothing differs.

    Raises:
        ValidationError: the cutoff is no percentage; naming every bad field.
        KeyError: a field that is not the operator's.
    """
    foreign = set(changes).difference(OPERATOR_FIELDS)
    if foreign:
        raise KeyError(f"not the operator's: {', '.join(sorted(foreign))}")
    with deciding_write() as write:
        locked(Connection.objects.filter(pk=window.connection_id)).get()
        row = QuotaWindow.objects.get(pk=window.pk)
        before = {name: getattr(row, name) for name in OPERATOR_FIELDS}
        for name, value in changes.items():
            setattr(row, name, value)
        row.clean_fields(exclude={field.name for field in row._meta.fields if field.name not in OPERATOR_FIELDS})
        write.changed = before != {name: getattr(row, name) for name in OPERATOR_FIELDS}
        if write.changed:
            stamp(instance=row, actor=actor, reason=reason, now=now)
            row.save(update_fields=list(OPERATOR_FIELDS))
        return row
