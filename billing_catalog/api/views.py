"""The catalogue's resources below `catalog/` (SPEC 4): each a list and one row, written through the services."""

from typing import Any, ClassVar, TypeVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view

from billing_catalog.api import serializers
from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice, PriceSource, ProviderAlias, TierOverride
from billing_catalog.services import aliases, entries, prices, sources, tiers
from omniroute_admin.common.resources import ResourceDetailView, ResourceListView, ResourceView

View = TypeVar("View", bound=type[ResourceView])

READ = "Scope: catalog:read."
WRITE = "Scope: catalog:write."
IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="An entity tag; 412 where the row has changed."
)
WHY = OpenApiParameter("reason", OpenApiTypes.STR, description="Why; goes to the history.")


def list_of(what: str, add: str) -> Any:
    """Return the decorator that describes a list: `what` it holds, and what it means to `add` to it."""
    return extend_schema_view(
        get=extend_schema(tags=["catalog"], summary=f"List {what}", description=READ),
        post=extend_schema(tags=["catalog"], summary=f"Add to the {what}", description=f"{add} {WRITE}"),
    )


def one_of(what: str, change: str, delete: str) -> Any:
    """Return the decorator that describes one row: `what`, and what it means to `change` and to `delete` it."""
    changing: dict[str, Any] = {"tags": ["catalog"], "parameters": [IF_MATCH], "description": f"{change} {WRITE}"}
    return extend_schema_view(
        get=extend_schema(tags=["catalog"], summary=f"Read one of the {what}", description=READ),
        put=extend_schema(summary=f"Replace one of the {what}", **changing),
        patch=extend_schema(summary=f"Change one of the {what}", **changing),
        delete=extend_schema(
            tags=["catalog"],
            summary=f"Delete one of the {what}",
            parameters=[IF_MATCH, WHY],
            description=f"{delete} {WRITE}",
        ),
    )


class CatalogResource(ResourceView):
    """What the catalogue's resources share: the scopes, and that every connection may be judged otherwise after."""

    is_wide: ClassVar[bool] = True
    read_scope: ClassVar[str] = "catalog:read"
    write_scope: ClassVar[str] = "catalog:write"


class Billing(CatalogResource):
    """Billing entries (B2)."""

    queryset = BillingEntry.objects.all()
    serializer_class = serializers.BillingEntrySerializer


@list_of("billing entries", "One per provider and auth type, and one provider-wide (`auth_type` null).")
class BillingListView(Billing, ResourceListView):
    """The billing entries."""

    def create_row(self, *, values: Any, **by: Any) -> BillingEntry:
        """Add an entry."""
        return entries.create_entry(values=values, **by)


@one_of(
    "billing entries",
    "A shipped entry becomes the operator's with its first edit.",
    "What it covered is uncurated again, which is consumed as metered.",
)
class BillingDetailView(Billing, ResourceDetailView):
    """One billing entry."""

    def update_row(self, *, row: BillingEntry, changes: Any, **by: Any) -> BillingEntry:
        """Change the entry."""
        return entries.update_entry(entry=row, changes=changes, **by)

    def delete_row(self, *, row: BillingEntry, **by: Any) -> None:
        """Delete the entry."""
        entries.delete_entry(entry=row, **by)


class Prices(CatalogResource):
    """Prices, append-only (SPEC 3)."""

    queryset = ModelPrice.objects.all()
    serializer_class = serializers.PriceSerializer


@list_of("prices", "It ends the price that acts at its start, and ends itself where a later one begins.")
class PriceListView(Prices, ResourceListView):
    """The prices, those that ended and those to come among them."""

    def create_row(self, *, values: Any, **by: Any) -> ModelPrice:
        """Add a price."""
        return prices.create_price(values=values, **by)


@one_of(
    "prices",
    "Prices are append-only: the price ends now and the answer is the new one that begins, with an `id` of its own "
    "(`Content-Location` is its address). One that has not begun, and an end alone, are changed in place; one that "
    "has ended is history: 409.",
    "The price ends now and stays in the books; one that has not begun is taken back.",
)
class PriceDetailView(Prices, ResourceDetailView):
    """One price."""

    def answer(self, row: Any, *, status: int = 200) -> Any:
        """Return the price, with the address it has: a changed price is a new row."""
        response = super().answer(row, status=status)
        response["Content-Location"] = f"{self.request.path.rpartition('/')[0]}/{row.pk}"
        return response

    def update_row(self, *, row: ModelPrice, changes: Any, **by: Any) -> ModelPrice:
        """Change the price from now on."""
        return prices.update_price(price=row, changes=changes, **by)

    def delete_row(self, *, row: ModelPrice, **by: Any) -> None:
        """End the price."""
        prices.end_price(price=row, **by)


