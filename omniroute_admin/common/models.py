"""Rows that both apps stand on: the revision, API keys, heartbeats."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from omniroute_admin.common.constraints import check
from omniroute_admin.common.core.keys import MOST_CALLS_PER_MINUTE
from omniroute_admin.common.fields import TextListField
from omniroute_admin.common.history import HistoryBase, history


class Revision(models.Model):
    """The one counter that grows with every committed change that can alter a decision or a permission (SPEC 3).

    One row, id 1, made by the first migration. `shown` grows with every commit that moves no decision, yet changes what
    screens show beyond them (spend so far): their token.
    """

    value = models.BigIntegerField(default=1)
    shown = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            check(
                condition=Q(id=1),
                name="revision_is_one_row",
                fields=["id"],
                words="There is one revision.",
            )
        ]

    def __str__(self) -> str:
        return str(self.value)


class RevisionStep(models.Model):
    """What one step of the revision touched, so that a process renews only that part of what it prepared.

    `rows` are the keys, with commas between, of the connections beside whose own state nothing changed; null is
    "anything may have". Steps are kept for as long as a process may be behind; where one is missing, everything is read
    again.
    """

    revision = models.BigIntegerField(primary_key=True)
    rows = models.TextField(null=True)

    def __str__(self) -> str:
        return f"{self.revision}: {'anything' if self.rows is None else self.rows}"


class ApiKey(models.Model):
    """A key a router or tool calls the API with: shown once, kept as a hash (SPEC 4)."""

    name = models.CharField(max_length=100)
    prefix = models.CharField(max_length=16, help_text="The first characters, to tell keys apart; no secret.")
    secret_hash = models.CharField(max_length=64, unique=True, editable=False)
    scopes = TextListField(help_text="What was asked for the key, as in pools:read.")
    granted = TextListField(editable=False, help_text="What it may now: of the scopes those that its maker has.")
    calls_per_minute = models.PositiveIntegerField(null=True, blank=True, help_text="Empty: no limit.")
    created_at = models.DateTimeField()
    made_by = models.CharField(max_length=200, blank=True, default="")
    # No constraint: the number of a deleted account stays, and gives nothing.
    maker = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        null=True,
        editable=False,
        related_name="+",
        db_constraint=False,
        help_text="Whose rights bound it; empty: made by a command, which is trusted.",
    )
    expires_at = models.DateTimeField(null=True, blank=True, help_text="Empty: never.")
    revoked_at = models.DateTimeField(null=True, blank=True)
    replaced_by = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, editable=False, related_name="+")
    replaced_until = models.DateTimeField(null=True, editable=False, help_text="The end of it, once it was rotated.")
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    history = history(excluded_fields=["secret_hash", "last_used_at"])

    class Meta:
        ordering = ["-created_at", "-id"]
        verbose_name = "API key"
        constraints = [
            check(
                condition=~Q(name=""),
                name="key_has_name",
                fields=["name"],
                words="Give the key a name.",
            ),
            check(
                condition=~Q(secret_hash=""),
                name="key_has_hash",
                fields=["secret_hash"],
                words="A key is kept as a hash.",
            ),
            check(
                condition=Q(calls_per_minute=None)
                | Q(calls_per_minute__gte=1, calls_per_minute__lte=MOST_CALLS_PER_MINUTE),
                name="key_limit_is_in_range",
                fields=["calls_per_minute"],
                words=f"A limit is 1 to {MOST_CALLS_PER_MINUTE} calls a minute, or none.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"


class KeyAllowance(models.Model):
    """How many calls of a minute were handed out to the processes that answer them, of a key with a limit.

    `minute` counts whole minutes since 1970, `leased` is what the last process was handed.
    """

    key = models.OneToOneField(ApiKey, on_delete=models.CASCADE, primary_key=True, db_constraint=False)
    minute = models.BigIntegerField()
    taken = models.PositiveIntegerField()
    leased = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"key {self.key_id}: {self.taken} in minute {self.minute}"


class Heartbeat(models.Model):
    """When a periodic process was last seen, so that a dead one is noticed."""

    name = models.CharField(max_length=50, unique=True)
    beat_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} at {self.beat_at:%Y-%m-%d %H:%M:%S}"


class TaskRun(models.Model):
    """How a periodic task last ended, so that one that fails, or is no longer run, is noticed."""

    name = models.CharField(max_length=100, unique=True)
    succeeded_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failures = models.PositiveBigIntegerField(default=0)
    took_milliseconds = models.PositiveBigIntegerField(default=0, help_text="Of the last run.")

    def __str__(self) -> str:
        return self.name


class Horizon(models.Model):
    """How far back what is kept has been pruned: of `name`, what is older than `before` was removed, or may be.

    It only ever moves forward, in the transaction that removes, or before it, and never by the clock alone: so a period
    that is lengthened, or a clock that is set back, brings nothing back to where it was taken from.
    """

    name = models.CharField(max_length=40, primary_key=True)
    before = models.DateTimeField()
    moved_at = models.DateTimeField(help_text="When it was last moved, or something older last removed.")
    removed = models.BigIntegerField(default=0, help_text="How many rows were removed in all.")

    class Meta:
        ordering = ["name"]
        constraints = [
            check(
                condition=Q(removed__gte=0),
                name="horizon_counts_up",
                fields=["removed"],
                words="A count is not negative.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} before {self.before:%Y-%m-%d %H:%M:%S}"


class UserVersion(HistoryBase):
    """One version of an account, as the history of other rows keeps theirs; the password is not in it (SPEC 3, 5).

    Written by hand, as the accounts are Django's own table, whose roles stand in another one and whose every sign-in
    is a write.
    """

    history_id = models.BigAutoField(primary_key=True)
    id = models.BigIntegerField(db_index=True, help_text="The account's number.")
    username = models.CharField(max_length=150)
    email = models.CharField(max_length=254, blank=True, default="")
    is_active = models.BooleanField()
    is_superuser = models.BooleanField()
    roles = TextListField()
    password_set = models.BooleanField(default=False, help_text="Whether this act set a new password.")
    act = models.CharField(
        max_length=60, blank=True, default="", db_default="", help_text="What was done that no column tells."
    )
    history_date = models.DateTimeField(db_index=True)
    history_change_reason = models.TextField(null=True)
    history_type = models.CharField(max_length=1, choices=[("+", "Created"), ("~", "Changed"), ("-", "Deleted")])
    history_user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+", db_constraint=False
    )

    class Meta:
        ordering = ["-history_date", "-history_id"]
        get_latest_by = ["history_date", "history_id"]

    def __str__(self) -> str:
        return f"{self.username} at {self.history_date:%Y-%m-%d %H:%M:%S}"


from omniroute_admin.common import models_sign_in  # noqa: E402, F401 - Django looks for this module's name only
