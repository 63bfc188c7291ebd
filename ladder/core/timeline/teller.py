"""Telling the timeline between two instants: from event to event, looking anew only at what each can have changed."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from heapq import heappop, heappush

import msgspec

from ladder.core.instants import NEVER, TICK
from ladder.core.judge import Account
from ladder.core.timeline.causes import Cause, Part, Standing, cause_of_time, cause_of_write
from ladder.core.timeline.flips import (
    INDEX_OF_RUNG,
    NOT_THERE,
    RUNG_ITSELF,
    Change,
    Flip,
    Picture,
    Spot,
    Telling,
    differing,
    flip_of,
    in_order,
    rung_spots,
)
from ladder.core.timeline.standings import ADMITTED, Ground
from ladder.core.timeline.trail import (
    AccountImage,
    BreakerImage,
    BudgetImage,
    CatalogueImage,
    Image,
    Moment,
    SettingsImage,
    Write,
    budget_at,
)
from ladder.core.values import Budget, Rung

_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_NOWHERE: Mapping[str, Standing] = {}
_Why = Callable[[Change], Cause]
_PART_OF_IMAGE: Mapping[type[Image], Part] = {
    BreakerImage: Part.BREAKERS,
    BudgetImage: Part.BUDGETS,
    SettingsImage: Part.SETTINGS,
    CatalogueImage: Part.CATALOGUE,
}


class _Placed(msgspec.Struct):
    """A connection, where it stands, and until when by itself."""

    account: Account
    standings: Mapping[str, Standing]
    until: datetime

    @property
    def serves_on(self) -> list[str]:
        """Return the rungs on which auto/thrifty has it; a path that nobody stored is in no stored pool (SPEC 4)."""
        if self.account.connection.is_implied:
            return []
        return [word for word, standing in self.standings.items() if standing.code in ADMITTED]


def tell(
    *,
    moment: Moment,
    writes: Iterable[Write],
    seen: Picture | None,
    told: Mapping[Spot, datetime],
    start: datetime,
    now: datetime,
) -> Telling:
    """Tell what happened from `start` to `now`, both included.

    `moment` is that of `start`, before all of the `writes`, which come in the order in which they were committed; it is
    moved on to that of `now`. `seen` is the picture that the last look took at `start`; None takes the one that the
    facts give. `told` has the last noted flip of each spot that has one which is not before all writes.
    """
    teller = _Teller(moment=moment, told=told, start=start, now=now)
    if seen is not None:
        teller.unexplained = differing(seen, teller.picture())
    for write in writes:
        teller.redo(write)
    teller.pass_time(now)
    return teller.telling()


class _Teller:
    """The ladder at one instant after the other."""

    def __init__(self, *, moment: Moment, told: Mapping[Spot, datetime], start: datetime, now: datetime) -> None:
        self.unexplained: frozenset[Spot] = frozenset()
        self._moment, self._at, self._now = moment, start, now
        self._told, self._flips = dict(told), list[Flip]()
        self._ground = Ground(moment=moment, now=start)
        self._placed: dict[int, _Placed] = {}
        self._of_provider: dict[str, set[int]] = {}
        self._serving_on = dict.fromkeys(INDEX_OF_RUNG, 0)
        self._due: list[tuple[datetime, int]] = []
        self._find_edges()
        for key in moment.accounts:
            self._settle(key)
        self._serving = self._lowest()

    def picture(self) -> Picture:
        """Return what each spot is now."""
        places = self._placed.items()
        picture = {(key, word): standing for key, placed in places for word, standing in placed.standings.items()}
        return picture | rung_spots(self._serving)

    def telling(self) -> Telling:
        """Return what was told."""
        return Telling(in_order(self._flips), self.picture(), self._next(), self.unexplained)

    def pass_time(self, until: datetime) -> None:
        """Go over every instant up to `until`, included, at which time changes something."""
        while (at := self._next()) <= until and at != NEVER:
            self._at = at
            budgets, providers = dict(self._ground.budgets), self._pass_edges(at)
            touched = self._take_due(at)
            touched |= {key for provider in providers for key in self._of_provider.get(provider, ())}
            touched |= self._turn_windows(at)
            self._look_at(touched, why=self._by_time(at, budgets, providers), at=at)
        self._at = max(self._at, until)

    def redo(self, write: Write) -> None:
        """Let time pass up to a write, and let it change what it did.

        A writer's clock that lags does not turn time back, and one that is ahead does not carry it past the look.
        """
        written_at = min(write.at, self._now)
        self.pass_time(max(self._at, written_at))
        touched = {key for image in write.images for key in self._put(image)}
        self._look_at(touched, why=_by_write(write), at=written_at, revision=write.revision)

    def _put(self, image: Image) -> Collection[int]:
        """Put an image in its place and return the connections that it can have changed."""
        was = self._moment.put(image)
        match image:
            case AccountImage():
                return {image.key}
            case BreakerImage():
                return self._of_provider.get(image.provider, set())
            case BudgetImage():
                return self._take_budget(image.rung)
            case SettingsImage():
                self._ground.take_settings(image.settings)
                before = was.accounts if isinstance(was, SettingsImage) else {}
                return before.keys() | image.accounts.keys()
            case CatalogueImage():
                self._ground.take_catalogue(self._moment.catalogue)
                self._find_edges()
                return self._moment.accounts

    def _take_budget(self, rung: Rung) -> set[int]:
        """Let the budget of a rung's present window act and return the connections on the rung."""
        windows = self._moment.budgets[rung]
        if windows:
            self._ground.take_budget(rung=rung, budget=budget_at(windows=windows, at=self._at), now=self._at)
        else:
            self._ground.drop_budget(rung=rung)
        return {key for key, placed in self._placed.items() if rung.word in placed.standings}

    def _look_at(self, touched: Iterable[int], *, why: _Why, at: datetime, revision: int | None = None) -> None:
        """Look anew at connections, and tell what changed, and what that means for the rungs."""
        told: list[Flip] = []
        for key in sorted(touched):
            changes = self._settle(key)
            told_at = self._date(at, changes)
            told += [self._tell(change, told_at, why(change), revision) for change in changes]
        was, self._serving = self._serving, self._lowest()
        before, after = rung_spots(was), rung_spots(self._serving)
        moved = [Change(spot, before[spot], after[spot]) for spot in before if before[spot] != after[spot]]
        if moved:
            told_at = self._date(min((flip.at for flip in told), default=at), moved)
            # What happened on the lower of the rungs between which serving moved is what moved it.
            cause = min(told, key=lambda flip: flip.rung != moved[0].spot[1]).cause if told else why(moved[0])
            told += [self._tell(change, told_at, cause, revision) for change in moved]
        self._flips += [flip for flip in told if (flip.connection or RUNG_ITSELF, flip.rung) not in self.unexplained]

    def _date(self, at: datetime, changes: Iterable[Change]) -> datetime:
        """Return when changes are told to have been: at their instant, or else just after the last of their spots."""
        last = max((self._told.get(change.spot, _LONG_AGO) for change in changes), default=_LONG_AGO)
        return at if last < at else last + TICK

    def _tell(self, change: Change, at: datetime, cause: Cause, revision: int | None) -> Flip:
        if change.spot not in self.unexplained:
            self._told[change.spot] = at
        return flip_of(change, at=at, cause=cause, revision=revision)

    def _settle(self, key: int) -> list[Change]:
        """Work out where a connection stands and return what that changed."""
        old = self._placed.pop(key, None)
        connection = self._moment.accounts.get(key)
        new = None
        if connection is not None:
            account = self._ground.account_of(connection)
            new = self._placed[key] = _Placed(account, *self._ground.stand(account=account, now=self._at))
            if new.until != NEVER:
                heappush(self._due, (new.until, key))
        self._count(key, old, -1)
        self._count(key, new, 1)
        was, became = (_NOWHERE if one is None else one.standings for one in (old, new))
        spots = sorted(was.keys() | became.keys(), key=INDEX_OF_RUNG.__getitem__)
        pairs = [(word, was.get(word, NOT_THERE), became.get(word, NOT_THERE)) for word in spots]
        return [Change((key, word), *pair) for word, *pair in pairs if pair[0] != pair[1]]

    def _count(self, key: int, placed: _Placed | None, one: int) -> None:
        """Count a connection in, or out."""
        if placed is None:
            return
        for word in placed.serves_on:
            self._serving_on[word] += one
        mates = self._of_provider.setdefault(placed.account.connection.provider, set())
        (mates.add if one > 0 else mates.discard)(key)

    def _lowest(self) -> str | None:
        return next((word for word, count in self._serving_on.items() if count), None)

    def _next(self) -> datetime:
        """Return the next instant at which something may change by itself."""
        while self._due and self._is_outdated(*self._due[0]):
            heappop(self._due)
        due = self._due[0][0] if self._due else NEVER
        edge = self._edges[-1][0] if self._edges else NEVER
        ends = [one.window_end for one in self._ground.budgets.values()]
        return min([due, edge, *(end for end in ends if end is not None and end > self._at)])

    def _is_outdated(self, until: datetime, key: int) -> bool:
        placed = self._placed.get(key)
        return placed is None or placed.until != until

    def _take_due(self, at: datetime) -> set[int]:
        found = set()
        while self._due and self._due[0][0] <= at:
            until, key = heappop(self._due)
            if not self._is_outdated(until, key):
                found.add(key)
        return found

    def _find_edges(self) -> None:
        """Find the instants still to come at which prices begin and end, the next one last."""
        prices = self._moment.catalogue.prices
        edges = ((edge, one.provider) for one in prices for edge in (one.effective_from, one.effective_to))
        self._edges = sorted({(edge, name) for edge, name in edges if edge is not None and edge > self._at})[::-1]

    def _pass_edges(self, at: datetime) -> set[str]:
        """Return the providers of which prices begin or end now."""
        providers = set()
        while self._edges and self._edges[-1][0] <= at:
            providers.add(self._edges.pop()[1])
        if providers:
            self._ground.forget_models()
        return providers

    def _turn_windows(self, at: datetime) -> set[int]:
        """Let the budgets act whose window begins now, and return the connections on their rungs."""
        turned = [rung for rung, budget in self._ground.budgets.items() if budget.window_end == at]
        return {key for rung in turned for key in self._take_budget(rung)}

    def _by_time(self, at: datetime, budgets: Mapping[Rung, Budget], providers: Collection[str]) -> _Why:
        """Return why a connection changed by itself; `budgets` are those up to now, `providers` those of new prices."""

        def why(change: Change) -> Cause:
            key, word = change.spot
            placed = self._placed.get(key)
            if placed is None:
                return Cause.TIME
            one = placed.account.connection
            return cause_of_time(
                change.was,
                change.became,
                connection=one,
                settings=self._moment.settings,
                open_until=self._moment.breakers.get(one.provider),
                budget=budgets.get(Rung[word.upper()]),
                is_price_new=one.provider in providers,
                at=at,
            )

        return why


def _by_write(write: Write) -> _Why:
    """Return why a write changed a connection: by what it did to that one, else to what is common to all."""
    own = {image.key: image.causes for image in write.images if isinstance(image, AccountImage)}
    common = {_PART_OF_IMAGE[type(image)] for image in write.images if not isinstance(image, AccountImage)}
    return lambda change: cause_of_write(change.was, change.became, own=own.get(change.spot[0], ()), common=common)
