"""What every form of the console has: a reason, and what its sender saw when it was opened."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core import signing

from omniroute_admin.common.history import LONGEST_REASON

_SALT = "seen"


class ReasonField(forms.CharField):
    """Asks why; what is written goes to the history with the name of its writer."""

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {
            "label": "Why",
            "max_length": LONGEST_REASON,
            "help_text": "Goes to the history with your name.",
            "widget": forms.Textarea(attrs={"rows": 2}),
            "error_messages": {"required": "Say why; it goes to the history."},
        }
        super().__init__(**defaults | options)


def seen_text(values: Mapping[str, str]) -> str:
    """Return the values that a form shows when it is opened, signed, for its hidden field `seen`."""
    return signing.dumps(dict(values), salt=_SALT, compress=True)


def read_seen(text: str) -> dict[str, str] | None:
    """Return the values that a form showed when it was opened; None where the field is not one of ours."""
    try:
        values = signing.loads(text, salt=_SALT)
    except signing.BadSignature:
        return None
    return values if isinstance(values, dict) else None


class ActForm(forms.Form):
    """A form that changes something: why, and what was seen before."""

    seen = forms.CharField(widget=forms.HiddenInput)
    reason = ReasonField()

    def clean_seen(self) -> dict[str, str]:
        """Return what the sender saw.

        Raises:
            ValidationError: it was not us who wrote it.
        """
        values = read_seen(self.cleaned_data["seen"])
        if values is None:
            raise forms.ValidationError("This form is not whole any more. Open the page again.")
        return values
