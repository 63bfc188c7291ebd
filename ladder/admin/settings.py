"""The admin of what an operator tunes: the settings of the decision and the budgets of the paid rungs."""

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from ladder.core.money import held_usd
from ladder.core.values import Budget, Rung
from ladder.mapping import rung_named
from ladder.models import LadderSettings, RungBudget
from ladder.selectors.ledger import read_budgets
from ladder.services.budgets import reset_budget
from ladder.services.settings import BudgetChanges, BudgetsChanges, SettingsChanges, is_zone, update_settings
from omniroute_admin.common.admin_base import Change, DecidingAdmin, NeitherAdded, NorDeleted, ReasonForm, change_of
from omniroute_admin.common.core.screen import iso_text
from omniroute_admin.common.core.words import money_text
from omniroute_admin.common.history import LONGEST_REASON


@admin.register(LadderSettings)
class LadderSettingsAdmin(NeitherAdded, NorDeleted, DecidingAdmin):
    """The settings of the decision: one row."""

    reads = "settings:read"
    writes = "settings:write"
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

    reads = "settings:read"
    writes = "settings:write"
    form = BudgetForm
    list_display = ["rung", "amount_in_words", "period", "week_starts_on", "zone", "counted_from"]
    list_filter = ["period", "zone"]
    search_fields = ["rung", "zone"]
    fields = ["rung", "amount_usd", "period", "week_starts_on", "zone", "counted_from"]
    readonly_fields = ["rung", "counted_from"]
    actions = ["reset"]

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

    @admin.action(description="Reset the selected budgets: count from now on", permissions=["change"])
    def reset(self, request: HttpRequest, queryset: QuerySet[RungBudget]) -> HttpResponse | None:
        """Start the count of budgets again (M9), once it was confirmed and said why; else ask."""
        by, is_sure = change_of(request), "post" in request.POST
        if is_sure and by["reason"]:
            rungs = [budget.rung for budget in queryset.order_by("rung")]
            for rung in rungs:
                reset_budget(rung=rung, **by)
            messages.success(request, f"Reset: {', '.join(rungs)}. The count starts at {iso_text(by['now'])}.")
            return None
        if is_sure:
            messages.error(request, "Say why the count starts again.")
        return self._ask(request, queryset, by)

    def _ask(self, request: HttpRequest, queryset: QuerySet[RungBudget], by: Change) -> HttpResponse:
        budgets = read_budgets(now=by["now"], rungs=[rung_named(row.rung) for row in queryset])
        context = {
            **self.admin_site.each_context(request),
            "title": "Reset budgets",
            "opts": self.opts,
            "queryset": queryset,
            "counts": [_count_in_words(rung, budget, by["now"]) for rung, budget in sorted(budgets.items())],
            "reason": by["reason"],
            "longest_reason": LONGEST_REASON,
            "action_checkbox_name": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/ladder/rungbudget/reset_confirmation.html", context)


def _count_in_words(rung: Rung, budget: Budget, now: datetime) -> str:
    """Return what a rung's budget has counted so far in its present window."""
    since = "" if budget.window_start is None else f" since {iso_text(budget.window_start)}"
    held = held_usd(budget=budget, at=now)
    on_hold = f", {money_text(held)} on hold" if held else ""
    return f"{rung.word}: {money_text(budget.spent_usd or Decimal(0))} spent{since}{on_hold}"
