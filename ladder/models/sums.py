"""What is left of old rows of the ledger: sums that stand in every total where the rows stood (M4, M5)."""

from django.db import models
from django.db.models import F, Q

from ladder.choices import MONEY_CHOICES, RUNG_CHOICES
from ladder.models.connections import Connection
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.fields import MicroUsdField


class LedgerSum(models.Model):
    """The events of one quarter of an hour that were taken out of the ledger, as one sum of each place.

    `booked_at` is the beginning of the quarter, or the reset of a budget that cut it (M9). `booked_usd` is what the
    rows added to the totals, `estimated_usd` what of it is only estimated (M7).
    """

    connection = models.ForeignKey(Connection, on_delete=models.PROTECT, related_name="sums")
    model = models.CharField(max_length=200)
    rung = models.CharField(max_length=12, choices=RUNG_CHOICES)
    money_kind = models.CharField(max_length=7, choices=MONEY_CHOICES)
    booked_at = models.DateTimeField()
    booked_usd = MicroUsdField()
    estimated_usd = MicroUsdField()
    folded_rows = models.BigIntegerField(help_text="Events and corrections.")
    folded_events = models.BigIntegerField()
    folded_estimates = models.BigIntegerField(help_text="Events that count as estimated.")
    last_at = models.DateTimeField(help_text="The last instant of any of them.")

    class Meta:
        ordering = ["-booked_at", "-id"]
        indexes = [models.Index(fields=["money_kind", "rung", "booked_at"], name="sum_totals")]
        constraints = [
            unique(
                fields=["connection", "model", "rung", "money_kind", "booked_at"],
                name="sum_one_per_place_and_quarter",
                words="There is a sum of this place and quarter already.",
            ),
            check(
                condition=Q(money_kind="budget", rung__in=["cheap", "premium"])
                | Q(money_kind__in=["overage", "plan"], rung__in=["subscription", "keyless", "free"]),
                name="sum_money_is_of_its_rung",
                fields=["money_kind", "rung"],
                words="Only cheap and premium draw on a budget, and they on nothing else.",
            ),
            check(
                condition=Q(estimated_usd__gte=0, booked_usd__gte=F("estimated_usd")),
                name="sum_estimate_is_a_part",
                fields=["booked_usd", "estimated_usd"],
                words="What is estimated is a part of the sum, and neither is negative.",
            ),
            check(
                condition=Q(
                    folded_events__gte=1,
                    folded_rows__gte=F("folded_events"),
                    folded_estimates__gte=0,
                    folded_estimates__lte=F("folded_events"),
                ),
                name="sum_counts_fit",
                fields=["folded_rows", "folded_events", "folded_estimates"],
                words="A sum is of one event at least, of no fewer rows, and of no more estimates.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.folded_events} events of {self.connection} at {self.booked_at:%Y-%m-%d %H:%M}"
