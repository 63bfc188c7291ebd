"""What occupancy, the list of pools and explain answer, for the schema only."""

from rest_framework import serializers as s

from billing_catalog.core.values import Billing, Matched, Overage
from ladder.api.documents import REASON_CODES, RUNGS, EmptyDocument, percent, usd, words
from ladder.core.ids import CATEGORIES
from ladder.core.values import Accounting, Combine, CooldownCause, Grouping, ReadingStatus


class PoolLineDocument(s.Serializer):
    """One pool's state in one line."""

    id = s.CharField()
    grouping = s.ChoiceField(words(Grouping))
    category = s.ChoiceField(list(CATEGORIES), allow_null=True)
    candidates = s.IntegerField()
    pairs = s.IntegerField()
    first_rung = s.ChoiceField(RUNGS, allow_null=True)
    empty = EmptyDocument(allow_null=True)


class PoolLines(s.Serializer):
    """The ids, with each one's state in one line."""

    pools = PoolLineDocument(many=True)
    revision = s.CharField()


class RungBudgetDocument(s.Serializer):
    """A paid rung's budget in its present window; amount null is no limit, 0 is off."""

    amount_usd = usd(allow_null=True)
    spent_usd = usd()
    held_usd = usd()
    left_usd = usd(allow_null=True)
    accounting = s.ChoiceField(words(Accounting))
    window_start = s.DateTimeField(allow_null=True)
    window_end = s.DateTimeField(allow_null=True)
    zone = s.CharField()


class RungDocument(s.Serializer):
    """One rung of the ladder."""

    rung = s.ChoiceField(RUNGS)
    rung_index = s.IntegerField(min_value=0, max_value=4)
    usable = s.IntegerField()
    total = s.IntegerField()
    by_code = s.DictField(child=s.IntegerField())
    budget = RungBudgetDocument(allow_null=True)


class Occupancy(s.Serializer):
    """The ladder now."""

    revision = s.CharField()
    evaluated_at = s.DateTimeField()
    valid_until = s.DateTimeField(allow_null=True)
    serving_rung = s.ChoiceField(RUNGS, allow_null=True)
    next_rung = s.ChoiceField(RUNGS, allow_null=True)
    rungs = RungDocument(many=True)
    pools = PoolLineDocument(many=True)


class WindowDocument(s.Serializer):
    """A quota window with its verdict."""

    window = s.CharField()
    verdict = s.CharField()
    remaining_percent = percent(allow_null=True)
    unlimited = s.BooleanField()
    status = s.ChoiceField(words(ReadingStatus))
    reset_at = s.DateTimeField(allow_null=True)
    observed_at = s.DateTimeField(allow_null=True)
    is_held = s.BooleanField()
    is_muted = s.BooleanField()
    is_reported = s.BooleanField()
    model = s.CharField(allow_null=True)
    combine = s.ChoiceField(words(Combine))
    exit_cutoff_percent = percent(allow_null=True)


class BillingDocument(s.Serializer):
    """Class and overage, and which catalogue row said so."""

    billing = s.ChoiceField(words(Billing))
    overage = s.ChoiceField(words(Overage))
    matched = s.ChoiceField(words(Matched))
    overridden = s.BooleanField()
    reason = s.CharField(allow_blank=True)


class ActingCooldownDocument(s.Serializer):
    """The acting cooldown; null instants are "until cleared".

    One of every model before one of a single model, of several the longest.
    """

    model = s.CharField(
        allow_null=True, help_text="The model (or glob) that alone is out, with all others usable; null: every model."
    )
    asked_until = s.DateTimeField(allow_null=True)
    effective_until = s.DateTimeField(allow_null=True)
    clamped = s.BooleanField()
    cause = s.ChoiceField(words(CooldownCause))
    set_by = s.CharField(allow_blank=True)
    reported_at = s.DateTimeField()


class OpenBreakerDocument(s.Serializer):
    """The open breaker of a provider."""

    open_until = s.DateTimeField()


class PoolPlaceDocument(s.Serializer):
    """Where a pool puts the connection for one model."""

    id = s.CharField()
    model = s.CharField(allow_null=True)
    in_ = s.BooleanField()
    rung = s.ChoiceField(RUNGS, allow_null=True)
    code = s.ChoiceField(REASON_CODES, allow_null=True)

    def get_fields(self) -> dict[str, s.Field]:
        """Return the fields under the names they have on the wire."""
        fields = super().get_fields()
        return {("in" if name == "in_" else name): field for name, field in fields.items()}


class Explanation(s.Serializer):
    """Everything about one connection."""

    connection_id = s.CharField()
    provider = s.CharField()
    billing = BillingDocument()
    windows = WindowDocument(many=True)
    cooldown = ActingCooldownDocument(allow_null=True)
    breaker = OpenBreakerDocument(allow_null=True)
    verdict = s.CharField()
    binding_window = s.CharField(allow_null=True)
    returns_at = s.DateTimeField(allow_null=True)
    pools = PoolPlaceDocument(many=True)
