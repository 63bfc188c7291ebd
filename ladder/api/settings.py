"""The settings over HTTP, and in OmniRoute's form (SPEC 2, SPEC 4)."""

from decimal import Decimal
from typing import Any

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers as s
from rest_framework.request import Request
from rest_framework.views import APIView

from ladder.api.answers import on_the_wire
from ladder.api.documents import IF_MATCH, REASON, percent, usd, words
from ladder.api.documents_state import RungBudgetDocument
from ladder.core.occupancy import budget_view
from ladder.core.values import Period, Weekday
from ladder.selectors.settings import BudgetSettings, StoredSettings, read_stored_settings
from ladder.services.budgets import reset_budget
from ladder.services.settings import OmnirouteSettings, Reason, SettingsChanges, from_omniroute, update_settings
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import decode, read_body
from omniroute_admin.common.core.numbers import decimal_text, percent_number, usd_text
from omniroute_admin.common.history import LONGEST_REASON
from omniroute_admin.common.listing import check_parameters
from omniroute_admin.common.resources import check_if_match, etag_of, reason_of
from omniroute_admin.common.selectors.revision import read_snapshot

_CHANGES = msgspec.json.Decoder(SettingsChanges)
_OMNIROUTE = msgspec.json.Decoder(OmnirouteSettings)


class BudgetDocument(s.Serializer):
    """A paid rung's budget; an amount of null is no limit, 0 is off."""

    amount_usd = usd(allow_null=True)
    period = s.ChoiceField(words(Period))
    week_starts_on = s.ChoiceField(words(Weekday))
    zone = s.CharField(help_text="IANA name, as in Europe/Berlin.")


class BudgetsDocument(s.Serializer):
    """The budgets of the paid rungs."""

    cheap = BudgetDocument()
    premium = BudgetDocument()


class ThresholdsDocument(s.Serializer):
    """Up to which price a model is free, and cheap: USD per million input tokens."""

    free = usd()
    cheap = usd()


class SettingsDocument(s.Serializer):
    """The settings of the decision."""

    exit_cutoff_percent = percent()
    reentry_min_remaining_percent = percent()
    max_reading_age_seconds = s.IntegerField(min_value=10, max_value=3600)
    tier_thresholds = ThresholdsDocument()
    rung_budgets = BudgetsDocument()


class _LeftOut:
    """Makes every field one that may be left out, to any depth: what is left out stays."""

    def get_fields(self) -> dict[str, s.Field]:
        """Return the fields, none of them required."""
        fields: dict[str, s.Field] = super().get_fields()  # type: ignore[misc]
        for field in fields.values():
            field.required = False
        return fields


class BudgetChangesDocument(_LeftOut, BudgetDocument):
    """What changes of a paid rung's budget."""


class BudgetsChangesDocument(s.Serializer):
    """What changes of the budgets of the paid rungs."""

    cheap = BudgetChangesDocument(required=False)
    premium = BudgetChangesDocument(required=False)


class ThresholdChangesDocument(_LeftOut, ThresholdsDocument):
    """What changes of the thresholds."""


class SettingsChangesDocument(_LeftOut, SettingsDocument):
    """What changes of the settings, merged per field and per rung."""

    tier_thresholds = ThresholdChangesDocument()
    rung_budgets = BudgetsChangesDocument()  # type: ignore[assignment] # the same budgets with less required
    reason = s.CharField(write_only=True, allow_blank=True, max_length=LONGEST_REASON)


class OmnirouteBudgetsDocument(s.Serializer):
    """Budgets in USD: null is no limit, 0 is off; a rung that is not named stays as it is."""

    cheap = s.FloatField(required=False, allow_null=True, min_value=0)
    premium = s.FloatField(required=False, allow_null=True, min_value=0)


class OmnirouteLadderDocument(s.Serializer):
    """What OmniRoute keeps of its ladder."""

    exitCutoffPercent = s.FloatField(required=False, min_value=0, max_value=100)  # noqa: N815 - OmniRoute's word
    reentryMinRemainingPercent = s.FloatField(required=False, min_value=0, max_value=100)  # noqa: N815 - as above
    rungBudgetUsd = OmnirouteBudgetsDocument(required=False)  # noqa: N815 - as above


class OmnirouteDocument(s.Serializer):
    """The settings as OmniRoute writes them."""

    subscriptionLadder = OmnirouteLadderDocument()  # noqa: N815 - OmniRoute's word
    reason = s.CharField(write_only=True, required=False, allow_blank=True, max_length=LONGEST_REASON)


