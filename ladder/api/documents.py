"""What the calls of msgspec look like, for the schema only; nothing is validated or rendered with these."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, inline_serializer
from rest_framework import serializers as s

from billing_catalog.core.values import Billing, Overage, Tier
from ladder.core.ids import CATEGORIES
from ladder.core.reasons import Code, EmptyCode, Family
from ladder.core.values import Accounting, Combine, CooldownCause, Grouping, MixedRungs, ReadingStatus, Rung

RUNGS = [rung.word for rung in Rung]


def _words(enum: type) -> list[str]:
    return [word.value for word in enum]  # type: ignore[attr-defined]


def percent(**options: object) -> s.DecimalField:
    """Return a percentage as documented: a number or a decimal text, 0 to 100."""
    return s.DecimalField(max_digits=None, decimal_places=None, min_value=0, max_value=100, **options)  # type: ignore[arg-type]


def usd(**options: object) -> s.DecimalField:
    """Return an amount of money as documented."""
    return s.DecimalField(max_digits=None, decimal_places=None, **options)  # type: ignore[arg-type]


class CandidateDocument(s.Serializer):
    """(provider, model) with exactly one of `connection_id` and `allowed_connection_ids`."""

    provider = s.CharField()
    model = s.CharField()
    connection_id = s.CharField(required=False, allow_null=True)
    allowed_connection_ids = s.ListField(child=s.CharField(), required=False, allow_null=True, max_length=5000)
    ref = s.CharField(required=False, allow_null=True, allow_blank=True)


class PoolRequest(s.Serializer):
    """Candidates in the caller's order, and options."""

    candidates = s.ListField(child=CandidateDocument(), max_length=5000)
    mixed_rungs = s.ChoiceField(_words(MixedRungs), required=False, default="split")
    lowest_rung_only = s.BooleanField(required=False, default=False)
    explain = s.BooleanField(required=False, default=False)


class EntryDocument(s.Serializer):
    """One line of a pool; it has the form of its request."""

    provider = s.CharField()
    model = s.CharField()
    rung = s.ChoiceField(RUNGS)
    rung_index = s.IntegerField(min_value=0, max_value=4)
    connection_id = s.CharField(allow_null=True)
    allowed_connection_ids = s.ListField(child=s.CharField(), allow_null=True)
    ref = s.CharField(allow_null=True)
    may_bill_past_plan = s.BooleanField()


class ExclusionDocument(s.Serializer):
    """A pair left out, with its one code."""

    provider = s.CharField()
    model = s.CharField(allow_null=True)
    connection_id = s.CharField(allow_null=True)
    ref = s.CharField(allow_null=True)
    rung = s.ChoiceField(RUNGS, allow_null=True)
    code = s.ChoiceField(_words(Code))
    family = s.ChoiceField(_words(Family))
    window = s.CharField(allow_null=True)
    detail = s.CharField()
    returns_at = s.DateTimeField(allow_null=True)


class EmptyDocument(s.Serializer):
    """Why a pool is empty, and when it may not be."""

    code = s.ChoiceField(_words(EmptyCode))
    detail = s.CharField()
    returns_at = s.DateTimeField(allow_null=True)


class StandingDocument(s.Serializer):
    """Where a pair is."""

    in_ = s.BooleanField()
    rung = s.ChoiceField(RUNGS, allow_null=True)
    code = s.ChoiceField(_words(Code), allow_null=True)

    def get_fields(self) -> dict[str, s.Field]:
        """Return the fields under the names they have on the wire."""
        fields = super().get_fields()
        return {"in": fields.pop("in_"), **fields}


class ChangeDocument(s.Serializer):
    """A pair that stands elsewhere than by the stored state."""

    provider = s.CharField()
    model = s.CharField(allow_null=True)
    connection_id = s.CharField(allow_null=True)
    ref = s.CharField(allow_null=True)
    before = StandingDocument(allow_null=True)
    after = StandingDocument(allow_null=True)


class PoolAnswer(s.Serializer):
    """The ordered answer to a router; an empty pool is an answer."""

    id = s.CharField()
    grouping = s.ChoiceField(_words(Grouping))
    category = s.ChoiceField(list(CATEGORIES), allow_null=True)
    revision = s.CharField()
    evaluated_at = s.DateTimeField()
    valid_until = s.DateTimeField(allow_null=True)
    candidates = EntryDocument(many=True)
    excluded_counts = s.DictField(child=s.IntegerField())
    excluded = ExclusionDocument(many=True, required=False)
    empty = EmptyDocument(allow_null=True)
    changes = ChangeDocument(many=True, required=False)


class EvaluateSettings(s.Serializer):
    """Settings to evaluate with."""

    exit_cutoff_percent = percent(required=False)
    reentry_min_remaining_percent = percent(required=False)
    max_reading_age_seconds = s.IntegerField(min_value=10, max_value=3600, required=False)
    rung_budget_usd = s.DictField(child=usd(allow_null=True, min_value=0), required=False)


class EvaluateCatalogRow(s.Serializer):
    """A row of the billing catalogue."""

    provider = s.CharField()
    billing = s.ChoiceField(_words(Billing))
    overage = s.ChoiceField(_words(Overage))
    auth_type = s.CharField(required=False, allow_null=True)


