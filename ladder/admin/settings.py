"""The admin of what an operator tunes: the settings of the decision and the budgets of the paid rungs."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from ladder.models import LadderSettings, RungBudget
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, is_zone, update_settings
from omniroute_admin.common.admin_base import DecidingAdmin, NeitherAdded, NorDeleted, ReasonForm, change_of


@admin.register(LadderSettings)
class LadderSettingsAdmin(NeitherAdded, NorDeleted, DecidingAdmin):
    """The settings of the decision: one row."""

    list_display = ["__str__", "exit_cutoff_percent", "reentry_min_remaining_percent", "max_reading_age_seconds"]
    fields = ["exit_cutoff_percent", "reentry_min_remaining_percent", "max_reading_age_seconds"]

    def save_model(self, request: HttpRequest, obj: LadderSettings, form: Any, change: bool) -> None:
        """Change the settings."""
        values = {name: form.cleaned_data[name] for name in self.fields}
        update_settings(changes=SettingsChanges(**values), **change_of(request))


class BudgetForm(ReasonForm):
    """A rung's budget; the zone is one that there is (M3)."""

    def clean_zone(self) -> str:
        """Return the zone.

        Raises:
            ValidationError: no IANA zone has that name.
        """
        zone: str = self.cleaned_data["zone"]
        if not is_zone(zone):
            raise ValidationError("Give an IANA zone, as in Europe/Berlin.")
        return zone


@admin.register(RungBudget)
class RungBudgetAdmin(NeitherAdded, NorDeleted, DecidingAdmin):
    """The budgets of the paid rungs: 0 is off, empty is no limit (M1)."""

    form = BudgetForm
    list_display = ["rung", "amount_in_words", "period", "week_starts_on", "zone", "counted_from"]
    list_filter = ["period", "zone"]
    search_fields = ["rung", "zone"]
    fields = ["rung", "amount_usd", "period", "week_starts_on", "zone", "counted_from"]
    readonly_fields = ["rung", "counted_from"]

    @admin.display(description="amount", ordering="amount_usd")
    def amount_in_words(self, budget: RungBudget) -> str:
        """Return the amount; "off" and "no limit" are words on every screen (M1)."""
        if budget.amount_usd is None:
            return "no limit"
        return f"${budget.amount_usd.normalize():f}" if budget.amount_usd else "off"

    def save_model(self, request: HttpRequest, obj: RungBudget, form: Any, change: bool) -> None:
        """Change the budget."""
        names = [name for name in self.fields if name not in self.readonly_fields]
        budget = BudgetChanges(**{name: form.cleaned_data[name] for name in names})
        changes = SettingsChanges(rung_budgets=BudgetsChanges(**{obj.rung: budget}))
        update_settings(changes=changes, **change_of(request))
