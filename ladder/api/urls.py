"""The ladder's calls, below `api/v1/`."""

from django.urls import path

from ladder.api.explain import ExplainView
from ladder.api.pools import EvaluateView, OccupancyView, PoolListView, PoolView
from ladder.api.settings import OmnirouteSettingsView, SettingsView

urlpatterns = [
    path("pools", PoolListView.as_view(), name="pools"),
    path("pools/<path:pool_id>", PoolView.as_view(), name="pool"),
    path("evaluate", EvaluateView.as_view(), name="evaluate"),
    path("connections/<str:connection_id>/explain", ExplainView.as_view(), name="connection-explain"),
    path("settings", SettingsView.as_view(), name="settings"),
    path("settings/omniroute.json", OmnirouteSettingsView.as_view(), name="settings-omniroute"),
    path("occupancy", OccupancyView.as_view(), name="occupancy"),
]
