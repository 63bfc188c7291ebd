"""The forms of rules of alerts: every field checked alone, so that all that is wrong is told at once."""

from collections.abc import Mapping, Sequence
from datetime import time
from typing import Any

from django import forms

from ladder.core.alerts.rules import EACH, IN_USE, UNITS, AlertKind
from ladder.forms.tuning import ZoneField
from ladder.models.alerts import LONGEST_HOLD, AlertRule
from ladder.services.alert_rules import SUBJECTS
from omniroute_admin.common.forms import ActForm, ReasonField

KIND_WORDS: Mapping[AlertKind, tuple[str, str]] = {
    AlertKind.RUNG_EXHAUSTED: ("A rung is exhausted", "none of its connections would be tried; off is not exhausted"),
    AlertKind.POOL_EMPTY: ("A pool is empty", "as auto/subscription when no plan is verified usable"),
    AlertKind.PAID_SERVING: ("A paid rung serves", "auto/thrifty has nothing below cheap or premium"),
    AlertKind.BUDGET: ("A budget is spent to N %", "what was spent in the present window; holds do not count"),
    AlertKind.NO_READINGS: ("No readings for N minutes", "from the plans together, from each, or from one connection"),
    AlertKind.UNREVIEWED: ("A billing entry is unreviewed for N days", "plans change how they bill"),
    AlertKind.OVERAGE: ("A plan bills past its allowance", "real money, in no budget, within the last N hours"),
}
"""Each kind in words, and what it means."""

ANY = {
    AlertKind.RUNG_EXHAUSTED: "every rung, each alone",
    AlertKind.PAID_SERVING: "cheap or premium, each alone",
    AlertKind.BUDGET: "both budgets, each alone",
}
SUBJECT_HELP = {
    AlertKind.NO_READINGS: f"Empty: from everybody together. {EACH}: each connection alone. Or one, as in claude/c1.",
    AlertKind.UNREVIEWED: f"Empty: every entry. “{IN_USE}”: those that decide a connection. Or a provider.",
    AlertKind.OVERAGE: "Empty: each connection alone. Or one, as in claude/c1.",
}
DAY_CHOICES = [(day, day[:3].capitalize()) for day in (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)]  # fmt: skip


class RuleForm(ActForm):
    """A rule of one kind. What it saw (`seen`) is when the rule was last changed, nothing for a new one."""

    name = forms.CharField(max_length=100)
    subject = forms.CharField(label="About", required=False, max_length=257)
    threshold = forms.IntegerField(label="N")
    channels = forms.MultipleChoiceField(
        label="Channels", required=False, widget=forms.CheckboxSelectMultiple,
        help_text="None: the alert is only on this page.",
    )  # fmt: skip
    for_seconds = forms.IntegerField(
        label="Counts after", min_value=0, max_value=LONGEST_HOLD, initial=0,
        help_text="Seconds that a change must last, beginning and end alike; 0: at once.",
    )  # fmt: skip
    quiet_from = forms.TimeField(label="Quiet from", required=False, widget=forms.TimeInput(attrs={"type": "time"}))
    quiet_to = forms.TimeField(label="to", required=False, widget=forms.TimeInput(attrs={"type": "time"}))
    quiet_zone = ZoneField(label="Zone", max_length=64)
    quiet_days = forms.MultipleChoiceField(
        label="On", required=False, choices=DAY_CHOICES, widget=forms.CheckboxSelectMultiple,
        help_text="The days on which the quiet hours begin; none: every day.",
    )  # fmt: skip

    def __init__(self, *args: Any, kind: AlertKind, channels: Sequence[tuple[str, str]], **kwargs: Any) -> None:
        """Ask what the kind needs; `channels` are those to choose from, with words."""
        super().__init__(*args, **kwargs)
        self.kind = kind
        self.fields["channels"].choices = channels  # type: ignore[attr-defined]
        self._ask_subject(kind)
        unit = UNITS.get(kind)
        if unit is None:
            del self.fields["threshold"]
        else:
            self.fields["threshold"] = forms.IntegerField(
                label=f"N, {unit.word}", min_value=unit.least, max_value=unit.most, initial=unit.usual
            )

    def _ask_subject(self, kind: AlertKind) -> None:
        known = SUBJECTS.get(kind)
        if known is None:
            self.fields["subject"].help_text = SUBJECT_HELP[kind]
            return
        choices = [(word, word or ANY[kind]) for word in known]
        self.fields["subject"] = forms.ChoiceField(label="About", choices=choices, required="" not in known)

    def clean_name(self) -> str:
        """Return the name.

        Raises:
            ValidationError: it has signs that cannot be shown.
        """
        name: str = self.cleaned_data["name"]
        if not name.isprintable():
            raise forms.ValidationError("A name is printable characters in one line.")
        return name

    def clean(self) -> dict[str, Any]:
        """Check that quiet hours have both ends."""
        data = super().clean() or {}
        ends = [data.get("quiet_from"), data.get("quiet_to")]
        if ends.count(None) == 1 and not {"quiet_from", "quiet_to"} & set(self.errors):
            self.add_error("quiet_to", "Quiet hours have a beginning and an end: give both, or neither.")
        return data

    def values(self) -> dict[str, Any]:
        """Return what the rule is to be."""
        data = {name: value for name, value in self.cleaned_data.items() if name not in {"seen", "reason"}}
        return {"threshold": None} | data


def values_of(rule: AlertRule) -> dict[str, Any]:
    """Return a rule as the form shows it."""

    def clock(at: time | None) -> str:
        return "" if at is None else f"{at:%H:%M}"

    names = ("name", "subject", "threshold", "channels", "for_seconds", "quiet_zone", "quiet_days")
    shown = {name: getattr(rule, name) for name in names}
    return shown | {"quiet_from": clock(rule.quiet_from), "quiet_to": clock(rule.quiet_to)}


class UsualForm(forms.Form):
    """Which channel the usual rules use, and why they are made."""

    channel = forms.ChoiceField(label="Channel", required=False)
    reason = ReasonField()

    def __init__(self, *args: Any, channels: Sequence[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["channel"].choices = [*channels, ("", "none: only on this page")]  # type: ignore[attr-defined]
        self.fields["channel"].initial = channels[0][0] if channels else ""


class WhyForm(forms.Form):
    """Why a rule is paused, goes on, or is deleted."""

    reason = ReasonField()
