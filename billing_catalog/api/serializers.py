"""The forms of the catalogue's resources (SPEC 4, Resources)."""

from typing import Any

from billing_catalog.models import BillingEntry, FreeProvider, ModelPrice, PriceSource, ProviderAlias, TierOverride
from omniroute_admin.common.fields import PROVIDER_NAME
from omniroute_admin.common.serializers import StrictModelSerializer


class BillingEntrySerializer(StrictModelSerializer):
    """`reason` is the entry's own justification; the reason of an edit is `change_reason`."""

    reason_field = "change_reason"

    class Meta:
        model = BillingEntry
        fields = (
            "id",
            "provider",
            "auth_type",
            "billing",
            "overage",
            "reason",
            "source_url",
            "reviewed_on",
            "reviewed_by",
        )


class PriceSerializer(StrictModelSerializer):
    """USD per million tokens; null is "not known", never free. Provider, model and start are fixed once made."""

    FIXED = ("provider", "model", "effective_from")

    class Meta:
        model = ModelPrice
        fields = (
            "id",
            "provider",
            "model",
            "input_usd_per_million",
            "output_usd_per_million",
            "cached_input_usd_per_million",
            "capabilities",
            "rank",
            "source",
            "effective_from",
            "effective_to",
        )
        extra_kwargs = {"effective_from": {"required": False, "help_text": "Left out: now."}}

    def get_fields(self) -> dict[str, Any]:
        """Return the fields; of a row that exists, what makes it that row may come back but not change."""
        fields = super().get_fields()
        if isinstance(self.instance, ModelPrice):
            for name in self.FIXED:
                fields[name].read_only, fields[name].required = True, False
        return fields


class TierOverrideSerializer(StrictModelSerializer):
    """`model_pattern` null speaks of the whole provider."""

    class Meta:
        model = TierOverride
        fields = ("id", "provider", "model_pattern", "tier")


class FreeProviderSerializer(StrictModelSerializer):
    """`reason` is why the provider is on the list; the reason of an edit is `change_reason`."""

    reason_field = "change_reason"

    class Meta:
        model = FreeProvider
        fields = ("provider", "reason")


class AliasSerializer(StrictModelSerializer):
    """Another name of a provider."""

    class Meta:
        model = ProviderAlias
        fields = ("alias", "provider")
        extra_kwargs = {name: {"validators": [PROVIDER_NAME]} for name in fields}


class PriceSourceSerializer(StrictModelSerializer):
    """Which lists serve a provider: by their ids in genai-prices and in the LiteLLM price map; blank for none."""

    class Meta:
        model = PriceSource
        fields = ("provider", "price_list", "capability_list", "sells_seats")
