"""Forms of the connection pages: each act asks why, and carries what was seen (SPEC 5, 2)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone

from billing_catalog.core.values import Overage
from ladder.selectors.form_values import percent_number
from omniroute_admin.common.forms import ActForm, ReasonField

OWN, OF_SETTINGS = "own", "settings"
ALL = ""
_OVERRIDES = [("", "none: what the catalogue says counts"), *((word.value, word.value) for word in Overage)]
_COMMA = "Write the decimals after a point, as in 2.5."
_LONGEST_LIST = 10_000
_LONGEST_CHOICE = 200


class ActFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the forms of a connection offer: its windows, the cooldowns that act, and the zone that times are told in.

    `windows` are (name, is_muted, own cutoff as text); `cooldowns` (key, words).
    """

    zone: ZoneInfo
    windows: Sequence[tuple[str, bool, str]] = ()
    cooldowns: Sequence[tuple[str, str]] = ()
    is_noauth: bool = False
    exit_cutoff: str = ""
    chosen_window: str = ""

    def window_choices(self, *, muted: bool | None = None) -> list[tuple[str, str]]:
        """Return the windows as choices; those that are muted, or are not, where that is said."""
        return [(name, name) for name, is_muted, _ in self.windows if muted in {None, is_muted}]


class ConnectionAct(ActForm):
    """A form of one act on one connection."""

    def __init__(self, *args: Any, facts: ActFacts, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.facts = facts
        self.offer(facts)
        # The reason is asked last, whatever else is.
        self.order_fields([name for name in self.fields if name != "reason"])

    def offer(self, facts: ActFacts) -> None:
        """Put what there is to choose into the fields."""


class PauseForm(ConnectionAct):
    """Asks only why."""


class _OfferedField(forms.ChoiceField):
    """Offers what there is to choose now, and takes what was there when the form was opened: the act looks again."""

    def valid_value(self, value: Any) -> bool:
        """Tell whether it can be a choice at all: whether it is one, the act tells."""
        return len(str(value)) <= _LONGEST_CHOICE and "\x00" not in str(value)


class ClearCooldownForm(ConnectionAct):
    """Which cooldowns to clear: every one that was seen, or one."""

    cooldown = _OfferedField(label="Which", required=False)

    def offer(self, facts: ActFacts) -> None:
        """Offer every cooldown; where there is one, nothing is to choose."""
        field = self.fields["cooldown"]
        field.choices = [(ALL, f"all {len(facts.cooldowns)}"), *facts.cooldowns]  # type: ignore[attr-defined]
        if len(facts.cooldowns) <= 1:
            field.widget = forms.HiddenInput()

    def chosen(self) -> list[str]:
        """Return the keys of the cooldowns that are meant: of those that were seen."""
        seen = [key for key in self.cleaned_data["seen"] if key.isdecimal()]
        one = self.cleaned_data.get("cooldown", ALL)
        return [key for key in seen if one in {ALL, key}]


class _ZonedTimeField(forms.DateTimeField):
    """An instant, written as a clock of the display zone shows it."""

    zone: ZoneInfo = ZoneInfo("UTC")

    def to_python(self, value: Any) -> datetime | None:
        """Return the instant in UTC.

        Raises:
            ValidationError: it is none, or the zone skipped it or had it twice.
        """
        with timezone.override(self.zone):
            local = super().to_python(value)
        try:
            return None if local is None else local.astimezone(UTC)
        except OverflowError:
            raise ValidationError("That is beyond the calendar.") from None


class MarkExhaustedForm(ConnectionAct):
    """Which window is used up, and until when where that is known."""

    window = forms.ChoiceField(label="Window", required=False)
    reset_at = _ZonedTimeField(
        label="Resets at",
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def offer(self, facts: ActFacts) -> None:
        """Offer all windows that count, or one."""
        window, reset_at = self.fields["window"], self.fields["reset_at"]
        every = "all that count" if facts.windows else "by hand: it has no window yet"
        window.choices = [(ALL, every), *facts.window_choices()]  # type: ignore[attr-defined]
        window.initial = facts.chosen_window
        reset_at.zone = facts.zone  # type: ignore[attr-defined]
        reset_at.help_text = f"In {facts.zone.key}. Left empty: the reset that is known."


class MuteForm(ConnectionAct):
    """Which window is not to count."""

    window = _OfferedField(label="Window")
    is_muted = False

    def offer(self, facts: ActFacts) -> None:
        """Offer the windows that this changes."""
        self.fields["window"].choices = facts.window_choices(muted=self.is_muted)  # type: ignore[attr-defined]
        self.fields["window"].initial = facts.chosen_window


class UnmuteForm(MuteForm):
    """Which window is to count again."""

    is_muted = True


class CutoffForm(ConnectionAct):
    """A window's own cutoff, in percent left, or that of the settings (Q7)."""

    window = forms.ChoiceField(label="Window")
    kind = forms.ChoiceField(label="Out at or below", widget=forms.RadioSelect)
    exit_cutoff_percent = forms.DecimalField(
        label="Percent left",
        required=False,
        min_value=Decimal(0),
        max_value=Decimal(100),
        max_digits=11,
        decimal_places=8,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )

    def offer(self, facts: ActFacts) -> None:
        """Offer every window, with the cutoff that the chosen one has."""
        choices = [(name, f"{name} (now {cutoff} %)" if cutoff else name) for name, _, cutoff in facts.windows]
        self.fields["window"].choices = choices  # type: ignore[attr-defined]
        self.fields["window"].initial = facts.chosen_window
        own = {name: cutoff for name, _, cutoff in facts.windows}.get(facts.chosen_window, "")
        kinds = [
            (OWN, "a percentage of its own"),
            (OF_SETTINGS, f"the exit cutoff of the settings, {facts.exit_cutoff}"),
        ]
        self.fields["kind"].choices = kinds  # type: ignore[attr-defined]
        self.fields["kind"].initial = OWN
        self.fields["exit_cutoff_percent"].initial = own

    def clean(self) -> dict[str, Any]:
        """Check that a percentage is given exactly where it is meant: an empty field means nothing (SPEC 5)."""
        values = super().clean() or {}
        raw = str(self.data.get(self.add_prefix("exit_cutoff_percent"), ""))
        if values.get("kind") == OWN and "," in raw:
            self.errors.pop("exit_cutoff_percent", None)
            self.add_error("exit_cutoff_percent", _COMMA)
        elif values.get("kind") == OWN and not raw.strip():
            self.add_error("exit_cutoff_percent", "Give a percentage from 0 to 100, or choose that of the settings.")
        elif values.get("kind") == OF_SETTINGS:
            self.errors.pop("exit_cutoff_percent", None)
        return values

    def cutoff(self) -> str:
        """Return the percentage as text; empty: that of the settings."""
        is_own = self.cleaned_data["kind"] == OWN
        return percent_number(self.cleaned_data["exit_cutoff_percent"]) if is_own else ""


class OverrideForm(ConnectionAct):
    """What happens past the plan's allowance, where the account differs from the catalogue (B4)."""

    overage_override = forms.ChoiceField(label="Overage", choices=_OVERRIDES, required=False)


def _globs(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


class _GlobsField(forms.CharField):
    """One glob a line; comes out without blanks and empty lines."""

    def __init__(self, **options: Any) -> None:
        defaults: dict[str, Any] = {
            "label": "Excluded models",
            "required": False,
            "max_length": _LONGEST_LIST,
            "widget": forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
            "help_text": "One glob a line, as in *opus*; * stands for any run of characters.",
        }
        super().__init__(**defaults | options)

    def clean(self, value: Any) -> str:
        """Return the globs, one a line."""
        return "\n".join(_globs(super().clean(value)))


def _label() -> forms.CharField:
    return forms.CharField(label="Label", required=False, max_length=200, widget=forms.TextInput(attrs={"dir": "auto"}))


def _auth_type() -> forms.CharField:
    return forms.CharField(
        label="Auth type",
        required=False,
        max_length=32,
        help_text="oauth, apikey, cookie, ... It decides which row of the catalogue counts; empty: not known.",
    )


class EditForm(ConnectionAct):
    """What a connection is called, how it signs in, and which models it must not serve."""

    label = _label()
    auth_type = _auth_type()
    excluded_models = _GlobsField()

    def offer(self, facts: ActFacts) -> None:
        """Leave the auth type out where it is fixed: noauth has none (SPEC 1)."""
        if facts.is_noauth:
            del self.fields["auth_type"]

    def clean_auth_type(self) -> str:
        """Return the canonical name, so that case and blanks make no change."""
        return str(self.cleaned_data["auth_type"]).strip().lower()


class DeleteForm(ConnectionAct):
    """Asks only why."""


class AddConnectionForm(forms.Form):
    """A new connection. No credential is asked for, or stored (SPEC 1)."""

    provider = forms.CharField(
        label="Provider", max_length=128, help_text="Its id, as in claude; an alias becomes the provider it means."
    )
    connection_id = forms.CharField(
        label="Connection id",
        max_length=128,
        help_text="As the router names it: letters, digits and ._:@+- ; noauth is the keyless path.",
    )
    auth_type = _auth_type()
    label = _label()
    excluded_models = _GlobsField()
    reason = ReasonField()

    def clean_auth_type(self) -> str | None:
        """Return the auth type, None where none is given (B3)."""
        return str(self.cleaned_data["auth_type"]).strip().lower() or None

    def clean_excluded_models(self) -> list[str]:
        """Return the globs as a list."""
        return _globs(self.cleaned_data["excluded_models"])
