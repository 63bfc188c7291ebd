"""The admin of accounts: an administrator gives roles, and nothing else (SPEC 5)."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth import get_user_model
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from django.contrib.auth.models import Group
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from omniroute_admin.common import clock
from omniroute_admin.common.admin_base import REASON, OnlyRead, change_of, deciding
from omniroute_admin.common.admin_rights import ByRights
from omniroute_admin.common.core.roles import RIGHTS, ROLES, USERS_WRITE, rights_of_roles
from omniroute_admin.common.denials import note_denial
from omniroute_admin.common.errors import Forbidden
from omniroute_admin.common.history import LONGEST_REASON, stamp
from omniroute_admin.common.selectors.key_losses import live_keys_of, losses
from omniroute_admin.common.services.users import check_giving, lock_administrators, require_administrator

User = get_user_model()
_OF_WHO_CHANGES = frozenset({REASON, "keys_may_lose", "password_link"})
"""Fields that are shown to those who may change the account."""

ROLE_WORDS = {
    "viewer": "looks at everything, changes nothing",
    "operator": "tunes, pauses, clears, mutes; reads the audit",
    "curator": "edits the catalogue; reads the audit",
    "auditor": "looks at everything, the audit included; changes nothing",
    "administrator": "everything, keys and roles included",
}


class RolesField(forms.ModelMultipleChoiceField):
    """Roles as check boxes, each with what it may in words."""

    def __init__(self, **options: Any) -> None:
        """Offer the groups that are roles."""
        queryset = Group.objects.filter(name__in=ROLES).order_by("pk")
        widget = forms.CheckboxSelectMultiple
        super().__init__(queryset=queryset, widget=widget, required=False, label="Roles", **options)

    def label_from_instance(self, obj: Any) -> str:
        """Return the role with its words."""
        return f"{obj.name}: {ROLE_WORDS[obj.name]}"


class _RolesForm(forms.ModelForm):
    """Roles and a reason; refuses what its sender may not give."""

    giver: Any = None
    asked_by: Any = None
    groups = RolesField()
    change_reason = forms.CharField(label="Why", max_length=LONGEST_REASON, help_text="Goes to the history.")

    def clean(self) -> dict[str, Any]:
        """Check that nobody gives more than they have.

        Raises:
            ValidationError: somebody does.
        """
        data = super().clean() or {}
        stored = User._default_manager.filter(pk=self.instance.pk).first() or User()
        names = [group.name for group in data.get("groups", ())]
        wants = data.get("is_superuser", stored.is_superuser)
        try:
            check_giving(giver=self.giver, user=stored, roles=names, is_superuser=wants)
        except Forbidden as error:
            note_denial(self.asked_by, code=error.code)
            raise forms.ValidationError(error.detail) from error
        return data

    def clean_groups(self) -> list[Group]:
        """Return the roles chosen, with the groups that are no roles and stay."""
        others = self.instance.groups.exclude(name__in=ROLES) if self.instance.pk else ()
        return [*self.cleaned_data["groups"], *others]


class ChangeUserForm(_RolesForm, UserChangeForm):
    """What an administrator changes of an account."""

    password = None  # type: ignore[assignment] # the way to leave a field of the form above out
    keys_may_lose = forms.BooleanField(
        required=False,
        label="Keys may lose this",
        help_text="To be ticked where a change takes something from keys that this account answers for.",
    )

    def clean(self) -> dict[str, Any]:
        """Say which keys would stop or lose what, before it is done.

        Raises:
            ValidationError: some would, and nobody said that they may.
        """
        data = super().clean()
        if self.errors or data.get("keys_may_lose"):
            return data
        may = rights_of_roles(group.name for group in data["groups"]) if data["is_active"] else frozenset()
        may = RIGHTS if data["is_active"] and data.get("is_superuser", self.instance.is_superuser) else may
        lost = [one.sentence() for one in losses(maker_id=self.instance.pk, held=may, now=clock.now())]
        if lost:
            self.add_error("keys_may_lose", ["Nothing was changed. Saved, this takes from keys:", *lost])
        return data


class NewUserForm(_RolesForm, UserCreationForm):
    """What is asked of a new account."""


class NewPasswordForm(AdminPasswordChangeForm):
    """A new password of somebody else's account, and why."""

    change_reason = forms.CharField(label="Why", max_length=LONGEST_REASON, help_text="Goes to the history.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Leave out how to end a password: an account is switched off instead."""
        super().__init__(*args, **kwargs)
        self.fields.pop("usable_password", None)


admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class RoleUserAdmin(ByRights, DjangoUserAdmin):
    """Accounts: made, given roles, switched off; never deleted, as the history names them."""

    reads = USERS_WRITE
    writes = USERS_WRITE

    form = ChangeUserForm
    add_form = NewUserForm
    change_password_form = NewPasswordForm
    change_user_password_template = "admin/users/change_password.html"  # noqa: S105 - a template
    list_display = ["username", "roles_in_words", "is_active", "is_superuser", "last_login"]
    list_filter = ["is_active", "is_superuser", "groups"]
    search_fields = ["username", "email"]
    readonly_fields = ["last_login", "password_link", "sign_in_link", "keys_answered_for"]
    filter_horizontal = ()
    actions = None
    fieldsets = (
        (None, {"fields": ["username", "email", "password_link", "sign_in_link", "last_login"]}),
        ("May", {"fields": ["is_active", "groups", "is_superuser"]}),
        ("Keys", {"fields": ["keys_answered_for", "keys_may_lose"]}),
        (None, {"fields": [REASON]}),
    )
    add_fieldsets = (
        (None, {"fields": ["username", "email", "password1", "password2"]}),
        ("May", {"fields": ["groups", "is_superuser"]}),
        (None, {"fields": [REASON]}),
    )

    @admin.display(description="roles")
    def roles_in_words(self, user: Any) -> str:
        """Return the roles; a superuser is an administrator."""
        names = [group.name for group in user.groups.all()]
        return ", ".join(names) or ("superuser" if user.is_superuser else "no role")

    @admin.display(description="password")
    def password_link(self, user: Any) -> SafeString:
        """Return where a new one is set; the old one is told to nobody."""
        address = reverse(f"{self.admin_site.name}:auth_user_password_change", args=[user.pk])
        return format_html('<a href="{}">Set a new password</a>', address)

    @admin.display(description="sign-in")
    def sign_in_link(self, user: Any) -> SafeString:
        """Return where its lock, second factor, sessions and single sign-on are."""
        return format_html('<a href="{}">Lock, second factor, sessions</a>', reverse("account-of", args=[user.pk]))

    @admin.display(description="answers for")
    def keys_answered_for(self, user: Any) -> SafeString | str:
        """Return the keys that act only within what this account may."""
        keys = live_keys_of(maker_id=user.pk, now=clock.now())
        if not keys:
            return "no key"
        told = [(f"{key.name} ({key.prefix}…): {', '.join(key.granted) or 'opens nothing'}",) for key in keys]
        words = "They act only within what this account may: switched off, or without a role, it takes that from them."
        return format_html("{}<br>{}", format_html_join(mark_safe("<br>"), "{}", told), words)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the accounts with their roles."""
        return super().get_queryset(request).prefetch_related("groups")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the fields; only a superuser sees who is one."""
        hidden = set() if request.user.is_superuser else {"is_superuser"}
        hidden |= set() if obj is None or self.has_change_permission(request, obj) else _OF_WHO_CHANGES
        return [
            (name, {**options, "fields": [field for field in options["fields"] if field not in hidden]})
            for name, options in super().get_fieldsets(request, obj)
        ]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Return the form, which knows who sends it."""
        made = super().get_form(request, obj, change=change, **kwargs)
        made.giver, made.asked_by = request.user, request  # type: ignore[attr-defined]
        return made

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that a superuser's account is a superuser's to change."""
        is_above = obj is not None and obj.is_superuser and not request.user.is_superuser
        return super().has_change_permission(request, obj) and not is_above

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Tell that no account is deleted: it is switched off."""
        return False

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Add an account; refused by the role's name, before Django's own check names none."""
        self.require(request, USERS_WRITE)
        return super().add_view(request, *args, **kwargs)

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        """Add or change an account, in one transaction that moves the revision."""
        return deciding(request, lambda: super(RoleUserAdmin, self).changeform_view(request, *args, **kwargs))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save the account with who, why and when."""
        lock_administrators()
        stamp(instance=obj, **change_of(request))
        super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Save the roles; somebody who may give them has to be left."""
        super().save_related(request, form, formsets, change)
        require_administrator()

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:  # noqa: A002
        """Set a new password of an account."""
        self.require(request, USERS_WRITE)
        return deciding(request, lambda: super(RoleUserAdmin, self).user_change_password(request, id, form_url))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the account, stamped with who changes it where a form is sent."""
        found = super().get_object(request, object_id, from_field)
        if found is not None and request.method == "POST":
            stamp(instance=found, **change_of(request))
        return found

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """Lead to the account's part of the one history."""
        found = self.get_object(request, object_id)
        self.require(request, USERS_WRITE)
        if found is None:
            messages.info(request, "There is no such account.")
            return redirect("audit")
        return redirect(f"{reverse('audit')}?{urlencode({'kind': 'user', 'what': found.get_username()})}")


@admin.register(Group)
class RoleAdmin(OnlyRead):
    """Roles: what each may is the product's, so they are only looked at."""

    reads = USERS_WRITE
    list_display = ["name", "may"]
    search_fields = ["name"]
    fields = ["name", "may"]
    readonly_fields = ["name", "may"]

    @admin.display(description="may")
    def may(self, group: Any) -> str:
        """Return the rights of the role."""
        return ", ".join(sorted(rights_of_roles([group.name]))) or "nothing: it is no role"
