"""How many connections stand on each rung and what keeps the others off: what the occupancy tells, without pictures.

It is asked every few seconds, beside the pools: where a connection stood is remembered until it may stand elsewhere.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from billing_catalog.core.values import Billing
from ladder.core.judge import Account, Circumstances
from ladder.core.places import badness, models_by_rung, settle_standing
from ladder.core.reasons import Code
from ladder.core.snapshot import Snapshot
from ladder.core.values import Rung

Heads = Mapping[Rung, Mapping[Code | None, int]]
"""By rung and code; None counts the usable ones."""

_Unders = tuple[Circumstances, ...]


class _Stood(msgspec.Struct, frozen=True):
    """Where a connection stood on a rung, and while what was so."""

    account: Account
    unders: _Unders
    code: Code | None
    since: datetime
    until: datetime

    def stands(self, *, account: Account, unders: _Unders, now: datetime) -> bool:
        """Tell whether it would come out the same: the very same was judged, and nothing of it changed by itself."""
        is_same = self.account is account and len(self.unders) == len(unders)
        return is_same and self.since <= now < self.until and all(map(_is, self.unders, unders))


def _is(one: object, other: object) -> bool:
    return one is other


class HeadCount:
    """Counts, and remembers what it counted last."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, Rung], _Stood] = {}

    def count(self, *, snapshot: Snapshot, now: datetime) -> Heads:
        """Return the counts of every rung at `now`."""
        snapshot.move_to(now)
        found: dict[tuple[str, str, Rung], _Stood] = {}
        heads: dict[Rung, dict[Code | None, int]] = {rung: {} for rung in Rung}
        alike: dict[tuple[str, Billing], dict[Rung, _Unders]] = {}
        for account in snapshot.accounts:
            for rung, unders in _unders(snapshot, account, alike, now).items():
                key = (account.connection.provider, account.connection.connection_id, rung)
                stood = self._known.get(key)
                if stood is None or not stood.stands(account=account, unders=unders, now=now):
                    stood = _stand(account, unders, rung, now)
                found[key] = stood
                heads[rung][stood.code] = heads[rung].get(stood.code, 0) + 1
        self._known = found
        return heads


def _unders(
    snapshot: Snapshot, account: Account, alike: dict[tuple[str, Billing], dict[Rung, _Unders]], now: datetime
) -> dict[Rung, _Unders]:
    """Return under what a connection is judged on each rung; those that no glob sets apart share it."""
    key = (account.connection.provider, account.verdict.billing)
    if account.globs:
        return _tuples(models_by_rung(snapshot=snapshot, account=account, now=now))
    if key not in alike:
        alike[key] = _tuples(models_by_rung(snapshot=snapshot, account=account, now=now))
    return alike[key]


def _tuples(found: Mapping[Rung, Iterable[Circumstances]]) -> dict[Rung, _Unders]:
    return {rung: tuple(unders) for rung, unders in found.items()}


def _stand(account: Account, unders: _Unders, rung: Rung, now: datetime) -> _Stood:
    """Work out where a connection stands: the best of its models speaks for it, as on the ladder's page."""
    found = [settle_standing(account=account, under=under, rung=rung, now=now) for under in unders]
    best = min((standing for standing, _ in found), key=badness)
    code = best.reason.code if best.reason else None
    return _Stood(account, unders, code, now, min(until for _, until in found))