def settings_document(stored: StoredSettings) -> dict[str, Any]:
    """Return the settings as the API shows them (SPEC 4, Resources)."""
    ladder = stored.ladder
    return {
        "exit_cutoff_percent": percent_number(ladder.exit_cutoff_percent),
        "reentry_min_remaining_percent": percent_number(ladder.reentry_min_remaining_percent),
        "max_reading_age_seconds": ladder.max_reading_age_seconds,
        "tier_thresholds": {"free": usd_text(stored.thresholds.free), "cheap": usd_text(stored.thresholds.cheap)},
        "rung_budgets": {rung: _budget_document(budget) for rung, budget in stored.budgets.items()},
    }


def _budget_document(budget: BudgetSettings) -> dict[str, Any]:
    return {
        "amount_usd": None if budget.amount_usd is None else usd_text(budget.amount_usd),
        "period": budget.period.value,
        "week_starts_on": budget.week_starts_on.value,
        "zone": budget.zone,
    }


def omniroute_document(stored: StoredSettings) -> dict[str, Any]:
    """Return the settings in OmniRoute's form, where amounts are numbers (SPEC 2, Settings)."""
    return {
        "subscriptionLadder": {
            "exitCutoffPercent": _number(stored.ladder.exit_cutoff_percent),
            "reentryMinRemainingPercent": _number(stored.ladder.reentry_min_remaining_percent),
            "rungBudgetUsd": {rung: _number(budget.amount_usd) for rung, budget in stored.budgets.items()},
        }
    }


def _number(value: Decimal | None) -> msgspec.Raw | None:
    """Return a decimal as an exact JSON number."""
    return None if value is None else msgspec.Raw(decimal_text(value).encode())


def _answer(document: dict[str, Any]) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(document), content_type="application/json", headers={"ETag": etag_of(document)}
    )


class SettingsView(APIView):
    """The settings of the decision, the tier thresholds and the budgets."""

    required_scopes = {"GET": "settings:read", "PATCH": "settings:write"}

    @extend_schema(operation_id="settings_read", responses=SettingsDocument)
    def get(self, request: Request) -> HttpResponse:
        """Return the settings."""
        check_parameters(request.query_params)
        with read_snapshot():
            return _answer(settings_document(read_stored_settings()))

    @extend_schema(
        operation_id="settings_change",
        parameters=[IF_MATCH],
        request=SettingsChangesDocument,
        responses=SettingsDocument,
    )
    def patch(self, request: Request) -> HttpResponse:
        """Change settings, merged per field and per rung; `reason` goes to the history."""
        check_parameters(request.query_params)
        changes = decode(body=read_body(request._request), decoder=_CHANGES)
        stored = update_settings(
            changes=changes,
            actor=caller(request).actor,
            reason=changes.reason.strip(),
            now=clock.now(),
            check=lambda present: check_if_match(request, settings_document(present)),
        )
        return _answer(settings_document(stored))


class ResetBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why the count starts again."""

    reason: Reason = ""


class ResetDocument(s.Serializer):
    """Why the count starts again."""

    reason = s.CharField(required=False, allow_blank=True, max_length=LONGEST_REASON)


_RESET = msgspec.json.Decoder(ResetBody)


class BudgetResetView(APIView):
    """Starting the count of a budget again (M9)."""

    required_scopes = {"POST": "settings:write"}

    @extend_schema(operation_id="budget_reset", request=ResetDocument, responses=RungBudgetDocument)
    def post(self, request: Request, rung: str) -> HttpResponse:
        """Count a rung's spend from now on; every row of the ledger stays, and no later window moves."""
        check_parameters(request.query_params)
        body = decode(body=read_body(request._request) or b"{}", decoder=_RESET)
        now = clock.now()
        budget = reset_budget(rung=rung, actor=caller(request).actor, reason=body.reason.strip(), now=now)
        document = on_the_wire(budget_view(budget=budget, now=now))
        return HttpResponse(msgspec.json.encode(document), content_type="application/json")


class OmnirouteSettingsView(APIView):
    """The settings in the form that OmniRoute writes and reads."""

    required_scopes = {"GET": "settings:read", "PUT": "settings:write"}

    @extend_schema(operation_id="settings_export", responses=OmnirouteDocument)
    def get(self, request: Request) -> HttpResponse:
        """Export the settings."""
        check_parameters(request.query_params)
        with read_snapshot():
            return _answer(omniroute_document(read_stored_settings()))

    @extend_schema(
        operation_id="settings_import",
        request=OmnirouteDocument,
        responses=OmnirouteDocument,
        parameters=[IF_MATCH, REASON],
    )
    def put(self, request: Request) -> HttpResponse:
        """Import settings; what is left out stays. `reason`, in the body or in the query, goes to the history."""
        check_parameters(request.query_params, ("reason",))
        form = decode(body=read_body(request._request), decoder=_OMNIROUTE)
        stored = update_settings(
            changes=from_omniroute(form=form),
            actor=caller(request).actor,
            reason=form.reason.strip() or reason_of(request),
            now=clock.now(),
            check=lambda present: check_if_match(request, omniroute_document(present)),
        )
        return _answer(omniroute_document(stored))
