"""The forms that a preview is asked with beside the tuning page: an entry, an override, a connection (SPEC 5, 3)."""

from typing import Any

from django import forms

from billing_catalog.choices import BILLING_CHOICES, OVERAGE_CHOICES, TIER_CHOICES
from omniroute_admin.common.core.names import is_auth_type, is_connection_id, is_provider
from omniroute_admin.common.fields import AuthTypeField


class ProviderNameField(forms.CharField):
    """A provider's name as it is typed: case and blanks folded."""

    def clean(self, value: Any) -> str:
        """Return the canonical name, aliases not looked at.

        Raises:
            ValidationError: no provider can be called so.
        """
        name = str(super().clean(value)).lower()
        if name and not is_provider(name):
            raise forms.ValidationError("A provider is letters, digits and ._:@+-, as in claude.")
        return name


def _choice(choices: list[tuple[str, str]], *, required: bool = True) -> forms.ChoiceField:
    words = ", ".join(word for word, _ in choices)
    messages = {"required": f"Choose one of: {words}.", "invalid_choice": f"Choose one of: {words}."}
    return forms.ChoiceField(choices=choices, required=required, error_messages=messages)


class _RowForm(forms.Form):
    """One row that is added, changed (`id`), or deleted (`id` and `delete`); deleting asks nothing else."""

    id = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)
    delete = forms.BooleanField(required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.data.get("delete"):
            for name, field in self.fields.items():
                field.required = name == "id"


class BillingTrialForm(_RowForm):
    """An entry of the billing catalogue."""

    provider = ProviderNameField()
    auth_type = forms.CharField(required=False)
    billing = _choice(BILLING_CHOICES)
    overage = _choice(OVERAGE_CHOICES)

    def clean_auth_type(self) -> str | None:
        """Return the canonical auth type, None for a provider-wide entry (B3)."""
        name = AuthTypeField().to_python(self.cleaned_data["auth_type"])
        if name is not None and not is_auth_type(name):
            raise forms.ValidationError("An auth type is letters, digits and ._-, as in oauth; empty is provider-wide.")
        return str(name) if name is not None else None


class TierOverrideTrialForm(_RowForm):
    """A tier override; without a pattern it speaks of the whole provider (T)."""

    provider = ProviderNameField()
    model_pattern = forms.CharField(required=False, max_length=200)
    tier = _choice(TIER_CHOICES)


class FreeProviderTrialForm(_RowForm):
    """A provider whose models cost nothing."""

    provider = ProviderNameField()


class OverrideTrialForm(forms.Form):
    """An overage override of one connection; empty takes it away (B4)."""

    provider = ProviderNameField()
    connection_id = forms.CharField()
    overage_override = _choice(OVERAGE_CHOICES, required=False)

    def clean_connection_id(self) -> str:
        """Return the id (SPEC 1)."""
        name = str(self.cleaned_data["connection_id"])
        if not is_connection_id(name):
            raise forms.ValidationError("A connection id is letters, digits and ._:@+-.")
        return name
