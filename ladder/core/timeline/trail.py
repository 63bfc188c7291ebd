"""What the ladder stood on before a write: images of the parts that it changed, and how they are put back.

From the facts of the present and the images of the writes up to it follow the facts of every moment between (SPEC 3,
the timeline). An image is the whole of its part, so that putting it back asks for nothing else.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec
from msgspec import UNSET, UnsetType

from billing_catalog.core.values import CatalogRow, Price, Thresholds, TierRule
from ladder.core.quota import exit_cutoff, judge_window, reentry_floor
from ladder.core.reasons import Code
from ladder.core.timeline.causes import Cause
from ladder.core.values import Budget, Connection, Facts, LadderSettings, Rung, Window

_BY_TIME = (Code.QUOTA_STALE, Code.RESET_PENDING)
_Seen = Window | tuple[Code | None, object]


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """All that the catalogue says."""

    rows: tuple[CatalogRow, ...] = ()
    prices: tuple[Price, ...] = ()
    tier_rules: tuple[TierRule, ...] = ()
    free_providers: frozenset[str] = frozenset()
    seat_sellers: frozenset[str] = frozenset()
    thresholds: Thresholds = Thresholds()


class AccountImage(msgspec.Struct, frozen=True, tag="account"):
    """A connection, by the key of its row, with all that is its own; None is "not there". And why it was changed."""

    key: int
    value: Connection | None
    causes: tuple[Cause, ...] = ()


class BreakerImage(msgspec.Struct, frozen=True, tag="breaker"):
    """Until when a provider's breaker is open; None is closed."""

    provider: str
    open_until: datetime | None


class BudgetImage(msgspec.Struct, frozen=True, tag="budget"):
    """A paid rung's budget in its windows, one after the other, as far back as no look has told."""

    rung: Rung
    windows: tuple[Budget, ...]


class SettingsImage(msgspec.Struct, frozen=True, tag="settings"):
    """The settings, and every connection as they let it be seen.

    What was not noted as a change of a connection need only be none under the settings of its moment (`looks_alike`).
    """

    settings: LadderSettings
    accounts: dict[int, Connection]


class CatalogueImage(msgspec.Struct, frozen=True, kw_only=True, tag="catalogue", omit_defaults=True):
    """The parts of the catalogue that a write changed; the others are left unsaid."""

    rows: tuple[CatalogRow, ...] | UnsetType = UNSET
    prices: tuple[Price, ...] | UnsetType = UNSET
    tier_rules: tuple[TierRule, ...] | UnsetType = UNSET
    free_providers: frozenset[str] | UnsetType = UNSET
    seat_sellers: frozenset[str] | UnsetType = UNSET
    thresholds: Thresholds | UnsetType = UNSET


Image = AccountImage | BreakerImage | BudgetImage | SettingsImage | CatalogueImage


class Write(msgspec.Struct, frozen=True):
    """One write: its instant, the revision it made, and images. Undone they are of before it, to be redone of after."""

    at: datetime
    revision: int
    images: tuple[Image, ...]


