"""Addresses of the ladder's pages."""

from django.urls import path

from ladder.views import pages, resets, settings_files, tuning, whatif

urlpatterns = [
    path("", pages.ladder_page, name="ladder"),
    path("live/ladder", pages.live_ladder, name="live-ladder"),
    path("pools", pages.choose_pool, name="pools"),
    path("pools/<path:pool_id>", pages.pool_page, name="pool"),
    path("connections/<path:provider>/<str:connection_id>", pages.connection_page, name="connection"),
    path("tuning", tuning.tuning_page, name="tuning"),
    path("tuning/budgets/<str:rung>/reset", resets.reset_page, name="tuning-reset"),
    path("tuning/omniroute.json", settings_files.export, name="tuning-export"),
    path("tuning/import", settings_files.read_in, name="tuning-import"),
    path("whatif", whatif.whatif, name="whatif"),
]
