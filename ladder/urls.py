"""Addresses of the ladder's pages."""

from django.urls import path

from ladder.views import pages, spend, timeline, uncurated

urlpatterns = [
    path("", pages.ladder_page, name="ladder"),
    path("live/ladder", pages.live_ladder, name="live-ladder"),
    path("pools", pages.choose_pool, name="pools"),
    path("pools/<path:pool_id>", pages.pool_page, name="pool"),
    path("connections/<path:provider>/<str:connection_id>", pages.connection_page, name="connection"),
    path("catalogue/uncurated", uncurated.uncurated_page, name="uncurated"),
    path("spend", spend.spend_page, name="spend"),
    path("spend/breakdown.csv", spend.spend_breakdown_file, name="spend-breakdown"),
    path("spend/events.csv", spend.spend_events_file, name="spend-events"),
    path("timeline", timeline.timeline_page, name="timeline"),
]
