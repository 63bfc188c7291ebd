"""Write what decides the economic tier: overrides, free providers, thresholds (T)."""

from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict

from billing_catalog.models import FreeProvider, TierOverride, TierThresholds
from billing_catalog.services.rows import create_row, delete_row, update_row
from omniroute_admin.common.history import Actor


class OverrideValues(TypedDict, total=False):
    """The fields of a tier override; `model_pattern` None speaks of the whole provider."""

    provider: str
    model_pattern: str | None
    tier: str


class FreeValues(TypedDict, total=False):
    """The fields of a free provider; `reason` is its own justification."""

    provider: str
    reason: str


class ThresholdValues(TypedDict, total=False):
    """Input price in USD per million tokens up to which a model is free, and cheap."""

    free: Decimal
    cheap: Decimal


def create_override(*, values: OverrideValues, actor: Actor, reason: str, now: datetime) -> TierOverride:
    """Override the tier of a provider, or of the models that a glob matches; acts at once (T).

    Raises:
        ValidationError: names every bad field.
        Conflict: there is one already, provider-wide or of that pattern.
    """
    return create_row(model=TierOverride, values=_trimmed(values), actor=actor, reason=reason, now=now)


def update_override(
    *, override: TierOverride, changes: OverrideValues, actor: Actor, reason: str, now: datetime
) -> TierOverride:
    """Change a tier override; it keeps its place in the order (lowest id first, T).

    Raises:
        ValidationError: names every bad field.
        Conflict: there is another one already, provider-wide or of that pattern.
        NotFound: the override is gone.
    """
    return update_row(row=override, changes=_trimmed(changes), actor=actor, reason=reason, now=now)


def delete_override(*, override: TierOverride, actor: Actor, reason: str, now: datetime) -> None:
    """Delete a tier override.

    Raises:
        NotFound: the override is gone.
    """
    delete_row(row=override, actor=actor, reason=reason, now=now)


def create_free_provider(*, values: FreeValues, actor: Actor, reason: str, now: datetime) -> FreeProvider:
    """Declare that a provider's models cost nothing (T).

    Raises:
        ValidationError: names every bad field.
        Conflict: the provider is on the list already.
    """
    return create_row(model=FreeProvider, values=values, actor=actor, reason=reason, now=now)


def update_free_provider(
    *, free_provider: FreeProvider, changes: FreeValues, actor: Actor, reason: str, now: datetime
) -> FreeProvider:
    """Change a free provider's name or justification.

    Raises:
        ValidationError: names every bad field.
        Conflict: the provider is on the list already.
        NotFound: the row is gone.
    """
    return update_row(row=free_provider, changes=changes, actor=actor, reason=reason, now=now)


def delete_free_provider(*, free_provider: FreeProvider, actor: Actor, reason: str, now: datetime) -> None:
    """Take a provider off the free list: its models follow their prices again (T).

    Raises:
        NotFound: the row is gone.
    """
    delete_row(row=free_provider, actor=actor, reason=reason, now=now)


def update_thresholds(*, changes: ThresholdValues, actor: Actor, reason: str, now: datetime) -> TierThresholds:
    """Change up to which price a model is free, and cheap (T).

    Raises:
        ValidationError: names every bad field: below 0, or free above cheap.
    """
    return update_row(row=TierThresholds(pk=1), changes=changes, actor=actor, reason=reason, now=now)


def _trimmed(values: OverrideValues) -> dict[str, Any]:
    pattern = values.get("model_pattern")
    return {**values, "model_pattern": pattern.strip()} if isinstance(pattern, str) else dict(values)
