"""The curated facts of SPEC 3: who bills how, what a model costs, what a name means."""

from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q

from billing_catalog.choices import BILLING_CHOICES, ORIGIN_CHOICES, OVERAGE_CHOICES, TIER_CHOICES
from omniroute_admin.common.constraints import check, unique
from omniroute_admin.common.fields import AuthTypeField, CanonicalField, ProviderField, TextListField
from omniroute_admin.common.history import history


class Curated(models.Model):
    """What a row that operators curate has: where it came from, when it was made and changed.

    `origin` turns to `operator` with the first edit; shipped facts never overwrite such a row.
    """

    origin = models.CharField(max_length=10, choices=ORIGIN_CHOICES, default="operator", editable=False)
    created_at = models.DateTimeField(editable=False)
    updated_at = models.DateTimeField(editable=False)

    class Meta:
        abstract = True


class BillingEntry(Curated):
    """How a provider bills one auth type, or every one where `auth_type` is null (B1 to B5)."""

    provider = ProviderField()
    auth_type = AuthTypeField(help_text="Empty: provider-wide.")
    billing = models.CharField(max_length=12, choices=BILLING_CHOICES)
    overage = models.CharField(max_length=14, choices=OVERAGE_CHOICES)
    reason = models.TextField(blank=True, default="", help_text="What this row is based on.")
    source_url = models.URLField(max_length=500, blank=True, default="")
    reviewed_on = models.DateField(null=True, blank=True)
    reviewed_by = models.CharField(max_length=100, blank=True, default="")
    history = history()

    class Meta:
        ordering = ["provider", F("auth_type").asc(nulls_first=True), "id"]
        verbose_name_plural = "billing entries"
        constraints = [
            unique(
                fields=["provider", "auth_type"],
                condition=Q(auth_type__isnull=False),
                name="billing_one_per_auth_type",
                words="This provider and auth type has an entry already.",
            ),
            unique(
                fields=["provider"],
                condition=Q(auth_type__isnull=True),
                name="billing_one_provider_wide",
                words="This provider has a provider-wide entry already.",
                about=["provider", "auth_type"],
            ),
            check(
                condition=~Q(provider=""),
                name="billing_has_provider",
                fields=["provider"],
                words="Name the provider.",
            ),
            check(
                condition=Q(billing__in=[word for word, _ in BILLING_CHOICES]),
                name="billing_is_a_class",
                fields=["billing"],
                words="Expected one of: subscription, metered, keyless, unknown.",
            ),
            check(
                condition=Q(overage__in=[word for word, _ in OVERAGE_CHOICES]),
                name="billing_overage_is_a_word",
                fields=["overage"],
                words="Expected one of: hard-stop, meters-to-paid, unknown.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.auth_type or 'provider-wide'}: {self.billing}, {self.overage}"


class ProviderAlias(Curated):
    """Another name of a provider. Adding one rewrites the rows that used it (SPEC 1)."""

    alias = CanonicalField(max_length=128, unique=True)
    # Not a ProviderField: an alias must not be rewritten by itself.
    provider = CanonicalField(max_length=128)
    history = history()

    class Meta:
        ordering = ["alias"]
        verbose_name_plural = "provider aliases"
        constraints = [
            check(
                condition=~Q(alias=F("provider")),
                name="alias_differs_from_provider",
                fields=["alias", "provider"],
                words="A name is no alias of itself.",
            ),
            check(
                condition=~Q(alias="") & ~Q(provider=""),
                name="alias_has_both_names",
                fields=["alias", "provider"],
                words="Name both the alias and the provider that it means.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.alias} means {self.provider}"


class ModelPrice(models.Model):
    """What one model costs at one provider from one instant to another; append-only (SPEC 3).

    USD per million tokens; null is "not known", never free (T). `effective_to` null is "until further notice".
    """

    provider = ProviderField()
    model = models.CharField(max_length=200)
    input_usd_per_million = models.DecimalField(
        max_digits=15, decimal_places=6, null=True, blank=True, validators=[MinValueValidator(Decimal(0))]
    )
    output_usd_per_million = models.DecimalField(
        max_digits=15, decimal_places=6, null=True, blank=True, validators=[MinValueValidator(Decimal(0))]
    )
    cached_input_usd_per_million = models.DecimalField(
        max_digits=15, decimal_places=6, null=True, blank=True, validators=[MinValueValidator(Decimal(0))]
    )
    capabilities = TextListField(help_text="Known ones only: unknown is not yes (I).")
    rank = models.PositiveIntegerField(null=True, blank=True, help_text="Place in a stored pool; empty comes last.")
    source = models.CharField(max_length=100, default="operator")
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True, blank=True)
    history = history()

    class Meta:
        ordering = [F("rank").asc(nulls_last=True), "provider", "model", "effective_from"]
        indexes = [models.Index(fields=["provider", "model", "effective_from"], name="price_by_model")]
        constraints = [
            unique(
                fields=["provider", "model", "effective_from"],
                name="price_one_per_start",
                words="A price of this model begins at that instant already.",
            ),
            unique(
                fields=["provider", "model"],
                condition=Q(effective_to__isnull=True),
                name="price_one_open_end",
                words="This model has a price without an end already.",
                about=["provider", "model", "effective_to"],
            ),
            check(
                condition=~Q(provider="") & ~Q(model=""),
                name="price_has_names",
                fields=["provider", "model"],
                words="Name both the provider and the model.",
            ),
            check(
                condition=Q(effective_to__isnull=True) | Q(effective_to__gt=F("effective_from")),
                name="price_ends_after_start",
                fields=["effective_to"],
                words="A price ends after it begins (effective_from).",
            ),
            check(
                condition=(Q(input_usd_per_million__isnull=True) | Q(input_usd_per_million__gte=0))
                & (Q(output_usd_per_million__isnull=True) | Q(output_usd_per_million__gte=0))
                & (Q(cached_input_usd_per_million__isnull=True) | Q(cached_input_usd_per_million__gte=0)),
                name="price_is_not_negative",
                fields=["input_usd_per_million", "output_usd_per_million", "cached_input_usd_per_million"],
                words="A price is not negative.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model} from {self.effective_from:%Y-%m-%d}"


class TierOverride(Curated):
    """An operator's word on the economic tier: provider-wide, or of the models a glob matches (T)."""

    provider = ProviderField()
    model_pattern = models.CharField(max_length=200, null=True, blank=True, help_text="Empty: the whole provider.")
    tier = models.CharField(max_length=8, choices=TIER_CHOICES)
    history = history()

    class Meta:
        ordering = ["id"]
        constraints = [
            unique(
                fields=["provider"],
                condition=Q(model_pattern__isnull=True),
                name="tier_one_provider_wide",
                words="This provider has a provider-wide override already.",
                about=["provider", "model_pattern"],
            ),
            unique(
                fields=["provider", "model_pattern"],
                condition=Q(model_pattern__isnull=False),
                name="tier_one_per_pattern",
                words="This provider has an override of that pattern already.",
            ),
            check(
                condition=~Q(provider=""),
                name="tier_has_provider",
                fields=["provider"],
                words="Name the provider.",
            ),
            check(
                condition=~Q(model_pattern=""),
                name="tier_pattern_is_not_blank",
                fields=["model_pattern"],
                words="Give a pattern, or null for the whole provider.",
            ),
            check(
                condition=Q(tier__in=[word for word, _ in TIER_CHOICES]),
                name="tier_is_a_tier",
                fields=["tier"],
                words="Expected one of: free, cheap, premium.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.provider}/{self.model_pattern or '*'}: {self.tier}"


class FreeProvider(Curated):
    """A provider whose models cost nothing (T)."""

    provider = ProviderField(unique=True)
    reason = models.TextField(blank=True, default="")
    history = history()

    class Meta:
        ordering = ["provider"]
        constraints = [
            check(
                condition=~Q(provider=""),
                name="free_has_provider",
                fields=["provider"],
                words="Name the provider.",
            )
        ]

    def __str__(self) -> str:
        return self.provider


class PriceSource(Curated):
    """Which price list serves which provider, and whether the provider sells seats.

    A price of 0 from a provider that sells seats is no price (T).
    """

    provider = ProviderField(unique=True)
    price_list = CanonicalField(max_length=128, blank=True, default="", help_text="Id in genai-prices.")
    capability_list = CanonicalField(max_length=128, blank=True, default="", help_text="Id in the LiteLLM price map.")
    sells_seats = models.BooleanField(default=False)
    history = history()

    class Meta:
        ordering = ["provider"]
        constraints = [
            check(
                condition=~Q(provider=""),
                name="source_has_provider",
                fields=["provider"],
                words="Name the provider.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider} from {self.price_list or 'no list'}"


class TierThresholds(models.Model):
    """Up to which input price a model is free, and cheap (T); USD per million tokens. One row, id 1."""

    free = models.DecimalField(max_digits=15, decimal_places=6, default=Decimal(0))
    cheap = models.DecimalField(max_digits=15, decimal_places=6, default=Decimal(1))
    history = history()

    class Meta:
        verbose_name_plural = "tier thresholds"
        constraints = [
            check(
                condition=Q(id=1),
                name="thresholds_are_one_row",
                fields=["id"],
                words="There is one row of thresholds.",
            ),
            check(
                condition=Q(free__gte=0) & Q(cheap__gte=F("free")),
                name="thresholds_are_in_order",
                fields=["free", "cheap"],
                words="The threshold of free is at least 0, and that of cheap is not below it.",
            ),
        ]

    def __str__(self) -> str:
        return f"free to {self.free}, cheap to {self.cheap}"


class LoadedFact(models.Model):
    """A shipped fact that was loaded once: it is never loaded again, even after an operator deleted its row."""

    kind = models.CharField(max_length=30)
    key = models.CharField(max_length=300)
    loaded_at = models.DateTimeField()

    class Meta:
        constraints = [
            unique(
                fields=["kind", "key"],
                name="fact_loaded_once",
                words="This fact was loaded already.",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"
