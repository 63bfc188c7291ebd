"""Rows of signing in: sessions, tries, second factors, and who somebody is at the provider of single sign-on."""

from typing import Any

from django.conf import settings
from django.contrib.sessions.base_session import AbstractBaseSession
from django.db import models

from omniroute_admin.common.constraints import unique


class Session(AbstractBaseSession):
    """A browser that is signed in, or about to be (no user yet); found by its user, so that all of theirs can be ended.

    `signed_in_at` is when, `seen_at` when somebody last did something (a page that renews itself is nobody).
    """

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="+", db_constraint=False
    )
    signed_in_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    way = models.CharField(max_length=20, default="")
    address = models.CharField(max_length=45, default="")
    agent = models.CharField(max_length=200, default="", help_text="What the browser says it is.")

    class Meta(AbstractBaseSession.Meta):
        verbose_name = "session"
        verbose_name_plural = "sessions"

    @classmethod
    def get_session_store_class(cls) -> Any:
        """Return the store that keeps its sessions here."""
        from omniroute_admin.common.sessions import SessionStore

        return SessionStore


class SignInCount(models.Model):
    """Failed tries to sign in, for an account's name, an address, a known browser or an open session.

    The name is kept as a keyed hash: people type passwords where their name belongs.
    """

    kind = models.CharField(max_length=10)
    name = models.CharField(max_length=64)
    tries = models.IntegerField(default=0)
    began_at = models.DateTimeField(db_index=True)
    locked_until = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            unique(name="sign_in_count_is_one", fields=["kind", "name"], words="There is one count of each."),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.tries} since {self.began_at:%Y-%m-%d %H:%M:%S}"


class SecondFactor(models.Model):
    """An app that makes codes for a local account. Until `confirmed_at` it is only being set up and asked of nobody.

    `secret_box` is its secret, encrypted; `last_step` the time step of the last code taken, so that none counts twice.
    """

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="second_factor")
    secret_box = models.TextField()
    made_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    last_step = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"second factor of account {self.user_id}"


class RecoveryCode(models.Model):
    """One code that stands in once for a lost app, kept as a hash."""

    factor = models.ForeignKey(SecondFactor, on_delete=models.CASCADE, related_name="recovery_codes")
    code_hash = models.CharField(max_length=64)
    used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            unique(name="recovery_code_is_one", fields=["factor", "code_hash"], words="There is one code of each."),
        ]

    def __str__(self) -> str:
        return f"recovery code {self.pk} of account {self.factor_id}"


class OidcIdentity(models.Model):
    """Who an account is at a provider: its number there. Nothing else links the two, no mail address least of all."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="oidc_identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    made_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["issuer", "subject"]
        constraints = [
            unique(
                name="oidc_identity_is_one",
                fields=["issuer", "subject"],
                words="That number at the provider belongs to an account already.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"
