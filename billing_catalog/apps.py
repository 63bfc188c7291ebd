"""The curated facts: billing, aliases, prices, tiers."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class BillingCatalogConfig(AppConfig):
    """Configure the billing catalogue."""

    name = "billing_catalog"
    verbose_name = "Billing catalogue"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Make the row there is one of once the tables are there; say what the history keeps of this app."""
        from billing_catalog.services.rollback import register_kinds

        register_kinds()
        post_migrate.connect(_make_row, sender=self)


def _make_row(*, using: str, **_: Any) -> None:
    """Make the one row of the tier thresholds (T: 0 and 1.00)."""
    from billing_catalog.models import TierThresholds

    TierThresholds.objects.using(using).get_or_create(pk=1)
