"""Go back to a version of a row: itself a change, by the services of its app, with who, when and why (SPEC 3, 5)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from omniroute_admin.common.errors import Conflict, NotFound
from omniroute_admin.common.history import Actor
from omniroute_admin.common.kinds import find_kind
from omniroute_admin.common.selectors.history import find_version
from omniroute_admin.common.selectors.versions import changes_to, seen_of
from omniroute_admin.common.services.revision import deciding_write

Outcome = Literal["done", "stands already", "stale"]


def roll_back(
    *, kind: str, history_id: int, seen: Mapping[str, str], actor: Actor, reason: str, now: datetime
) -> Outcome:
    """Make a row what it was in a version, and tell what came of it.

    `seen` is the row in words as it stood when the outlook was shown (`Outlook.seen`). `stands already`: it is like the
    version, nothing is written. `stale`: another changed it meanwhile, nothing is written.

    Raises:
        NotFound: there is no such version.
        Conflict: the kind is not rolled back; says why. Or the service found something in the way.
        ValidationError, ProductError: what the service refuses.
    """
    known = find_kind(kind)
    version = None if known is None else find_version(kind=known, history_id=history_id)
    if known is None or version is None:
        raise NotFound("There is no such version.")
    if known.roll_back is None:
        raise Conflict(known.kept)
    way = known.roll_back
    with deciding_write() as write:
        present = way.present(version, now=now, lock=True)
        if present is None and way.needs_row:
            raise Conflict(f"This {known.word} is gone.")
        if present is not None and not changes_to(kind=known, way=way, version=version, present=present):
            write.changed = False
            return "stands already"
        if dict(seen) != seen_of(kind=known, way=way, row=present):
            write.changed = False
            return "stale"
        way.turn_back(version=version, present=present, actor=actor, reason=reason, now=now)
    return "done"
