"""The forms of a model's price: what it costs and from when, and when it ends."""

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms

from billing_catalog.forms.rows import TextsForm
from billing_catalog.services.kinds import PRICES
from omniroute_admin.common.forms import ActForm

NOW, AT = "now", "at"


class InstantField(forms.CharField):
    """A local time of the display zone, as a browser's control sends it; cleaned to an aware UTC instant."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local", "step": 1})

    def __init__(self, *, zone: ZoneInfo, **options: Any) -> None:
        super().__init__(**options)
        self._zone = zone

    def clean(self, value: Any) -> datetime | None:
        """Return the instant, None where nothing was sent.

        Raises:
            ValidationError: it is none, or no clock of the zone ever shows it.
        """
        text = super().clean(value)
        return _instant(text, self._zone) if text else None


def _instant(text: str, zone: ZoneInfo) -> datetime:
    try:
        local = datetime.fromisoformat(text)
        at = local.replace(tzinfo=zone).astimezone(UTC) if local.tzinfo is None else local.astimezone(UTC)
        is_shown = local.tzinfo is not None or at.astimezone(zone).replace(tzinfo=None) == local
    except (ValueError, OverflowError):
        raise forms.ValidationError("Give a date and a time, as 2026-08-22 14:30.") from None
    if not is_shown:
        raise forms.ValidationError(f"No clock in {zone.key} ever shows this time: summer time skips it.")
    return at


def _when(first: str) -> forms.ChoiceField:
    return forms.ChoiceField(choices=[(NOW, first), (AT, "at an instant to come")], widget=forms.RadioSelect)


class SetPriceForm(TextsForm):
    """Gives a model a price; provider and model stand fixed."""

    def __init__(self, *args: Any, zone: ZoneInfo, **kwargs: Any) -> None:
        super().__init__(*args, kind=PRICES, **kwargs)
        for name in PRICES.identity:
            self.fields[name].widget = forms.HiddenInput()
        starts = {"starts": _when("from now on"), "starts_at": InstantField(zone=zone, required=False)}
        last = {name: self.fields.pop(name) for name in ("seen", "reason")}
        self.fields = {**self.fields, **starts, **last}

    def clean(self) -> dict[str, Any]:
        """Ask for the instant where one is chosen."""
        cleaned = super().clean()
        if cleaned.get("starts") == AT and not cleaned.get("starts_at") and "starts_at" not in self.errors:
            self.add_error("starts_at", "Give the instant from which it acts.")
        return cleaned

    @property
    def starts_at(self) -> datetime | None:
        """Return the instant that is chosen; None is now."""
        return self.cleaned_data["starts_at"] if self.cleaned_data["starts"] == AT else None


class EndPriceForm(ActForm):
    """Ends a price."""

    def __init__(self, *args: Any, zone: ZoneInfo, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["ends"] = _when("now")
        self.fields["ends_at"] = InstantField(zone=zone, required=False)

    def clean(self) -> dict[str, Any]:
        """Ask for the instant where one is chosen."""
        cleaned = super().clean() or {}
        if cleaned.get("ends") == AT and not cleaned.get("ends_at") and "ends_at" not in self.errors:
            self.add_error("ends_at", "Give the instant at which it ends.")
        return cleaned

    @property
    def ends_at(self) -> datetime | None:
        """Return the instant that is chosen; None is now."""
        return self.cleaned_data["ends_at"] if self.cleaned_data["ends"] == AT else None
