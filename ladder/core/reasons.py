"""Reason codes: stable, one per excluded pair, in order of precedence (P8)."""

from enum import StrEnum


class Family(StrEnum):
    """Whether a pair is out until someone changes something, or for now."""

    NEVER = "never"
    FOR_NOW = "for_now"


class Code(StrEnum):
    """Why a pair is left out; the order here is the order of precedence (P8)."""

    NO_CONNECTIONS = "no_connections"
    NO_MODELS = "no_models"
    UNKNOWN_CONNECTION = "unknown_connection"
    PROVIDER_MISMATCH = "provider_mismatch"
    CONNECTION_DISABLED = "connection_disabled"
    MODEL_EXCLUDED = "model_excluded"
    CAPABILITY_MISSING = "capability_missing"
    NOT_SUBSCRIPTION = "not_subscription"
    KEYLESS_NOT_IN_PLAN = "keyless_not_in_plan"
    OVERAGE_NOT_HARD_STOP = "overage_not_hard_stop"
    RUNG_NOT_IN_POOL = "rung_not_in_pool"
    RUNG_DISABLED = "rung_disabled"
    BREAKER_OPEN = "breaker_open"
    COOLDOWN = "cooldown"
    QUOTA_EXHAUSTED = "quota_exhausted"
    HELD_FOR_REENTRY = "held_for_reentry"
    RESET_PENDING = "reset_pending"
    QUOTA_STALE = "quota_stale"
    QUOTA_UNVERIFIED = "quota_unverified"
    BUDGET_SPENT = "budget_spent"
    LOWER_RUNG_SERVES = "lower_rung_serves"

    @property
    def family(self) -> Family:
        """Return the code's family."""
        return Family.FOR_NOW if self in _FOR_NOW else Family.NEVER


PRECEDENCE = {code: place for place, code in enumerate(Code)}
"""The place of each code in the order of P8."""

_FOR_NOW = frozenset(list(Code)[list(Code).index(Code.BREAKER_OPEN) :])


class EmptyCode(StrEnum):
    """Why a pool is empty (SPEC 4)."""

    NO_USABLE_PLAN = "no_usable_plan"
    ALL_EXHAUSTED = "all_exhausted"
    NO_FREE_CAPACITY = "no_free_capacity"
    NO_CANDIDATES = "no_candidates"
