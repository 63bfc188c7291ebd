"""What the catalogue refuses."""

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
