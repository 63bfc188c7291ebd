"""How the one history tells of rules of alerts, and how one goes back to a version of one (SPEC 3, 5)."""

from datetime import datetime
from typing import Any

from ladder.models import AlertRule
from ladder.services.alert_rules import RULE_FIELDS, create_rule, update_rule
from omniroute_admin.common.core.changes import nothing_is, tell_seconds
from omniroute_admin.common.history import Actor
from omniroute_admin.common.kinds import Kind, RollBack, Told


def _present(version: Any, *, now: datetime, lock: bool) -> AlertRule | None:
    rows = AlertRule.objects.select_for_update() if lock else AlertRule.objects.all()
    return rows.filter(pk=version.id).first()


def _turn_back(*, version: Any, present: Any | None, actor: Actor, reason: str, now: datetime) -> None:
    """Change the rule; one that is deleted is made anew."""
    values = {name: getattr(version, name) for name in RULE_FIELDS}
    if present is not None:
        update_rule(rule=present, changes=values, actor=actor, reason=reason, now=now)
        return
    create_rule(kind=version.looks_for, actor=actor, reason=reason, now=now, **values)


ALERT_RULE = Kind(
    key="alert-rule",
    word="alert rule",
    model=AlertRule.history.model,
    fields={
        "name": Told("name"),
        "looks_for": Told("looks for"),
        "subject": Told("about"),
        "threshold": Told("number", nothing_is("none")),
        "channels": Told("channels"),
        "for_seconds": Told("counts after", tell_seconds),
        "quiet_from": Told("quiet from", nothing_is("never")),
        "quiet_to": Told("quiet to", nothing_is("never")),
        "quiet_zone": Told("quiet in zone"),
        "quiet_days": Told("quiet on"),
        "is_enabled": Told("enabled"),
    },
    name=lambda version: str(version.name),
    searched=("name", "looks_for", "subject"),
    roll_back=RollBack(
        right="settings:write",
        fields=RULE_FIELDS,
        present=_present,
        turn_back=_turn_back,
        note="A rule that was deleted is made anew; what the old one raised stays with it.",
    ),
)
