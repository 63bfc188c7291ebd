"""The timeline of SPEC 3: flips, samples, how far the looks have come, and what they have yet to look at.

Nothing here decides anything.
"""

from django.db import models
from django.db.models import Q

from ladder.choices import FLIP_CAUSE_CHOICES, FLIP_KIND_CHOICES, RUNG_CHOICES
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.fields import UsdField

_WORDS_OF_RUNGS = [word for word, _ in RUNG_CHOICES]


class RungFlip(models.Model):
    """One change: a connection's state on a rung, or a rung that begins or ceases to serve.

    An empty state is "not there": a connection that came, went, or moved to another rung.
    """

    at = models.DateTimeField(db_index=True, help_text="When it was written, or when time made it.")
    kind = models.CharField(max_length=10, choices=FLIP_KIND_CHOICES)
    connection = models.ForeignKey(
        "ladder.Connection", on_delete=models.PROTECT, related_name="flips", null=True, blank=True
    )
    rung = models.CharField(max_length=12, choices=RUNG_CHOICES)
    from_state = models.CharField(max_length=12, blank=True, default="")
    to_state = models.CharField(max_length=12, blank=True, default="")
    code = models.CharField(max_length=30, null=True, blank=True, help_text="Reason code of the new state.")
    cause = models.CharField(max_length=9, choices=FLIP_CAUSE_CHOICES)
    revision = models.BigIntegerField(help_text="The one that its write made, else the one at which it was found.")

    class Meta:
        ordering = ["-at", "-id"]
        constraints = [
            unique(
                fields=["connection", "rung", "at"],
                condition=Q(connection__isnull=False),
                name="flip_once_per_connection_and_instant",
                words="A flip of this connection and rung at that instant is noted already.",
            ),
            unique(
                fields=["rung", "at"],
                condition=Q(connection__isnull=True),
                name="flip_once_per_rung_and_instant",
                words="A flip of this rung at that instant is noted already.",
            ),
            check(
                condition=Q(kind="connection", connection__isnull=False) | Q(kind="rung", connection__isnull=True),
                name="flip_names_what_it_is_of",
                fields=["kind", "connection"],
                words="A flip of a connection names it, and one of a rung names none.",
            ),
            check(
                condition=Q(rung__in=_WORDS_OF_RUNGS),
                name="flip_rung_is_a_word",
                fields=["rung"],
                words="Expected one of: subscription, keyless, free, cheap, premium.",
            ),
            check(
                condition=Q(cause__in=[word for word, _ in FLIP_CAUSE_CHOICES]),
                name="flip_cause_is_a_word",
                fields=["cause"],
                words="Expected one of: reading, reset, cooldown, budget, setting, operator, catalogue, time.",
            ),
        ]

    def __str__(self) -> str:
        who = self.rung if self.connection is None else f"{self.connection} on {self.rung}"
        return f"{who}: {self.from_state or 'not there'} to {self.to_state or 'not there'}"


class RungSample(models.Model):
    """One rung as it stood in one minute."""

    at = models.DateTimeField(help_text="The minute, cut to its beginning.")
    rung = models.CharField(max_length=12, choices=RUNG_CHOICES)
    usable = models.PositiveIntegerField()
    total = models.PositiveIntegerField()
    is_serving = models.BooleanField(help_text="auto/thrifty served from it.")
    left_usd = UsdField(null=True, blank=True, help_text="Left of the budget; empty: no limit, or no budget is asked.")

    class Meta:
        ordering = ["-at", "rung"]
        constraints = [
            unique(
                fields=["at", "rung"],
                name="sample_one_per_rung_and_minute",
                words="This rung has a sample of that minute already.",
            ),
            check(
                condition=Q(rung__in=_WORDS_OF_RUNGS),
                name="sample_rung_is_a_word",
                fields=["rung"],
                words="Expected one of: subscription, keyless, free, cheap, premium.",
            ),
            check(
                condition=Q(usable__lte=models.F("total")),
                name="sample_usable_is_of_total",
                fields=["usable", "total"],
                words="No more are usable than there are.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rung} at {self.at:%Y-%m-%d %H:%M}"


class TimelineCursor(models.Model):
    """How far the looks have come: the last one's instant, revision and picture. One row, id 1, made by the first look.

    A look writes only if `version` is still what it read, so that of many processes one writes a change.
    """

    version = models.BigIntegerField(default=1)
    at = models.DateTimeField()
    revision = models.BigIntegerField()
    valid_until = models.DateTimeField(null=True, help_text="Until then the picture stands if nothing is written.")
    picture = models.JSONField(help_text="Rows of connection (0: the rung itself), rung, state, code.")
    prints = models.JSONField(help_text="Fingerprints of what was decided from, to tell causes apart.")

    class Meta:
        constraints = [
            check(
                condition=Q(id=1),
                name="timeline_cursor_is_one_row",
                fields=["id"],
                words="There is one cursor.",
            )
        ]

    def __str__(self) -> str:
        return f"timeline up to {self.at:%Y-%m-%d %H:%M:%S}"


class TimelineTrace(models.Model):
    """What a write changed, as it stood before: until a look has told of it, which deletes the row.

    Rows are made under the lock on the revision, so that their ids are in commit order.
    """

    at = models.DateTimeField(help_text="The write's own instant.")
    revision = models.BigIntegerField(help_text="The revision that it made.")
    before = models.BinaryField(help_text="The parts that it changed, as JSON.")

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"a write at {self.at:%Y-%m-%d %H:%M:%S}"
