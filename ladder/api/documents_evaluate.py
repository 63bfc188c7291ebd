"""What evaluate takes, for the schema only."""

from rest_framework import serializers as s

from billing_catalog.core.values import Billing, Overage, Tier
from ladder.api.documents import CandidateDocument, percent, usd, words
from ladder.core.values import Combine, CooldownCause, MixedRungs, ReadingStatus


class EvaluateSettings(s.Serializer):
    """Settings to evaluate with."""

    exit_cutoff_percent = percent(required=False)
    reentry_min_remaining_percent = percent(required=False)
    max_reading_age_seconds = s.IntegerField(min_value=10, max_value=3600, required=False)
    rung_budget_usd = s.DictField(child=usd(allow_null=True, min_value=0), required=False)


class EvaluateCatalogRow(s.Serializer):
    """A row of the billing catalogue."""

    provider = s.CharField()
    billing = s.ChoiceField(words(Billing))
    overage = s.ChoiceField(words(Overage))
    auth_type = s.CharField(required=False, allow_null=True)


class EvaluateConnection(s.Serializer):
    """A connection to evaluate with."""

    connection_id = s.CharField()
    provider = s.CharField()
    auth_type = s.CharField(required=False, allow_null=True)
    overage_override = s.ChoiceField(words(Overage), required=False, allow_null=True)
    is_enabled = s.BooleanField(required=False, default=True)
    excluded_models = s.ListField(child=s.CharField(), required=False)


class EvaluateQuota(s.Serializer):
    """A quota window with its reading."""

    connection_id = s.CharField()
    observed_at = s.DateTimeField()
    provider = s.CharField(required=False, allow_null=True)
    window = s.CharField(required=False, default="default")
    status = s.ChoiceField(words(ReadingStatus), required=False, default="safe")
    remaining_percent = percent(required=False, allow_null=True)
    unlimited = s.BooleanField(required=False, default=False)
    reset_at = s.DateTimeField(required=False, allow_null=True)
    held = s.BooleanField(required=False, default=False)
    combine = s.ChoiceField(words(Combine), required=False, default="limit")
    model = s.CharField(required=False, allow_null=True)
    is_muted = s.BooleanField(required=False, default=False)
    exit_cutoff_percent = percent(required=False, allow_null=True)


class EvaluateCooldown(s.Serializer):
    """A cooldown to evaluate with."""

    connection_id = s.CharField()
    effective_until = s.DateTimeField()
    provider = s.CharField(required=False, allow_null=True)
    model = s.CharField(required=False, allow_null=True)
    cause = s.ChoiceField(words(CooldownCause), required=False, default="operator")


class EvaluateBreaker(s.Serializer):
    """An open breaker."""

    provider = s.CharField()
    open_until = s.DateTimeField()


class EvaluateRequest(s.Serializer):
    """What is given replaces what is stored; nothing is stored."""

    id = s.CharField()
    candidates = s.ListField(child=CandidateDocument(), required=False, max_length=5000)
    mixed_rungs = s.ChoiceField(words(MixedRungs), required=False, default="split")
    lowest_rung_only = s.BooleanField(required=False, default=False)
    explain = s.BooleanField(required=False, default=False)
    now = s.DateTimeField(required=False)
    settings = EvaluateSettings(required=False)
    catalog = EvaluateCatalogRow(many=True, required=False)
    connections = EvaluateConnection(many=True, required=False)
    quota = EvaluateQuota(many=True, required=False)
    cooldowns = EvaluateCooldown(many=True, required=False)
    breakers = EvaluateBreaker(many=True, required=False)
    tiers = s.DictField(child=s.ChoiceField(words(Tier)), required=False)
    capabilities = s.DictField(child=s.ListField(child=s.CharField()), required=False)
    rung_spend_usd = s.DictField(child=usd(allow_null=True), required=False)
