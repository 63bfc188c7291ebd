"""The ladder's calls, below `api/v1/`."""

from django.urls import path

from ladder.api.connections import ConnectionListView, ConnectionView, CooldownView
from ladder.api.explain import ExplainView
from ladder.api.holds import HoldsView, HoldView
from ladder.api.pools import EvaluateView, OccupancyView, PoolListView, PoolView
from ladder.api.refusals import BreakersView, RateLimitsView
from ladder.api.settings import BudgetResetView, OmnirouteSettingsView, SettingsView
from ladder.api.telemetry import ReadingsView
from ladder.api.usage import UsageView
from ladder.api.windows import MarkExhaustedView, WindowListView, WindowView

urlpatterns = [
    path("pools", PoolListView.as_view(), name="pools"),
    path("pools/<path:pool_id>", PoolView.as_view(), name="pool"),
    path("evaluate", EvaluateView.as_view(), name="evaluate"),
    path("connections", ConnectionListView.as_view(), name="connections"),
    path("connections/<str:connection_id>", ConnectionView.as_view(), name="connection"),
    path("connections/<str:connection_id>/cooldown", CooldownView.as_view(), name="connection-cooldown"),
    path("connections/<str:connection_id>/windows", WindowListView.as_view(), name="windows"),
    path("connections/<str:connection_id>/windows/<path:window>", WindowView.as_view(), name="window"),
    path("connections/<str:connection_id>/mark-exhausted", MarkExhaustedView.as_view(), name="mark-exhausted"),
    path("connections/<str:connection_id>/explain", ExplainView.as_view(), name="connection-explain"),
    path("telemetry/readings", ReadingsView.as_view(), name="telemetry-readings"),
    path("telemetry/rate-limits", RateLimitsView.as_view(), name="telemetry-rate-limits"),
    path("telemetry/breakers", BreakersView.as_view(), name="telemetry-breakers"),
    path("telemetry/usage", UsageView.as_view(), name="telemetry-usage"),
    path("holds", HoldsView.as_view(), name="holds"),
    path("holds/<path:hold_id>", HoldView.as_view(), name="hold"),
    path("settings", SettingsView.as_view(), name="settings"),
    path("settings/omniroute.json", OmnirouteSettingsView.as_view(), name="settings-omniroute"),
    path("settings/budgets/<str:rung>/reset", BudgetResetView.as_view(), name="budget-reset"),
    path("occupancy", OccupancyView.as_view(), name="occupancy"),
]
