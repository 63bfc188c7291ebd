"""The form of the tuning page: every field checked alone, so that all that is wrong is told at once (SPEC 5, 3)."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django import forms
from django.http import QueryDict

from ladder.choices import PERIOD_CHOICES, WEEKDAY_CHOICES
from ladder.selectors.tuning import NO_LIMIT, OFF, Texts
from ladder.services.settings import zone_names
from omniroute_admin.common.core.numbers import decimal_text
from omniroute_admin.common.forms import ActForm

AMOUNT = "amount"
BUDGETS = ("cheap", "premium")
LABELS: Mapping[str, str] = {
    "exit_cutoff_percent": "Exit cutoff",
    "reentry_min_remaining_percent": "Re-entry floor",
    "max_reading_age_seconds": "Maximum age of a reading",
    **{
        f"{rung}_{name}": f"{words} of {rung}"
        for rung in BUDGETS
        for name, words in (
            ("amount", "Budget"),
            ("period", "Window"),
            ("week_starts_on", "First day of the week"),
            ("zone", "Zone"),
        )
    },
    "tier_free": "free up to",
    "tier_cheap": "cheap up to",
}
"""Every setting of the page, in its order, as people call it."""

_NUMBER = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)")
_LONGEST_NUMBER = 40
_EMPTY_AMOUNT = "Write an amount, or choose No limit or Off: an empty amount is neither."
_ZERO_AMOUNT = "An amount of 0 would close the rung: choose Off for that."
_UNCHOSEN_AMOUNT = "An amount is written, but {kind} is chosen. Choose Amount, or empty it."
_TIERS_OUT_OF_ORDER = "The threshold of cheap is not below that of free."


class NumberField(forms.CharField):
    """An exact number between two bounds, with a point before its decimals; its value is the shortest text of it."""

    def __init__(self, *, most: str, places: int, least: str = "0", **options: Any) -> None:
        super().__init__(**{"error_messages": {"required": "Write a number."}} | options)
        self.least, self.most, self.places = Decimal(least), Decimal(most), places

    def clean(self, value: Any) -> str:
        """Return the number as text.

        Raises:
            ValidationError: it is none, is out of bounds, or has more decimals than are kept.
        """
        text = str(super().clean(value))
        return decimal_text(self._checked(text)) if text else ""

    def _checked(self, text: str) -> Decimal:
        if "," in text:
            raise forms.ValidationError("Write decimals with a point, as in 2.5, and no mark between thousands.")
        if not _NUMBER.fullmatch(text) or len(text) > _LONGEST_NUMBER:
            raise forms.ValidationError(f"Write the number alone, as in {'2.5' if self.places else '180'}.")
        number = Decimal(text)
        if not self.least <= number <= self.most:
            raise forms.ValidationError(f"Write a number from {self.least} to {self.most:,}.")
        if number != round(number, self.places):
            raise forms.ValidationError(
                f"At most {self.places} decimals are kept." if self.places else "Write whole seconds."
            )
        return number


class ZoneField(forms.CharField):
    """An IANA zone, however its letters are cased (M3)."""

    def clean(self, value: Any) -> str:
        """Return the zone as it is spelled.

        Raises:
            ValidationError: there is no such zone.
        """
        text = str(super().clean(value))
        known = {name.casefold(): name for name in zone_names()}
        if text.casefold() not in known:
            raise forms.ValidationError("Choose an IANA zone, as in Europe/Berlin.")
        return known[text.casefold()]


def _percent() -> NumberField:
    return NumberField(most="100", places=8)


def _usd(**options: Any) -> NumberField:
    return NumberField(most="999999999", places=6, **options)


def _word(choices: list[tuple[str, str]]) -> forms.ChoiceField:
    words = ", ".join(word for word, _ in choices)
    messages = {"required": f"Choose one of: {words}.", "invalid_choice": f"Choose one of: {words}."}
    return forms.ChoiceField(choices=choices, error_messages=messages)


_KINDS = [(AMOUNT, "Amount"), (NO_LIMIT, "No limit"), (OFF, "Off")]


class SettingsForm(forms.Form):
    """Every setting that an operator tunes. A budget is one of three kinds, and its amount counts only for one (M1)."""

    exit_cutoff_percent = _percent()
    reentry_min_remaining_percent = _percent()
    max_reading_age_seconds = NumberField(least="10", most="3600", places=0)
    cheap_kind = _word(_KINDS)
    cheap_amount = _usd(required=False)
    cheap_period = _word(PERIOD_CHOICES)
    cheap_week_starts_on = _word(WEEKDAY_CHOICES)
    cheap_zone = ZoneField(error_messages={"required": "Choose an IANA zone, as in Europe/Berlin."})
    premium_kind = _word(_KINDS)
    premium_amount = _usd(required=False)
    premium_period = _word(PERIOD_CHOICES)
    premium_week_starts_on = _word(WEEKDAY_CHOICES)
    premium_zone = ZoneField(error_messages={"required": "Choose an IANA zone, as in Europe/Berlin."})
    tier_free = _usd()
    tier_cheap = _usd()

    def __init__(self, *args: Any, began: Texts | None = None, **options: Any) -> None:
        """Take what was sent, and `began`: the settings that the page showed first, where that is known."""
        super().__init__(*args, **options)
        self._began = began or {}

    def clean(self) -> dict[str, Any]:
        """Join each budget's kind and amount, and check the thresholds against each other."""
        for rung in BUDGETS:
            self._join_amount(rung)
        free, cheap = self.cleaned_data.get("tier_free"), self.cleaned_data.get("tier_cheap")
        if free and cheap and Decimal(cheap) < Decimal(free):
            self.add_error("tier_cheap", _TIERS_OUT_OF_ORDER)
        return self.cleaned_data

    def _join_amount(self, rung: str) -> None:
        kind, name = self.cleaned_data.get(f"{rung}_kind"), f"{rung}_amount"
        if kind in {OFF, NO_LIMIT} and kind == self._began.get(name) and self[name].value():
            # The amount was written and its kind left as it was: read as not meant, a limit would be missing unnoticed.
            self.errors.pop(name, None)
            self.add_error(name, _UNCHOSEN_AMOUNT.format(kind=dict(_KINDS)[kind]))
        elif kind in {OFF, NO_LIMIT}:
            # What stands in the field of another kind is not meant, so it cannot be wrong either.
            self.errors.pop(name, None)
            self.cleaned_data[name] = kind
        elif kind is None:
            self.cleaned_data.pop(name, None)
        elif name not in self.errors and self.cleaned_data.get(name) in {"", "0"}:
            self.add_error(name, _ZERO_AMOUNT if self.cleaned_data[name] else _EMPTY_AMOUNT)

    def texts(self) -> dict[str, str]:
        """Return every setting that is right, as text; those that are wrong are left out."""
        return {name: self.cleaned_data[name] for name in LABELS if name in self.cleaned_data}

    def problems(self) -> dict[str, str]:
        """Return what is wrong by setting, the kind of a budget told as its amount."""
        told: dict[str, str] = {}
        for name, errors in self.errors.items():
            setting = name.replace("_kind", "_amount")
            if setting in LABELS:
                told.setdefault(setting, " ".join(str(error) for error in errors))
        return told


class TuningForm(SettingsForm, ActForm):
    """The settings, why they change, and what was seen of them when the page was opened."""


def inputs_of(texts: Texts) -> dict[str, str]:
    """Return the values of the form's inputs for settings given as texts."""
    inputs = dict(texts)
    for rung in BUDGETS:
        amount = inputs.get(f"{rung}_amount")
        if amount is not None:
            is_amount = amount not in {OFF, NO_LIMIT}
            inputs[f"{rung}_kind"] = AMOUNT if is_amount else amount
            inputs[f"{rung}_amount"] = amount if is_amount else ""
    return inputs


def with_theirs(data: QueryDict, seen: Texts) -> QueryDict:
    """Return what was sent with the stored value wherever the sender chose to keep the other person's (SPEC 5, 3)."""
    theirs = {name: seen[name] for name in LABELS if name in seen and data.get(f"keep_{name}") == "theirs"}
    return with_inputs(data, theirs)


def with_inputs(data: QueryDict, texts: Texts) -> QueryDict:
    """Return what was sent with some settings replaced."""
    copy = data.copy()
    for name, value in inputs_of(texts).items():
        copy[name] = value
    return copy