class Overrides(CatalogResource):
    """Tier overrides (T)."""

    queryset = TierOverride.objects.all()
    serializer_class = serializers.TierOverrideSerializer


@list_of("tier overrides", "It acts at once; of several patterns that match, the one made first wins.")
class OverrideListView(Overrides, ResourceListView):
    """The tier overrides."""

    def create_row(self, *, values: Any, **by: Any) -> TierOverride:
        """Add an override."""
        return tiers.create_override(values=values, **by)


@one_of("tier overrides", "It keeps its place in the order.", "The models follow the free list and the prices again.")
class OverrideDetailView(Overrides, ResourceDetailView):
    """One tier override."""

    def update_row(self, *, row: TierOverride, changes: Any, **by: Any) -> TierOverride:
        """Change the override."""
        return tiers.update_override(override=row, changes=changes, **by)

    def delete_row(self, *, row: TierOverride, **by: Any) -> None:
        """Delete the override."""
        tiers.delete_override(override=row, **by)


class FreeProviders(CatalogResource):
    """Free providers (T), addressed by their name."""

    queryset = FreeProvider.objects.all()
    serializer_class = serializers.FreeProviderSerializer
    lookup_field = "provider"


@list_of("free providers", "Every model of the provider is free from now on.")
class FreeProviderListView(FreeProviders, ResourceListView):
    """The free providers."""

    def create_row(self, *, values: Any, **by: Any) -> FreeProvider:
        """Add a free provider."""
        return tiers.create_free_provider(values=values, **by)


@one_of("free providers", "Its name and its justification may change.", "Its models follow their prices again.")
class FreeProviderDetailView(FreeProviders, ResourceDetailView):
    """One free provider."""

    def update_row(self, *, row: FreeProvider, changes: Any, **by: Any) -> FreeProvider:
        """Change the free provider."""
        return tiers.update_free_provider(free_provider=row, changes=changes, **by)

    def delete_row(self, *, row: FreeProvider, **by: Any) -> None:
        """Take it off the list."""
        tiers.delete_free_provider(free_provider=row, **by)


class Aliases(CatalogResource):
    """Aliases (SPEC 1), addressed by the other name."""

    queryset = ProviderAlias.objects.all()
    serializer_class = serializers.AliasSerializer
    lookup_field = "alias"


@list_of(
    "aliases",
    "Every row under the alias moves to the provider in the same transaction; 409 names every row that excludes "
    "another one. Of a model that both names price, the provider's own prices stay and the alias's are removed; the "
    "history says so. An alias is one step: it never leads to another alias.",
)
class AliasListView(Aliases, ResourceListView):
    """The aliases."""

    def create_row(self, *, values: Any, **by: Any) -> ProviderAlias:
        """Add an alias."""
        return aliases.create_alias(values=values, **by)


@one_of(
    "aliases",
    "The rows under the name it then has move; those that moved before stay.",
    "The name is not resolved any more; the rows that moved stay with the provider.",
)
class AliasDetailView(Aliases, ResourceDetailView):
    """One alias."""

    def update_row(self, *, row: ProviderAlias, changes: Any, **by: Any) -> ProviderAlias:
        """Change the alias."""
        return aliases.update_alias(alias=row, changes=changes, **by)

    def delete_row(self, *, row: ProviderAlias, **by: Any) -> None:
        """Delete the alias."""
        aliases.delete_alias(alias=row, **by)


class Sources(CatalogResource):
    """Price sources (T), addressed by the provider."""

    queryset = PriceSource.objects.all()
    serializer_class = serializers.PriceSourceSerializer
    lookup_field = "provider"


@list_of("price sources", "The next run of sync_prices follows it; a price of 0 from a seller of seats is no price.")
class SourceListView(Sources, ResourceListView):
    """The price sources."""

    def create_row(self, *, values: Any, **by: Any) -> PriceSource:
        """Add a price source."""
        return sources.create_source(values=values, **by)


@one_of("price sources", "The next run of sync_prices follows it.", "The list of the provider's own name serves it.")
class SourceDetailView(Sources, ResourceDetailView):
    """One price source."""

    def update_row(self, *, row: PriceSource, changes: Any, **by: Any) -> PriceSource:
        """Change the price source."""
        return sources.update_source(source=row, changes=changes, **by)

    def delete_row(self, *, row: PriceSource, **by: Any) -> None:
        """Delete the price source."""
        sources.delete_source(source=row, **by)
