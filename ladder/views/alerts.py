"""The page of alerts: what is open, the rules, and the log of deliveries, which keeps itself up to date."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ladder.core.alerts.channels import LONGEST_NAME, Channel
from ladder.core.alerts.words import NoticeKind
from ladder.selectors.alert_log import FILTERS, channels_in_log, find_deliveries, is_soon, rules_with_counts
from ladder.selectors.alert_subjects import absent_subjects
from ladder.selectors.alerts import channels, open_alerts
from ladder.views.paging import leaf_of, page_number
from ladder.views.presenting.alerts import DELIVERY_STATES, log_lines, open_line, rule_line
from omniroute_admin.common import clock
from omniroute_admin.common.core.screen import Glance
from omniroute_admin.common.scopes import rights_of_user
from omniroute_admin.common.views.guard import needs, require_right, sign_in_again
from omniroute_admin.common.zone import display_zone

PAGE_SIZE = 25


@needs("settings:read")
@never_cache
@require_safe
def alerts_page(request: HttpRequest) -> HttpResponse:
    """Show what is open on top, then the rules, then the log."""
    glance, named = Glance(now=clock.now(), zone=display_zone()), channels()
    rules = list(rules_with_counts())
    absent = absent_subjects(subjects=[(rule.looks_for, rule.subject) for rule in rules])
    context = _log(request, glance) | {
        "section": "alerts",
        "zone": glance.zone_name,
        "open": [open_line(alert, glance=glance) for alert in open_alerts()],
        "rules": [rule_line(rule, channels=named, absent=absent) for rule in rules],
        "channels": channel_words(named),
        "missing": sorted({name for rule in rules for name in rule.channels} - named.keys()),
    }
    return render(request, "alerts/alerts.html", context)


@never_cache
@require_safe
def live_alerts(request: HttpRequest) -> HttpResponse:
    """Return the lines of the log as they are now; the page asks while something in it is on its way.

    Signed out is 401, not the way to the login page: a script asks here.

    Raises:
        RoleNeededError: the user may not read it.
    """
    if not request.user.is_authenticated:
        return sign_in_again()
    require_right(request.user, "settings:read")
    glance = Glance(now=clock.now(), zone=display_zone())
    return render(request, "alerts/_log_rows.html", _log(request, glance) | {"zone": glance.zone_name})


def channel_words(named: Mapping[str, Channel]) -> list[tuple[str, str]]:
    """Return the channels by name, each with its kind; never its address."""
    return [(channel.name, channel.kind) for channel in sorted(named.values(), key=lambda one: one.name)]


def _log(request: HttpRequest, glance: Glance) -> dict[str, Any]:
    by = _asked(request)
    found = find_deliveries(by=by)
    leaf = leaf_of(total=found.count(), page=page_number(request.GET.get("page", "1")), size=PAGE_SIZE)
    rows = list(found[leaf.part])
    return {
        "leaf": leaf,
        "by": by,
        "filter": urlencode(by),
        "query": urlencode(by | {"page": leaf.page}),
        "lines": log_lines(rows, glance=glance),
        "is_moving": any(is_soon(row) for row in rows),
        "states": list(DELIVERY_STATES.values()),
        "kinds": [kind.value for kind in NoticeKind],
        "log_channels": channels_in_log(),
        "may_change": "settings:write" in rights_of_user(request.user),
    }


def _asked(request: HttpRequest) -> dict[str, str]:
    """Return what the log is narrowed by; what cannot be is left out."""
    known = {"state": DELIVERY_STATES.keys(), "kind": {kind.value for kind in NoticeKind}}
    asked = {name: request.GET.get(name, "")[:LONGEST_NAME].replace("\x00", "") for name in FILTERS}
    return {name: value for name, value in asked.items() if value and value in known.get(name, {value})}
