"""What keys would lose, were their maker to have less: told before an account is changed (SPEC 4)."""

from collections.abc import Collection
from datetime import datetime

import msgspec

from omniroute_admin.common.core.keys import granted_of
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.selectors.key_list import LIVE, keys_in


class KeyLoss(msgspec.Struct, frozen=True):
    """A key, and the scopes that it would have no more; `stops`: all it had."""

    name: str
    prefix: str
    lost: tuple[str, ...]
    stops: bool

    def sentence(self) -> str:
        """Return it in words."""
        what = "stops" if self.stops else f"loses {', '.join(self.lost)}"
        return f"{self.name} ({self.prefix}…) {what}."


def live_keys_of(*, maker_id: int, now: datetime) -> list[ApiKey]:
    """Return the keys that an account answers for and that open something now or could, the newest first."""
    return list(keys_in(state=LIVE, now=now).filter(maker_id=maker_id))


def losses(*, maker_id: int, held: Collection[str], now: datetime) -> list[KeyLoss]:
    """Return what live keys of an account would lose if it had only `held`; none of a key that loses nothing."""
    found = []
    for key in live_keys_of(maker_id=maker_id, now=now):
        left = granted_of(scopes=key.scopes, held=held)
        lost = tuple(scope for scope in key.granted if scope not in left)
        if lost:
            found.append(KeyLoss(name=key.name, prefix=key.prefix, lost=lost, stops=not left))
    return found
