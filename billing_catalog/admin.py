"""The admin of the catalogue: every write goes through the same services as the API's (SPEC 5, 7)."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db import models
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from billing_catalog.models import (
    BillingEntry,
    FreeProvider,
    LoadedFact,
    ModelPrice,
    PriceSource,
    ProviderAlias,
    TierOverride,
    TierThresholds,
)
from billing_catalog.services import aliases, entries, prices, sources, tiers
from omniroute_admin.common import clock
from omniroute_admin.common.admin_base import DecidingAdmin, ReasonForm, change_of
from omniroute_admin.common.admin_rights import ByRights


class ServiceAdmin(DecidingAdmin):
    """An admin whose writes are the calls of a service: names resolved, rules kept, history stamped."""

    reads = "catalog:read"
    writes = "catalog:write"

    written: ClassVar[tuple[str, ...]]
    """The fields that the service takes."""

    def create(self, *, values: Any, **by: Any) -> models.Model:
        """Write a new row."""
        raise NotImplementedError

    def update(self, *, row: Any, changes: Any, **by: Any) -> models.Model:
        """Change a row."""
        raise NotImplementedError

    def remove(self, *, row: Any, **by: Any) -> None:
        """Delete a row."""
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write what the form says, and leave on the object what was written."""
        values = {name: form.cleaned_data[name] for name in self.written if name in form.cleaned_data}
        by = change_of(request)
        row = self.update(row=obj, changes=values, **by) if change else self.create(values=values, **by)
        for column in row._meta.concrete_fields:
            setattr(obj, column.attname, getattr(row, column.attname))
        obj._state = row._state

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Delete the row."""
        self.remove(row=obj, **change_of(request))


@admin.register(BillingEntry)
class BillingEntryAdmin(ServiceAdmin):
    """How providers bill (B2)."""

    list_display = ["provider", "auth_type", "billing", "overage", "origin", "reviewed_on", "reviewed_by"]
    list_filter = ["billing", "overage", "origin", "auth_type", "reviewed_on"]
    search_fields = ["provider", "auth_type", "reason", "reviewed_by"]
    date_hierarchy = "reviewed_on"
    formfield_overrides = {models.URLField: {"assume_scheme": "https"}}
    written = ("provider", "auth_type", "billing", "overage", "reason", "source_url", "reviewed_on", "reviewed_by")

    def create(self, *, values: Any, **by: Any) -> BillingEntry:
        """Write a new entry."""
        return entries.create_entry(values=values, **by)

    def update(self, *, row: Any, changes: Any, **by: Any) -> BillingEntry:
        """Change an entry."""
        return entries.update_entry(entry=row, changes=changes, **by)

    def remove(self, *, row: Any, **by: Any) -> None:
        """Delete an entry."""
        entries.delete_entry(entry=row, **by)


@admin.register(ProviderAlias)
class ProviderAliasAdmin(ServiceAdmin):
    """Other names of providers (SPEC 1)."""

    list_display = ["alias", "provider", "updated_at"]
    list_filter = ["updated_at"]
    search_fields = ["alias", "provider"]
    written = ("alias", "provider")

    def create(self, *, values: Any, **by: Any) -> ProviderAlias:
        """Write a new alias; the rows under it move."""
        return aliases.create_alias(values=values, **by)

    def update(self, *, row: Any, changes: Any, **by: Any) -> ProviderAlias:
        """Change an alias."""
        return aliases.update_alias(alias=ProviderAlias.objects.get(pk=row.pk), changes=changes, **by)

    def remove(self, *, row: Any, **by: Any) -> None:
        """Delete an alias."""
        aliases.delete_alias(alias=row, **by)


class PeriodFilter(admin.SimpleListFilter):
    """Prices by whether they act now."""

    title = "period"
    parameter_name = "period"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return the states."""
        return [("now", "acts now"), ("ended", "has ended"), ("planned", "begins later")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ModelPrice]) -> QuerySet[ModelPrice]:
        """Return the prices of the state."""
        now = clock.now()
        states = {
            "now": Q(effective_from__lte=now) & (Q(effective_to=None) | Q(effective_to__gt=now)),
            "ended": Q(effective_to__lte=now),
            "planned": Q(effective_from__gt=now),
        }
        return queryset.filter(states.get(self.value() or "", Q()))


class PriceForm(ReasonForm):
    """What is asked of a price; that a new one ends the one that acts is the service's work, not an error."""

    def _get_validation_exclusions(self) -> set[str]:
        # A constraint that looks at an excluded field is left to the service.
        return {*super()._get_validation_exclusions(), "effective_to"}  # type: ignore[misc]


