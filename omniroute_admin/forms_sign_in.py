"""The forms of signing in and of one's own account."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm

from omniroute_admin.common import clock
from omniroute_admin.common.client import client_address, network_of
from omniroute_admin.common.errors import BadRequest, TooManyTries
from omniroute_admin.common.forms import ReasonField
from omniroute_admin.common.known_browsers import known_browser
from omniroute_admin.common.services.own_password import require_password
from omniroute_admin.common.services.sign_in_counts import Try, begin_try, keys_of_sign_in, note_failure

_LONGEST_CODE = 40


class SignInForm(AuthenticationForm):
    """User name and password; each try is counted before it is looked at. `until` is when the next one is taken."""

    error_messages = {
        "invalid_login": "User name and password do not match. Both tell large and small letters apart.",
        "inactive": "User name and password do not match.",
    }
    taken: Try
    until: datetime | None = None

    def clean(self) -> dict[str, Any]:
        """Check both.

        Raises:
            ValidationError: they do not match, or there were too many tries; whether there is such an account is not
                told.
        """
        name, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if name is None or not password:
            return self.cleaned_data
        self._take(name)
        try:
            return super().clean()
        except forms.ValidationError:
            address = client_address(self.request)  # type: ignore[arg-type]
            note_failure(taken=self.taken, account=name, address=address, now=clock.now())
            raise

    def _take(self, name: str) -> None:
        try:
            self.taken = begin_try(keys=keys_of_request(self.request, account=name), now=clock.now())
        except TooManyTries as error:
            self.until = error.until
            raise forms.ValidationError(error.detail, code="locked") from error


def keys_of_request(request: Any, *, account: str) -> tuple[tuple[str, str], ...]:
    """Return what a try of this browser to sign in to an account counts for."""
    return keys_of_sign_in(
        account=account,
        address=network_of(client_address(request)),
        browser=known_browser(request, account=account),
    )


def code_field(**options: Any) -> forms.CharField:
    """Return the field of a code of an app, or of a recovery code."""
    attributes = {"autocomplete": "one-time-code", "inputmode": "text", "autocapitalize": "none", "spellcheck": "false"}
    return forms.CharField(label="Code", max_length=_LONGEST_CODE, widget=forms.TextInput(attrs=attributes), **options)


def password_field() -> forms.CharField:
    """Return the field of the present password."""
    widget = forms.PasswordInput(attrs={"autocomplete": "current-password"})
    return forms.CharField(label="Password", strip=False, max_length=4096, widget=widget)


class CodeForm(forms.Form):
    """A code of the second factor."""

    code = code_field()


class PasswordForm(forms.Form):
    """The password, said again."""

    password = password_field()


class PasswordAndCodeForm(PasswordForm):
    """The password and a code, said again."""

    code = code_field()


class OwnPasswordForm(PasswordChangeForm):
    """A new password of one's own; wrong old ones are counted, and lock. `until` is when the next one is taken."""

    address = ""
    until: datetime | None = None

    def clean_old_password(self) -> str:
        """Return the old password.

        Raises:
            ValidationError: it is another one, or there were too many tries.
        """
        password: str = self.cleaned_data["old_password"]
        try:
            require_password(user=self.user, password=password, address=self.address, now=clock.now())
        except BadRequest as error:
            raise forms.ValidationError(error.errors[0].detail) from error
        except TooManyTries as error:
            self.until = error.until
            raise forms.ValidationError(error.detail) from error
        return password


class AccountActForm(forms.Form):
    """What an administrator does to the sign-in of somebody's account, and why."""

    reason = ReasonField()
    subject = forms.CharField(
        label="Number at the provider",
        required=False,
        max_length=255,
        help_text="The claim “sub” of the person's ID token; the provider's own page of the person shows it.",
    )
