"""Addresses of the ladder's pages."""

from django.urls import path, register_converter
from django.urls.converters import StringConverter

from ladder.views import (
    alert_rules,
    alerts,
    connection,
    connections,
    pages,
    resets,
    settings_files,
    spend,
    timeline,
    tuning,
    uncurated,
    whatif,
)
from ladder.views.connection_acts import ACTS


class ActConverter(StringConverter):
    """Matches the acts there are, and nothing else: a connection's own address never reads as one."""

    regex = "|".join(ACTS)


register_converter(ActConverter, "act")

_ONE = "connections/<path:provider>/<str:connection_id>"

urlpatterns = [
    path("", pages.ladder_page, name="ladder"),
    path("live/ladder", pages.live_ladder, name="live-ladder"),
    path("pools", pages.choose_pool, name="pools"),
    path("pools/<path:pool_id>", pages.pool_page, name="pool"),
    path("catalogue/uncurated", uncurated.uncurated_page, name="uncurated"),
    path("spend", spend.spend_page, name="spend"),
    path("spend/breakdown.csv", spend.spend_breakdown_file, name="spend-breakdown"),
    path("spend/events.csv", spend.spend_events_file, name="spend-events"),
    path("timeline", timeline.timeline_page, name="timeline"),
    path("connections", connections.connections_page, name="connections"),
    path("connections/new", connections.add_connection, name="connection-new"),
    path(f"{_ONE}/<act:act>", connection.connection_act, name="connection-act"),
    path(_ONE, connection.connection_page, name="connection"),
    path(f"live/{_ONE}", connection.live_connection, name="live-connection"),
    path("alerts", alerts.alerts_page, name="alerts"),
    path("live/alerts", alerts.live_alerts, name="live-alerts"),
    path("alerts/usual", alert_rules.usual_rules, name="alerts-usual"),
    path("alerts/rules/new", alert_rules.new_rule, name="alert-rule-new"),
    path("alerts/rules/<int:pk>", alert_rules.rule_page, name="alert-rule"),
    path("alerts/rules/<int:pk>/pause", alert_rules.pause_rule, name="alert-rule-pause"),
    path("alerts/rules/<int:pk>/delete", alert_rules.delete_rule_page, name="alert-rule-delete"),
    path("alerts/rules/<int:pk>/test", alert_rules.test_rule, name="alert-rule-test"),
    path("alerts/deliveries/<uuid:pk>/again", alert_rules.send_again, name="alert-again"),
    path("tuning", tuning.tuning_page, name="tuning"),
    path("tuning/budgets/<str:rung>/reset", resets.reset_page, name="tuning-reset"),
    path("tuning/omniroute.json", settings_files.export, name="tuning-export"),
    path("tuning/import", settings_files.read_in, name="tuning-import"),
    path("whatif", whatif.whatif, name="whatif"),
]
