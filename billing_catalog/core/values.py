"""The words and values of the billing catalogue (SPEC 1, B, T)."""

from datetime import datetime
from decimal import Decimal
from enum import StrEnum

import msgspec


class Billing(StrEnum):
    """Billing class of a connection; unknown is consumed as metered everywhere (B5)."""

    SUBSCRIPTION = "subscription"
    METERED = "metered"
    KEYLESS = "keyless"
    UNKNOWN = "unknown"


class Overage(StrEnum):
    """What happens past a plan's allowance; unknown is consumed as meters-to-paid."""

    HARD_STOP = "hard-stop"
    METERS_TO_PAID = "meters-to-paid"
    UNKNOWN = "unknown"


class Tier(StrEnum):
    """Economic tier, a fact of (provider, model) (T)."""

    FREE = "free"
    CHEAP = "cheap"
    PREMIUM = "premium"


class Matched(StrEnum):
    """Which row of the catalogue decided a connection's billing class (B1 to B3)."""

    NOAUTH = "noauth"
    PROVIDER_AUTH_TYPE = "provider+auth_type"
    PROVIDER = "provider"
    NONE = "none"


class CatalogRow(msgspec.Struct, frozen=True, gc=False):
    """One row of the billing catalogue; `auth_type` None is provider-wide. Names are canonical."""

    provider: str
    billing: Billing
    overage: Overage
    auth_type: str | None = None


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """What the catalogue says of one connection: its class, its overage, and which row said so."""

    billing: Billing
    overage: Overage
    matched: Matched
    overridden: bool = False


class Price(msgspec.Struct, frozen=True, gc=False):
    """One price row: USD per million tokens, valid in [effective_from, effective_to). None is "not known"."""

    provider: str
    model: str
    effective_from: datetime
    effective_to: datetime | None = None
    input_usd_per_million: Decimal | None = None
    output_usd_per_million: Decimal | None = None
    cached_input_usd_per_million: Decimal | None = None
    capabilities: frozenset[str] = frozenset()
    rank: int | None = None


class TierRule(msgspec.Struct, frozen=True):
    """A tier override; `model_pattern` None speaks of the whole provider. Rules come in order of their id (T)."""

    provider: str
    tier: Tier
    model_pattern: str | None = None


class Thresholds(msgspec.Struct, frozen=True):
    """Input price in USD per million tokens up to which a model is free, and cheap (T)."""

    free: Decimal = Decimal(0)
    cheap: Decimal = Decimal(1)
