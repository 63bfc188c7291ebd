"""The ledger: what was spent, append-only, and what is reserved (SPEC 3, M4 to M8)."""

from typing import Any, NoReturn

from django.db import models
from django.db.models import F, Q

from ladder.choices import BILLING_CHOICES, MONEY_CHOICES, RUNG_CHOICES
from ladder.errors import LedgerIsAppendOnly
from ladder.models.connections import Connection
from omniroute_admin.common.constraints import check
from omniroute_admin.common.fields import MicroUsdField

_RUNGS = [word for word, _ in RUNG_CHOICES]
_REFUSAL = "A row of the ledger stays as it was written; send a correction."


class UsageEventQuerySet(models.QuerySet["UsageEvent"]):
    """Rows of the ledger: they are added and read, nothing else."""

    def update(self, **kwargs: Any) -> NoReturn:
        """Refuse to change rows.

        Raises:
            LedgerIsAppendOnly: always.
        """
        raise LedgerIsAppendOnly(_REFUSAL)

    def bulk_update(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to change rows.

        Raises:
            LedgerIsAppendOnly: always.
        """
        raise LedgerIsAppendOnly(_REFUSAL)

    def delete(self) -> NoReturn:
        """Refuse to delete rows.

        Raises:
            LedgerIsAppendOnly: always.
        """
        raise LedgerIsAppendOnly(_REFUSAL)


class UsageEvent(models.Model):
    """One thing a router did and what it cost, frozen as it was judged (M6).

    `booked_usd` is what this row adds to the totals, `booked_cost` the full cost it claims: of an original the same, of
    a correction the difference to what counted so far. So the sum of `booked_usd` over any rows of an original and its
    corrections, which all stand at the original's instant (`booked_at`), is the truth; `estimated_change` tells the
    same way how many of them are estimated.
    """

    event_id = models.CharField(max_length=200, unique=True)
    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="usage")
    model = models.CharField(max_length=200)
    occurred_at = models.DateTimeField()
    received_at = models.DateTimeField()
    input_tokens = models.BigIntegerField(null=True, blank=True, help_text="The cached ones included.")
    output_tokens = models.BigIntegerField(null=True, blank=True)
    cached_input_tokens = models.BigIntegerField(null=True, blank=True)
    cost_usd = MicroUsdField(null=True, blank=True, help_text="As it was reported; empty: it was priced here (M7).")
    is_overage = models.BooleanField(default=False)
    hold_id = models.CharField(max_length=200, blank=True, default="")
    corrects_event_id = models.CharField(max_length=200, blank=True, default="", help_text="As it was sent.")
    original = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="corrections",
        help_text="What it corrects.",
    )
    rung = models.CharField(max_length=12, choices=RUNG_CHOICES)
    billing = models.CharField(max_length=12, choices=BILLING_CHOICES)
    money_kind = models.CharField(max_length=7, choices=MONEY_CHOICES)
    booked_at = models.DateTimeField(help_text="The original's instant (M4).")
    booked_cost = MicroUsdField()
    booked_usd = MicroUsdField()
    is_estimated = models.BooleanField(default=False)
    estimated_change = models.SmallIntegerField(default=0)

    objects = UsageEventQuerySet.as_manager()

    class Meta:
        ordering = ["-occurred_at", "-id"]
        indexes = [
            # Every column that a total is made of stands in the index: PostgreSQL and SQLite read nothing else.
            models.Index(
                fields=["money_kind", "rung", "booked_at", "booked_usd", "estimated_change"], name="usage_totals"
            ),
            # What came since a row that was seen (see selectors/drawn.py).
            models.Index(fields=["money_kind", "rung", "id"], name="usage_in_order"),
            models.Index(fields=["connection", "booked_at"], name="usage_by_connection"),
            models.Index(fields=["booked_at"], name="usage_by_instant"),
        ]
        constraints = [
            check(
                condition=~Q(event_id="") & ~Q(model=""),
                name="usage_has_names",
                fields=["event_id", "model"],
                words="Name both the event and the model.",
            ),
            check(
                condition=Q(billing__in=[word for word, _ in BILLING_CHOICES]),
                name="usage_billing_is_a_class",
                fields=["billing"],
                words="Expected one of: subscription, metered, keyless, unknown.",
            ),
            check(
                condition=Q(money_kind="budget", rung__in=["cheap", "premium"])
                | Q(money_kind__in=["overage", "plan"], rung__in=["subscription", "keyless", "free"]),
                name="usage_money_is_of_its_rung",
                fields=["money_kind", "rung"],
                words="Only cheap and premium draw on a budget, and they on nothing else.",
            ),
            check(
                condition=Q(booked_cost__gte=0) & (Q(cost_usd__isnull=True) | Q(cost_usd__gte=0)),
                name="usage_cost_is_not_negative",
                fields=["booked_cost", "cost_usd"],
                words="A cost is not negative.",
            ),
            check(
                condition=Q(original__isnull=False) | Q(booked_usd=F("booked_cost"), booked_at=F("occurred_at")),
                name="usage_original_is_booked_whole",
                fields=["booked_usd", "booked_at"],
                words="What corrects nothing is booked whole, at its own instant.",
            ),
            check(
                condition=Q(original__isnull=True, corrects_event_id="")
                | Q(original__isnull=False) & ~Q(corrects_event_id=""),
                name="usage_correction_names_its_original",
                fields=["original", "corrects_event_id"],
                words="A correction names the event that it corrects, and no other event does.",
            ),
            check(
                condition=(Q(input_tokens__isnull=True) | Q(input_tokens__gte=0))
                & (Q(output_tokens__isnull=True) | Q(output_tokens__gte=0))
                & (Q(cached_input_tokens__isnull=True) | Q(cached_input_tokens__gte=0)),
                name="usage_tokens_are_not_negative",
                fields=["input_tokens", "output_tokens", "cached_input_tokens"],
                words="A count of tokens is not negative.",
            ),
        ]

    def __str__(self) -> str:
        return self.event_id

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Write a new row.

        Raises:
            LedgerIsAppendOnly: it is there already.
        """
        if not self._state.adding:
            raise LedgerIsAppendOnly(_REFUSAL)
        super().save(*args, **kwargs)

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Refuse to delete the row.

        Raises:
            LedgerIsAppendOnly: always.
        """
        raise LedgerIsAppendOnly(_REFUSAL)


class SpendHold(models.Model):
    """Money reserved before a request (M2, M8): it acts until it is settled, released or over.

    On rungs 0 to 2 nothing is reserved; the row only remembers that the hold was granted. `settled_by` is the usage
    that names the hold, also where it was reported after the hold's end.
    """

    hold_id = models.CharField(max_length=200, unique=True)
    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="holds")
    model = models.CharField(max_length=200)
    rung = models.CharField(max_length=12, choices=RUNG_CHOICES)
    amount_usd = MicroUsdField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    released_at = models.DateTimeField(null=True, blank=True)
    settled_by = models.ForeignKey(UsageEvent, on_delete=models.PROTECT, null=True, blank=True, related_name="settles")

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["rung", "expires_at"],
                condition=Q(released_at__isnull=True, settled_by__isnull=True),
                name="hold_active",
            )
        ]
        constraints = [
            check(
                condition=~Q(hold_id="") & ~Q(model=""),
                name="hold_has_names",
                fields=["hold_id", "model"],
                words="Name both the hold and the model.",
            ),
            check(
                condition=Q(rung__in=_RUNGS),
                name="hold_rung_is_a_word",
                fields=["rung"],
                words="Expected one of: subscription, keyless, free, cheap, premium.",
            ),
            check(
                condition=Q(amount_usd__gte=0),
                name="hold_is_not_negative",
                fields=["amount_usd"],
                words="A hold is not negative.",
            ),
            check(
                condition=Q(expires_at__gt=F("created_at")),
                name="hold_ends_after_its_start",
                fields=["expires_at"],
                words="A hold ends after it begins (created_at).",
            ),
        ]

    def __str__(self) -> str:
        return self.hold_id
