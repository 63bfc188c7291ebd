"""SPEC 5: the admin wears the console's look, keeps the policy and has no fault that axe finds, page by page."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.urls import reverse
from playwright.sync_api import Page

from tests.browser.conftest import axe_violations
from tests.factories import (
    AlertDeliveryFactory,
    AlertRuleFactory,
    BillingEntryFactory,
    BreakerFactory,
    FreeProviderFactory,
    LedgerSumFactory,
    PriceSourceFactory,
    ProviderAliasFactory,
    QuotaReadingFactory,
    RefusalReportFactory,
    RungFlipFactory,
    RungSampleFactory,
    SpendHoldFactory,
    TierOverrideFactory,
    UsageEventFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.sqlite]


@pytest.fixture
def one_of_each(fleet: None, operator: Any) -> None:
    """Store one row of every model that the admin shows."""
    from datetime import UTC, datetime

    from billing_catalog.models import LoadedFact
    from omniroute_admin.common.history import Actor
    from omniroute_admin.common.models import Heartbeat, Horizon, TaskRun
    from omniroute_admin.common.services.keys import create_key

    now = datetime(2026, 8, 22, tzinfo=UTC)
    for factory in (
        AlertDeliveryFactory, AlertRuleFactory, BillingEntryFactory, BreakerFactory, FreeProviderFactory,
        LedgerSumFactory, PriceSourceFactory, ProviderAliasFactory, QuotaReadingFactory, RefusalReportFactory,
        RungFlipFactory, RungSampleFactory, SpendHoldFactory, TierOverrideFactory, UsageEventFactory,
    ):  # fmt: skip
        factory()
    Heartbeat.objects.create(name="worker", beat_at=now)
    TaskRun.objects.create(name="ladder.tasks.note_flips", succeeded_at=now)
    Horizon.objects.create(name="readings", before=now, moved_at=now)
    LoadedFact.objects.create(kind="billing", key="claude", loaded_at=now)
    create_key(name="r", scopes=["pools:read"], expires_at=None, actor=Actor(name="t"), reason="", now=now)
    operator.groups.add(Group.objects.get(name="administrator"))


def addresses() -> list[str]:
    """Return every page of the admin that there is for the rows stored."""
    found = [reverse("admin:index"), reverse("admin:password_change")]
    for model in admin.site._registry:
        start = f"admin:{model._meta.label_lower.replace('.', '_')}"
        row = model._default_manager.order_by("pk").last()
        assert row is not None, f"no row of {model.__name__} to look at"
        found += [reverse(f"{start}_changelist"), reverse(f"{start}_add")]
        found += [reverse(f"{start}_{page}", args=[row.pk]) for page in ("change", "delete", "history")]
        if hasattr(model, "history") and (version := model.history.filter(id=row.pk).first()):
            found.append(reverse(f"{start}_simple_history", args=[row.pk, version.history_id]))
    return found


def test_no_page_of_the_admin_breaks_the_policy_or_has_a_fault_that_axe_finds(
    signed_in: Page, one_of_each: None, live_server: Any
) -> None:
    faults: list[str] = []
    for address in addresses():
        response = signed_in.goto(live_server.url + address)
        assert response is not None
        if response.status != 403:
            assert response.status == 200, address
            faults += [f"{address}: {fault}" for fault in axe_violations(signed_in)]
    assert faults == []
