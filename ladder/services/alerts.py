"""Look for alerts: raise a condition once, resolve it once, each with its deliveries in the same transaction.

Looking holds no lock. What a look found is written only if no other look wrote since it began, so that of many
processes one raises; the constraint of the table says so once more. Nothing here moves the revision.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import msgspec
from django.db import transaction
from django.urls import NoReverseMatch, reverse

from ladder.core.alerts.conditions import find_conditions
from ladder.core.alerts.delivery import DeliveryState
from ladder.core.alerts.quiet import quiet_until
from ladder.core.alerts.rules import AlertFacts, AlertKind, Condition, Verdict, decide
from ladder.core.alerts.words import CHANGED, DELETED, PAUSED, NoticeKind, resolution
from ladder.mapping import to_alert_rule, to_quiet_hours
from ladder.models import Alert, AlertDelivery, AlertLook, AlertRule
from ladder.selectors.alerts import enabled_rules, open_alerts, read_alert_facts
from omniroute_admin.common.zone import display_zone

KEPT_FOR = timedelta(days=180)
"""How long alerts that are over, and deliveries that are done, are kept."""


class Looked(msgspec.Struct, frozen=True):
    """How many conditions a look raised and resolved."""

    raised: int = 0
    resolved: int = 0


class _Sight(msgspec.Struct, frozen=True):
    """What one look sees: the rules by key, what is raised by key, and what there is."""

    rules: Mapping[int, AlertRule]
    alerts: Mapping[str, Alert]
    facts: AlertFacts
    conditions: Mapping[str, Condition]


def look_for_alerts(*, now: datetime) -> Looked:
    """Raise what is so and was not, resolve what was raised and is no longer so; one that comes late does both once.

    Where another look wrote meanwhile nothing is written: the next look sees what is left.
    """
    # Before all else: a look that writes after this line makes the version another, whatever is read from here on.
    seen = AlertLook.objects.filter(pk=1).values_list("version", "differing").first()
    rows, alerts = enabled_rules(), open_alerts()
    if not rows and not alerts:
        return Looked()
    version, kept = seen or (0, {})
    sight = _look(rows, alerts, now)
    differing = {key: datetime.fromisoformat(at) for key, at in kept.items()}
    holds = {key: sight.rules[one.rule].for_seconds for key, one in sight.conditions.items()}
    holds |= {key: one.rule.for_seconds for key, one in sight.alerts.items() if one.rule_id in sight.rules and one.rule}
    verdict = decide(conditions=sight.conditions, raised=sight.alerts, differing=differing, for_seconds=holds, now=now)
    if not (verdict.raised or verdict.resolved or verdict.differing != differing):
        return Looked()
    return _write(sight, verdict, version=version, now=now)


def _look(rows: Iterable[AlertRule], alerts: Iterable[Alert], now: datetime) -> _Sight:
    rules = {row.pk: row for row in rows}
    facts = read_alert_facts(rows=rules.values(), now=now, zone=display_zone())
    conditions = find_conditions(rules=[to_alert_rule(row) for row in rules.values()], facts=facts)
    return _Sight(rules, {alert.key: alert for alert in alerts}, facts, conditions)


def _write(sight: _Sight, verdict: Verdict, *, version: int, now: datetime) -> Looked:
    with transaction.atomic():
        if not _advance(verdict, version=version, now=now):
            return Looked()
        # A rule that was paused or deleted since is not raised by: its lock is held, or it is not there to be locked.
        rules = {row.pk: row for row in AlertRule.objects.select_for_update().filter(is_enabled=True)}
        raised = [sight.conditions[key] for key in verdict.raised if sight.conditions[key].rule in rules]
        for condition in raised:
            raise_alert(condition=condition, rule=rules[condition.rule], facts=sight.facts, now=now)
        for key in verdict.resolved:
            alert = sight.alerts[key]
            resolve_alert(alert=alert, words=_why_over(alert, sight), now=now)
    return Looked(len(raised), len(verdict.resolved))


def _advance(verdict: Verdict, *, version: int, now: datetime) -> bool:
    """Store what is left to wait for and return True, or False where another look has written since this one began."""
    values = {"at": now, "differing": {key: at.isoformat() for key, at in verdict.differing.items()}}
    if version == 0:
        return AlertLook.objects.get_or_create(pk=1, defaults=values)[1]
    return AlertLook.objects.filter(pk=1, version=version).update(version=version + 1, **values) == 1


def _why_over(alert: Alert, sight: _Sight) -> str:
    rule = alert.rule
    if rule is None:
        return DELETED
    if not rule.is_enabled:
        return PAUSED
    core = to_alert_rule(rule)
    if not find_conditions(rules=[msgspec.structs.replace(core, subject=alert.subject)], facts=sight.facts):
        return resolution(kind=AlertKind(alert.kind), subject=alert.subject, facts=sight.facts)
    return CHANGED


def raise_alert(*, condition: Condition, rule: AlertRule, facts: AlertFacts, now: datetime) -> Alert:
    """Store an alert and its deliveries, one to each channel of the rule; in quiet hours they wait for the end."""
    alert = Alert.objects.create(
        rule=rule,
        rule_name=rule.name,
        kind=condition.kind.value,
        subject=condition.subject,
        key=condition.key,
        title=condition.title,
        text=condition.text,
        page=_path(condition.page),
        raised_at=now,
        revision=int(facts.occupancy.revision),
    )
    AlertDelivery.objects.bulk_create(
        new_delivery(alert=alert, rule=rule, channel=channel, kind=NoticeKind.RAISED, now=now)
        for channel in rule.channels
    )
    return alert


def resolve_alert(*, alert: Alert, words: str, now: datetime) -> bool:
    """Resolve an alert once; False where it was resolved already.

    Of a raise that still waits for the end of quiet hours nobody is told; every other one gets its counterpart on the
    same channel.
    """
    at = max(now, alert.raised_at)
    if not Alert.objects.filter(pk=alert.pk, resolved_at=None).update(resolved_at=at, resolved_text=words):
        return False
    raises = AlertDelivery.objects.filter(alert=alert, kind=NoticeKind.RAISED.value)
    held = DeliveryState.HELD.value
    raises.filter(state=held).update(state=DeliveryState.ONLY_LOGGED.value, next_attempt_at=None)
    told = raises.exclude(state=DeliveryState.ONLY_LOGGED.value).order_by("at", "id")
    AlertDelivery.objects.bulk_create(
        new_delivery(alert=alert, rule=alert.rule, channel=one.channel, kind=NoticeKind.RESOLVED, now=now)
        for one in told
    )
    return True


def new_delivery(
    *, alert: Alert | None, rule: AlertRule | None, channel: str, kind: NoticeKind, now: datetime, asked_by: str = ""
) -> AlertDelivery:
    """Return a delivery that is due now, or at the end of the rule's quiet hours; a test does not wait for that."""
    end = None if kind is NoticeKind.TEST else quiet_until(quiet=to_quiet_hours(rule), at=now)
    return AlertDelivery(
        alert=alert,
        rule=rule,
        rule_name=rule.name if rule else (alert.rule_name if alert else ""),
        channel=channel,
        kind=kind.value,
        state=(DeliveryState.HELD if end else DeliveryState.QUEUED).value,
        at=now,
        next_attempt_at=end or now,
        was_held=end is not None,
        asked_by=asked_by,
    )


def _path(page: tuple[str | int, ...]) -> str:
    name, *parts = page
    try:
        return reverse(str(name), args=parts)
    except NoReverseMatch:
        return ""


def thin_alerts(*, now: datetime) -> int:
    """Drop alerts that were over 180 days ago with their deliveries, and tests as old; return how many rows went."""
    old = now - KEPT_FOR
    over, _ = Alert.objects.filter(resolved_at__lt=old).delete()
    tests, _ = AlertDelivery.objects.filter(alert=None, at__lt=old, next_attempt_at=None).delete()
    return over + tests