@admin.register(ModelPrice)
class ModelPriceAdmin(ServiceAdmin):
    """Prices, append-only: a new number is a new price, which ends the one that acts (SPEC 3)."""

    list_display = [
        "provider",
        "model",
        "input_usd_per_million",
        "output_usd_per_million",
        "rank",
        "source",
        "effective_from",
        "effective_to",
    ]
    list_filter = [PeriodFilter, "source", ("input_usd_per_million", admin.EmptyFieldListFilter)]
    search_fields = ["provider", "model"]
    date_hierarchy = "effective_from"
    actions = ["end_now"]
    form = PriceForm
    show_full_result_count = False
    written = (
        "provider",
        "model",
        "input_usd_per_million",
        "output_usd_per_million",
        "cached_input_usd_per_million",
        "capabilities",
        "rank",
        "source",
        "effective_from",
        "effective_to",
    )

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return what a new price begins with: it acts from now on."""
        return {"effective_from": clock.now(), **super().get_changeform_initial_data(request)}

    def get_readonly_fields(self, request: HttpRequest, obj: ModelPrice | None = None) -> tuple[str, ...]:
        """Return what cannot change once a price is made: what it says, and from when."""
        return tuple(name for name in self.written if name not in {"rank", "effective_to"}) if obj else ()

    def has_change_permission(self, request: HttpRequest, obj: ModelPrice | None = None) -> bool:
        """Tell whether the price can be changed: one that has ended is history."""
        is_over = obj is not None and obj.effective_to is not None and obj.effective_to <= clock.now()
        return not is_over and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: ModelPrice | None = None) -> bool:
        """Prices stay in the books: they are ended."""
        return False

    @admin.action(description="End the selected prices now", permissions=["change"])
    def end_now(self, request: HttpRequest, queryset: QuerySet[ModelPrice]) -> None:
        """End prices; those that have not begun are taken back."""
        for price in queryset:
            prices.end_price(price=price, **change_of(request))
        self.message_user(request, "The prices have ended; they stay in the books.")

    def create(self, *, values: Any, **by: Any) -> ModelPrice:
        """Write a new price."""
        return prices.create_price(values=values, **by)

    def update(self, *, row: Any, changes: Any, **by: Any) -> ModelPrice:
        """Change rank or end."""
        return prices.update_price(price=row, changes=changes, **by)


@admin.register(TierOverride)
class TierOverrideAdmin(ServiceAdmin):
    """Overrides of the economic tier, the first made first (T)."""

    list_display = ["id", "provider", "model_pattern", "tier", "origin", "updated_at"]
    list_display_links = ["id", "provider"]
    list_filter = ["tier", "origin"]
    search_fields = ["provider", "model_pattern"]
    written = ("provider", "model_pattern", "tier")

    def create(self, *, values: Any, **by: Any) -> TierOverride:
        """Write a new override."""
        return tiers.create_override(values=values, **by)

    def update(self, *, row: Any, changes: Any, **by: Any) -> TierOverride:
        """Change an override."""
        return tiers.update_override(override=row, changes=changes, **by)

    def remove(self, *, row: Any, **by: Any) -> None:
        """Delete an override."""
        tiers.delete_override(override=row, **by)


@admin.register(FreeProvider)
class FreeProviderAdmin(ServiceAdmin):
    """Providers whose models cost nothing (T)."""

    list_display = ["provider", "reason", "origin", "updated_at"]
    list_filter = ["origin"]
    search_fields = ["provider", "reason"]
    written = ("provider", "reason")

    def create(self, *, values: Any, **by: Any) -> FreeProvider:
        """Write a new free provider."""
        return tiers.create_free_provider(values=values, **by)

    def update(self, *, row: Any, changes: Any, **by: Any) -> FreeProvider:
        """Change a free provider."""
        return tiers.update_free_provider(free_provider=row, changes=changes, **by)

    def remove(self, *, row: Any, **by: Any) -> None:
        """Take one off the list."""
        tiers.delete_free_provider(free_provider=row, **by)


@admin.register(PriceSource)
class PriceSourceAdmin(ServiceAdmin):
    """Which price list serves which provider, and who sells seats (T)."""

    list_display = ["provider", "price_list", "capability_list", "sells_seats", "origin"]
    list_filter = ["sells_seats", "origin"]
    search_fields = ["provider", "price_list", "capability_list"]
    written = ("provider", "price_list", "capability_list", "sells_seats")

    def create(self, *, values: Any, **by: Any) -> PriceSource:
        """Write a new price source."""
        return sources.create_source(values=values, **by)

    def update(self, *, row: Any, changes: Any, **by: Any) -> PriceSource:
        """Change a price source."""
        return sources.update_source(source=row, changes=changes, **by)

    def remove(self, *, row: Any, **by: Any) -> None:
        """Delete a price source."""
        sources.delete_source(source=row, **by)


@admin.register(TierThresholds)
class TierThresholdsAdmin(ServiceAdmin):
    """The one row of thresholds (T): a setting, though the catalogue keeps it."""

    writes = "settings:write"

    list_display = ["__str__", "free", "cheap"]
    written = ("free", "cheap")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """There is one row, and it is there."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: TierThresholds | None = None) -> bool:
        """There is one row, and it stays."""
        return False

    def update(self, *, row: Any, changes: Any, **by: Any) -> TierThresholds:
        """Change the thresholds."""
        return tiers.update_thresholds(changes=changes, **by)


@admin.register(LoadedFact)
class LoadedFactAdmin(ByRights, admin.ModelAdmin):
    """What load_facts has loaded, and which list prices were ended; delete one to let it come back."""

    reads = "catalog:read"
    writes = "catalog:write"

    list_display = ["kind", "key", "loaded_at"]
    list_filter = ["kind"]
    search_fields = ["key"]
    date_hierarchy = "loaded_at"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Only load_facts and services write them."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: LoadedFact | None = None) -> bool:
        """Only load_facts and services write them."""
        return False
