"""The words of SPEC 1 as database choices; the core's enums are the one list."""

from billing_catalog.core.values import Billing, Overage, Tier

BILLING_CHOICES = [(word.value, word.value) for word in Billing]
OVERAGE_CHOICES = [(word.value, word.value) for word in Overage]
TIER_CHOICES = [(word.value, word.value) for word in Tier]
ORIGIN_CHOICES = [("facts", "shipped facts"), ("operator", "operator")]

GENAI_SOURCE = "genai-prices"
LITELLM_SOURCE = "litellm"
LIST_SOURCES = (GENAI_SOURCE, LITELLM_SOURCE)
"""Sources of the price rows that sync_prices keeps; every other row belongs to whoever wrote it."""
OPERATOR_SOURCE = "operator"