class EvaluateConnection(s.Serializer):
    """A connection to evaluate with."""

    connection_id = s.CharField()
    provider = s.CharField()
    auth_type = s.CharField(required=False, allow_null=True)
    overage_override = s.ChoiceField(_words(Overage), required=False, allow_null=True)
    is_enabled = s.BooleanField(required=False, default=True)
    excluded_models = s.ListField(child=s.CharField(), required=False)


class EvaluateQuota(s.Serializer):
    """A quota window with its reading."""

    connection_id = s.CharField()
    observed_at = s.DateTimeField()
    provider = s.CharField(required=False, allow_null=True)
    window = s.CharField(required=False, default="default")
    status = s.ChoiceField(_words(ReadingStatus), required=False, default="safe")
    remaining_percent = percent(required=False, allow_null=True)
    unlimited = s.BooleanField(required=False, default=False)
    reset_at = s.DateTimeField(required=False, allow_null=True)
    held = s.BooleanField(required=False, default=False)
    combine = s.ChoiceField(_words(Combine), required=False, default="limit")
    model = s.CharField(required=False, allow_null=True)
    is_muted = s.BooleanField(required=False, default=False)
    exit_cutoff_percent = percent(required=False, allow_null=True)


class EvaluateCooldown(s.Serializer):
    """A cooldown to evaluate with."""

    connection_id = s.CharField()
    effective_until = s.DateTimeField()
    provider = s.CharField(required=False, allow_null=True)
    model = s.CharField(required=False, allow_null=True)
    cause = s.ChoiceField(_words(CooldownCause), required=False, default="operator")


class EvaluateBreaker(s.Serializer):
    """An open breaker."""

    provider = s.CharField()
    open_until = s.DateTimeField()


class EvaluateRequest(s.Serializer):
    """What is given replaces what is stored; nothing is stored."""

    id = s.CharField()
    candidates = s.ListField(child=CandidateDocument(), required=False, max_length=5000)
    mixed_rungs = s.ChoiceField(_words(MixedRungs), required=False, default="split")
    lowest_rung_only = s.BooleanField(required=False, default=False)
    explain = s.BooleanField(required=False, default=False)
    now = s.DateTimeField(required=False)
    settings = EvaluateSettings(required=False)
    catalog = EvaluateCatalogRow(many=True, required=False)
    connections = EvaluateConnection(many=True, required=False)
    quota = EvaluateQuota(many=True, required=False)
    cooldowns = EvaluateCooldown(many=True, required=False)
    breakers = EvaluateBreaker(many=True, required=False)
    tiers = s.DictField(child=s.ChoiceField(_words(Tier)), required=False)
    capabilities = s.DictField(child=s.ListField(child=s.CharField()), required=False)
    rung_spend_usd = s.DictField(child=usd(allow_null=True), required=False)


class PoolLineDocument(s.Serializer):
    """One pool's state in one line."""

    id = s.CharField()
    grouping = s.ChoiceField(_words(Grouping))
    category = s.ChoiceField(list(CATEGORIES), allow_null=True)
    candidates = s.IntegerField()
    pairs = s.IntegerField()
    first_rung = s.ChoiceField(RUNGS, allow_null=True)
    empty = EmptyDocument(allow_null=True)


class PoolLines(s.Serializer):
    """The ids, with each one's state in one line."""

    pools = PoolLineDocument(many=True)
    revision = s.CharField()


class BudgetDocument(s.Serializer):
    """A paid rung's budget in its present window; amount null is no limit, 0 is off."""

    amount_usd = usd(allow_null=True)
    spent_usd = usd()
    held_usd = usd()
    left_usd = usd(allow_null=True)
    accounting = s.ChoiceField(_words(Accounting))
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
    budget = BudgetDocument(allow_null=True)


class Occupancy(s.Serializer):
    """The ladder now."""

    revision = s.CharField()
    evaluated_at = s.DateTimeField()
    valid_until = s.DateTimeField(allow_null=True)
    serving_rung = s.ChoiceField(RUNGS, allow_null=True)
    next_rung = s.ChoiceField(RUNGS, allow_null=True)
    rungs = RungDocument(many=True)
    pools = PoolLineDocument(many=True)


ModelList = inline_serializer(
    "ModelList",
    {
        "object": s.CharField(),
        "data": inline_serializer(
            "ModelLine",
            {
                "id": s.CharField(),
                "object": s.CharField(),
                "created": s.IntegerField(),
                "owned_by": s.CharField(),
            },
            many=True,
        ),
    },
)

POOL_ANSWERS = {200: PoolAnswer, 304: OpenApiResponse(description="Unchanged since the ETag sent in If-None-Match.")}
POOL_PARAMETERS = [
    OpenApiParameter("mixed_rungs", str, enum=_words(MixedRungs), default="split"),
    OpenApiParameter("lowest_rung_only", OpenApiTypes.BOOL, default=False),
    OpenApiParameter("explain", OpenApiTypes.BOOL, default=False),
    OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
]
MODEL_PARAMETERS = [
    OpenApiParameter("pairs", OpenApiTypes.BOOL, description="List the ten category pairs too."),
    OpenApiParameter("hide_paid", OpenApiTypes.BOOL, description="Keeps all: none of these ids counts as paid."),
]
