"""What the calls of msgspec look like, for the schema only; nothing is validated or rendered with these."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema_field, inline_serializer
from rest_framework import serializers as s

from ladder.core.ids import CATEGORIES
from ladder.core.reasons import Code, EmptyCode, Family
from ladder.core.values import Grouping, MixedRungs, Rung

RUNGS = [rung.word for rung in Rung]
REASON_CODES = [code.value for code in Code]
EMPTY_CODES = [code.value for code in EmptyCode]


IF_MATCH = OpenApiParameter(
    "If-Match", OpenApiTypes.STR, OpenApiParameter.HEADER, description="An entity tag; 412 where it has changed."
)
REASON = OpenApiParameter("reason", OpenApiTypes.STR, description="Why; goes to the history.")
PROVIDER = OpenApiParameter(
    "provider",
    {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@+-]{0,127}$"},
    description="Needed for noauth, which each provider has one of.",
)


@extend_schema_field({"type": ["string", "number"]})
class InstantOrNumberField(s.CharField):
    """An instant as a text, or a number that means one."""


def words(enum: type) -> list[str]:
    """Return the words of an enum."""
    return [word.value for word in enum]  # type: ignore[attr-defined]


def percent(**options: object) -> s.FloatField:
    """Return a percentage as documented: a number, 0 to 100 (a decimal text is taken too)."""
    return s.FloatField(min_value=0, max_value=100, **options)  # type: ignore[arg-type]


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

    candidates = s.ListField(
        child=CandidateDocument(), max_length=5000, help_text="At most 50,000 connections in all of them together."
    )
    mixed_rungs = s.ChoiceField(words(MixedRungs), required=False, default="split")
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
    code = s.ChoiceField(REASON_CODES)
    family = s.ChoiceField(words(Family))
    window = s.CharField(allow_null=True)
    detail = s.CharField()
    returns_at = s.DateTimeField(allow_null=True)


class EmptyDocument(s.Serializer):
    """Why a pool is empty, and when it may not be."""

    code = s.ChoiceField(EMPTY_CODES)
    detail = s.CharField()
    returns_at = s.DateTimeField(allow_null=True)


class StandingDocument(s.Serializer):
    """Where a pair is."""

    in_ = s.BooleanField()
    rung = s.ChoiceField(RUNGS, allow_null=True)
    code = s.ChoiceField(REASON_CODES, allow_null=True)

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
    grouping = s.ChoiceField(words(Grouping))
    category = s.ChoiceField(list(CATEGORIES), allow_null=True)
    revision = s.CharField()
    evaluated_at = s.DateTimeField()
    valid_until = s.DateTimeField(allow_null=True)
    candidates = EntryDocument(many=True)
    excluded_counts = s.DictField(child=s.IntegerField())
    excluded = ExclusionDocument(many=True, required=False)
    empty = EmptyDocument(allow_null=True)
    changes = ChangeDocument(many=True, required=False)


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
    OpenApiParameter("mixed_rungs", str, enum=words(MixedRungs), default="split"),
    OpenApiParameter("lowest_rung_only", OpenApiTypes.BOOL, default=False),
    OpenApiParameter("explain", OpenApiTypes.BOOL, default=False),
    OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER),
]
MODEL_PARAMETERS = [
    OpenApiParameter("pairs", OpenApiTypes.BOOL, description="List the ten category pairs too."),
    OpenApiParameter("hide_paid", OpenApiTypes.BOOL, description="Keeps all: none of these ids counts as paid."),
]
