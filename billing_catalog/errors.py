"""What the catalogue refuses."""

from collections.abc import Mapping, Sequence
from typing import Any

from omniroute_admin.common.core.stale import Difference
from omniroute_admin.common.errors import BadRequest, Conflict, ProductError


class AliasInTheWay(Conflict):
    """An alias would lead to another alias, or back to itself; aliases are one step (SPEC 1)."""

    code = "alias_chain"
    title = "An alias does not lead to an alias"


class AliasClash(Conflict):
    """Rows under the alias and under the provider stand for the same thing; one of them has to go first."""

    code = "alias_clash"
    title = "Rows are in each other's way"


class PriceHasEnded(Conflict):
    """The price row is history: prices are append-only (SPEC 3)."""

    code = "price_has_ended"
    title = "This price is history"


class BadPricePeriod(BadRequest):
    """The period of a price overlaps another one's, or is none."""

    title = "The period of the price is not possible"


class CatalogFileError(ProductError):
    """A file of facts or prices cannot be read, or does not have the form it should; says which and why."""

    status = 400
    code = "unreadable_file"
    title = "The file cannot be read"


class RowChanged(Conflict):
    """Somebody else changed the row since its form was opened; nothing was written.

    `differences` are what they changed, `stored` is what the row says now, as texts.
    """

    code = "row_changed"
    title = "Changed in between"

    def __init__(self, *, differences: Sequence[Difference], stored: Mapping[str, str]) -> None:
        super().__init__("Somebody else changed this since you opened it.")
        self.differences = tuple(differences)
        self.stored = dict(stored)


class ImportChanged(Conflict):
    """The difference that a file makes is not the one that was shown; nothing was written.

    `report` is what it is now.
    """

    code = "import_changed"
    title = "The catalogue changed since the dry run"

    def __init__(self, report: Any) -> None:
        super().__init__("The catalogue has changed since this difference was worked out.")
        self.report = report
