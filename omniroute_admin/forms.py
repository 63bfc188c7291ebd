"""The forms of the page of keys (SPEC 5, 8)."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms

from omniroute_admin.common.core.keys import MOST_CALLS_PER_MINUTE, MOST_OVERLAP
from omniroute_admin.common.forms import ActForm, ReasonField, seen_text
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.scopes import SCOPES
from omniroute_admin.common.selectors.key_list import seen_of_key
from omniroute_admin.common.sent import LONGEST_FORM_NAME, new_form_name

SCOPE_WORDS = {
    "pools:read": "ask for pools, evaluate, read the ladder: what a router needs",
    "telemetry:write": "report readings, usage, refusals and breakers, reserve money: what a router needs",
    "connections:read": "read connections, their windows and why they are in or out",
    "connections:write": "store, change, pause and delete connections, mute windows, clear cooldowns",
    "catalog:read": "read billing entries, prices, tiers and aliases",
    "catalog:write": "change the catalogue: what is a plan, what is free, what costs money",
    "settings:read": "read the settings and budgets",
    "settings:write": "change cutoffs and budgets, and reset a budget",
    "metrics:read": "read /metrics, for Prometheus",
}
"""What each scope opens, in words."""

NEVER, UNTIL, KEEP = "never", "until", "keep"
LASTS = (("30", "30 days"), ("90", "90 days"), ("365", "1 year"), (UNTIL, "until"), (NEVER, "no expiry"))
MOST_OVERLAP_HOURS = MOST_OVERLAP // timedelta(hours=1)


class _KeyForm(forms.Form):
    """What can be said of a key."""

    name = forms.CharField(max_length=100, help_text="Who will hold it, as in: router in the cellar.")
    scopes = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one: a key without a scope opens nothing."},
    )
    calls_per_minute = forms.IntegerField(
        label="Calls a minute",
        required=False,
        min_value=1,
        max_value=MOST_CALLS_PER_MINUTE,
        widget=forms.NumberInput(attrs={"placeholder": "no limit"}),
        help_text="Empty: no limit. Beyond it a call is answered 429 until the next minute.",
    )
    lasts = forms.ChoiceField(label="It lasts", choices=LASTS, initial="90", widget=forms.RadioSelect)
    until = forms.CharField(
        label="Until", required=False, max_length=40, widget=forms.DateTimeInput(attrs={"type": "datetime-local"})
    )
    reason = ReasonField()

    def __init__(self, *args: Any, rights: Iterable[str], zone: ZoneInfo, now: datetime, **kwargs: Any) -> None:
        """Offer the scopes among the maker's own rights; times are of `zone`."""
        super().__init__(*args, **kwargs)
        self._zone, self._now = zone, now
        held = frozenset(rights)
        choices = [(scope, SCOPE_WORDS[scope]) for scope in SCOPES if scope in held]
        self.fields["scopes"].choices = choices  # type: ignore[attr-defined]

    @property
    def scope_rows(self) -> Iterator[tuple[str, str, bool]]:
        """Yield each scope with its words, and whether it is chosen."""
        chosen = self["scopes"].value() or []
        for scope, words in self.fields["scopes"].choices:  # type: ignore[attr-defined]
            yield scope, words, scope in chosen

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
        """Work out `expires_at`: an aware UTC instant, or None for never."""
        data = super().clean() or {}
        lasts = data.get("lasts")
        if lasts is not None:
            data["expires_at"] = self._expiry(lasts, data.get("until", ""))
        return data

    def _expiry(self, lasts: str, until: str) -> datetime | None:
        if lasts == UNTIL:
            return self._instant(until)
        return None if lasts == NEVER else self._now + timedelta(days=int(lasts))

    def _instant(self, text: str) -> datetime | None:
        try:
            at = datetime.fromisoformat(text)
            at = (at if at.tzinfo else at.replace(tzinfo=self._zone)).astimezone(UTC)
        except (ValueError, OverflowError):
            self.add_error("until", f"Give a day and a time, in {self._zone.key}.")
            return None
        if at <= self._now:
            self.add_error("until", "This has passed already; an expiry lies ahead.")
        return at


class NewKeyForm(_KeyForm):
    """What is asked of a new key. Sent again it makes no second one."""

    form_name = forms.CharField(widget=forms.HiddenInput, max_length=LONGEST_FORM_NAME, initial=new_form_name)


class EditKeyForm(ActForm, _KeyForm):
    """What is changed of a key."""

    lasts = forms.ChoiceField(
        label="It lasts", choices=((KEEP, "as it is"), *LASTS), initial=KEEP, widget=forms.RadioSelect
    )

    def __init__(self, *args: Any, key: ApiKey, **kwargs: Any) -> None:
        """Show the key as it is."""
        shown = {"name": key.name, "scopes": key.scopes, "calls_per_minute": key.calls_per_minute}
        super().__init__(*args, initial={**shown, "seen": seen_text(seen_of_key(key))}, **kwargs)
        self._expires_at = key.expires_at

    def _expiry(self, lasts: str, until: str) -> datetime | None:
        return self._expires_at if lasts == KEEP else super()._expiry(lasts, until)


class RotateForm(forms.Form):
    """How long the old key goes on, and why. Sent again it makes no second one."""

    form_name = forms.CharField(widget=forms.HiddenInput, max_length=LONGEST_FORM_NAME, initial=new_form_name)
    overlap = forms.IntegerField(
        label="The old key goes on for",
        initial=24,
        min_value=0,
        max_value=MOST_OVERLAP_HOURS,
        help_text=f"Hours, 0 to {MOST_OVERLAP_HOURS}; 0 ends it at once. It never goes on longer than its own expiry.",
    )
    anyway = forms.BooleanField(required=False, label="Rotate it all the same")
    reason = ReasonField()


class RevokeForm(forms.Form):
    """Why a key is revoked."""

    reason = ReasonField()
