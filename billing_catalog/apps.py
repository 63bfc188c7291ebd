"""The curated facts: billing, aliases, prices, tiers."""

from django.apps import AppConfig


class BillingCatalogConfig(AppConfig):
    """Configure the billing catalogue."""

    name = "billing_catalog"
    default_auto_field = "django.db.models.BigAutoField"