class Moment(msgspec.Struct):
    """The facts of one moment; the connections by the keys of their rows. Changed in place."""

    accounts: dict[int, Connection]
    settings: LadderSettings
    breakers: dict[str, datetime]
    budgets: dict[Rung, tuple[Budget, ...]]
    catalogue: Catalogue

    def put(self, image: Image) -> Image:
        """Put an image in its place and return the image of what was there."""
        if isinstance(image, AccountImage):
            return self._put_account(image)
        if isinstance(image, BreakerImage):
            was = self.breakers.pop(image.provider, None)
            if image.open_until is not None:
                self.breakers[image.provider] = image.open_until
            return BreakerImage(image.provider, was)
        if isinstance(image, BudgetImage):
            windows, self.budgets[image.rung] = self.budgets.get(image.rung, ()), image.windows
            return BudgetImage(image.rung, windows)
        if isinstance(image, SettingsImage):
            before = SettingsImage(self.settings, self.accounts)
            self.settings, self.accounts = image.settings, dict(image.accounts)
            return before
        return self._put_catalogue(image)

    def _put_account(self, image: AccountImage) -> AccountImage:
        was = self.accounts.pop(image.key, None)
        if image.value is not None:
            self.accounts[image.key] = image.value
        return AccountImage(image.key, was, image.causes)

    def _put_catalogue(self, image: CatalogueImage) -> CatalogueImage:
        names = [name for name in image.__struct_fields__ if getattr(image, name) is not UNSET]
        was = {name: getattr(self.catalogue, name) for name in names}
        self.catalogue = msgspec.structs.replace(self.catalogue, **{name: getattr(image, name) for name in names})
        return CatalogueImage(**was)

    def facts(self) -> Facts:
        """Return the facts; of the budgets those of the last window."""
        said = self.catalogue
        return Facts(
            settings=self.settings,
            connections=tuple(self.accounts.values()),
            catalog=said.rows,
            prices=said.prices,
            tier_rules=said.tier_rules,
            free_providers=said.free_providers,
            seat_sellers=said.seat_sellers,
            thresholds=said.thresholds,
            breakers=self.breakers,
            budgets={rung: windows[-1] for rung, windows in self.budgets.items() if windows},
        )


def undo(*, moment: Moment, writes: Iterable[Write], keep: int) -> list[Write]:
    """Undo writes, the newest first, in a moment; return the oldest `keep` of them in order, to be redone."""
    undone: list[Write] = []
    for write in writes:
        images = [moment.put(image) for image in reversed(write.images)]
        undone.append(msgspec.structs.replace(write, images=tuple(reversed(images))))
        del undone[:-keep]
    return undone[::-1]


def catalogue_of(facts: Facts) -> Catalogue:
    """Return what the catalogue says of facts."""
    return Catalogue(
        rows=facts.catalog,
        prices=facts.prices,
        tier_rules=facts.tier_rules,
        free_providers=facts.free_providers,
        seat_sellers=facts.seat_sellers,
        thresholds=facts.thresholds,
    )


def catalogue_before(*, before: Catalogue, after: Catalogue) -> CatalogueImage | None:
    """Return the image of what differs as it was before, None where nothing does."""
    names = [name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    return CatalogueImage(**{name: getattr(before, name) for name in names}) if names else None


def budget_at(*, windows: Sequence[Budget], at: datetime) -> Budget:
    """Return the budget of the window that an instant falls into, else the last."""
    return next((one for one in windows if one.window_end is None or one.window_end > at), windows[-1])


def looks_alike(
    *, before: Connection | None, after: Connection | None, settings: LadderSettings, now: datetime
) -> bool:
    """Tell whether a change at `now` is none to whoever looks at the time up to `now`.

    So it is where all that differs are readings, and each window is judged as it was: time never makes a window better,
    so that one judged `usable` now was so at every moment since its reading, by the old one as by the new one.
    """
    if before is None or after is None:
        return before is after
    return _seen(before, settings, now) == _seen(after, settings, now)


def _seen(one: Connection, settings: LadderSettings, now: datetime) -> tuple[object, ...]:
    windows = {window.window: window_seen(window=window, settings=settings, now=now) for window in one.windows}
    return msgspec.structs.replace(one, windows=()), windows


def window_seen(*, window: Window, settings: LadderSettings, now: datetime) -> _Seen:
    """Return what of a window shows at `now` and showed before: two windows that show the same look alike.

    One that time has made unverified is its whole self, since it shows when that was.
    """
    code = judge_window(window=window, settings=settings, now=now).code
    if code in _BY_TIME:
        return window
    return code, (window.combine, window.model, window.is_muted, window.is_reported, window.exit_cutoff_percent)


def is_in_band(*, window: Window, settings: LadderSettings) -> bool:
    """Tell whether the held state of a window matters (Q4): it lies above the exit cutoff, not above the floor."""
    percent = None if window.unlimited else window.remaining_percent
    if percent is None:
        return False
    cutoff = exit_cutoff(window=window, settings=settings)
    return cutoff < percent <= reentry_floor(window=window, settings=settings)
