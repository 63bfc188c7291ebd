"""From what a form was sent with to the trial that its preview works out, kind by kind (SPEC 5, 3)."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from django import forms
from django.http import QueryDict

from billing_catalog.core.values import Billing, CatalogRow, Overage, Tier, TierRule
from billing_catalog.models import BillingEntry, FreeProvider, TierOverride
from ladder.core.moves import CatalogEdit, Edits, TierEdit
from ladder.forms.tuning import LABELS, SettingsForm, with_theirs
from ladder.forms.whatif import BillingTrialForm, FreeProviderTrialForm, OverrideTrialForm, TierOverrideTrialForm
from ladder.selectors.connections import is_stored
from ladder.selectors.settings import StoredSettings, read_stored_settings
from ladder.selectors.tuning import Texts, edits_between, settings_with, texts_of
from ladder.services.connections import resolve_provider
from ladder.views.trial import Trial
from omniroute_admin.common.core.stale import find_changes
from omniroute_admin.common.forms import read_seen

_GONE = "What this form edits is not there any more. Open the page again."
_SAVED_MEANWHILE = "Somebody saved other settings since this page was opened: saving will ask which ones to keep."


class SettingsTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The tuning page as it stands: what it showed first, what it says now, and the trial of it."""

    form: SettingsForm
    began: Texts
    sent: Texts
    wanted: StoredSettings
    trial: Trial

    @property
    def changes(self) -> dict[str, str]:
        """Return the settings that would be saved."""
        return find_changes(began=self.began, sent=self.sent)


def settings_trial(data: QueryDict) -> SettingsTrial:
    """Return the trial of a settings form; a field that is wrong counts as not changed, and is named."""
    stored = read_stored_settings()
    present = texts_of(stored)
    seen = read_seen(data.get("seen", ""))
    began = seen if seen is not None and seen.keys() == present.keys() else present
    form = SettingsForm(with_theirs(data, began), began=began)
    form.is_valid()
    sent = form.texts()
    wanted = settings_with(stored=stored, changes=find_changes(began=began, sent=sent))
    edits, budgets = edits_between(stored=stored, wanted=wanted)
    trial = Trial(
        edits=edits,
        budgets=budgets,
        problems=tuple((LABELS[name], words) for name, words in form.problems().items()),
        notes=(_SAVED_MEANWHILE,) if began != present else (),
    )
    return SettingsTrial(form=form, began=began, sent={**began, **sent}, wanted=wanted, trial=trial)


def _trial_of(form: forms.Form, edit: Callable[[dict[str, Any]], Edits | None]) -> Trial:
    """Return the trial of a form; one that is not valid, or edits what is gone, changes nothing and says so."""
    if not form.is_valid():
        told = ((name.replace("_", " "), " ".join(map(str, errors))) for name, errors in form.errors.items())
        return Trial(problems=tuple(told))
    edits = edit(form.cleaned_data)
    return Trial(notes=(_GONE,)) if edits is None else Trial(edits=edits)


def billing_trial(data: QueryDict) -> Trial:
    """Return the trial of an entry of the billing catalogue."""
    return _trial_of(BillingTrialForm(data), _billing_edits)


def _billing_edits(said: dict[str, Any]) -> Edits | None:
    old = None
    if said["id"]:
        old = BillingEntry.objects.filter(pk=said["id"]).values_list("provider", "auth_type").first()
        if old is None:
            return None
    new = None
    if not said["delete"]:
        provider = resolve_provider(said["provider"])
        new = CatalogRow(provider, Billing(said["billing"]), Overage(said["overage"]), said["auth_type"])
    return Edits(catalog=(CatalogEdit(old, new),))


def tier_trial(data: QueryDict) -> Trial:
    """Return the trial of a tier override."""
    return _trial_of(TierOverrideTrialForm(data), _tier_edits)


def _tier_edits(said: dict[str, Any]) -> Edits | None:
    old = None
    if said["id"]:
        row = TierOverride.objects.filter(pk=said["id"]).values_list("provider", "tier", "model_pattern").first()
        if row is None:
            return None
        old = TierRule(row[0], Tier(row[1]), row[2])
    new = None
    if not said["delete"]:
        new = TierRule(resolve_provider(said["provider"]), Tier(said["tier"]), said["model_pattern"] or None)
    return Edits(tier_rules=(TierEdit(old, new),))


def free_trial(data: QueryDict) -> Trial:
    """Return the trial of a free provider."""
    return _trial_of(FreeProviderTrialForm(data), _free_edits)


def _free_edits(said: dict[str, Any]) -> Edits | None:
    edits: dict[str, bool] = {}
    if said["id"]:
        old = FreeProvider.objects.filter(pk=said["id"]).values_list("provider", flat=True).first()
        if old is None:
            return None
        edits[old] = False
    if not said["delete"]:
        edits[resolve_provider(said["provider"])] = True
    return Edits(free_providers=edits)


def override_trial(data: QueryDict) -> Trial:
    """Return the trial of a connection's overage override (B4)."""
    return _trial_of(OverrideTrialForm(data), _override_edits)


def _override_edits(said: dict[str, Any]) -> Edits | None:
    provider, connection_id = resolve_provider(said["provider"]), said["connection_id"]
    if not is_stored(provider=provider, connection_id=connection_id):
        return None
    override = Overage(said["overage_override"]) if said["overage_override"] else None
    return Edits(connections={(provider, connection_id): {"overage_override": override}})


TRIALS: Mapping[str, tuple[str, Callable[[QueryDict], Trial]]] = {
    "settings": ("settings:read", lambda data: settings_trial(data).trial),
    "billing": ("catalog:read", billing_trial),
    "tier-override": ("catalog:read", tier_trial),
    "free-provider": ("catalog:read", free_trial),
    "override": ("connections:read", override_trial),
}
"""Every kind of change that can be tried out: the right it needs, and how its form is read."""
