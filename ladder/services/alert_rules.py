"""Make, change, pause and delete the rules of alerts; what they raised is resolved by the next look."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from ladder.core.alerts.channels import LONGEST_NAME
from ladder.core.alerts.delivery import DeliveryState
from ladder.core.alerts.quiet import DAYS, quiet_until
from ladder.core.alerts.rules import IN_USE, UNITS, AlertKind
from ladder.core.alerts.words import NoticeKind
from ladder.core.ids import POOL_IDS
from ladder.core.values import PAID_RUNGS, Rung, Weekday
from ladder.mapping import to_quiet_hours
from ladder.models import AlertDelivery, AlertRule
from ladder.selectors.alert_subjects import absent_subjects
from ladder.services.alerts import new_delivery
from ladder.services.settings import is_zone
from omniroute_admin.common.errors import BadRequest, FieldError, field
from omniroute_admin.common.history import Actor, stamp

RULE_FIELDS = (
    "name",
    "subject",
    "threshold",
    "channels",
    "for_seconds",
    "quiet_from",
    "quiet_to",
    "quiet_zone",
    "quiet_days",
    "is_enabled",
)
"""What of a rule can be changed; its kind stays."""

SUBJECTS: Mapping[AlertKind, Sequence[str]] = {
    AlertKind.RUNG_EXHAUSTED: ("", *(rung.word for rung in Rung)),
    AlertKind.POOL_EMPTY: tuple(POOL_IDS),
    AlertKind.PAID_SERVING: ("", *(rung.word for rung in PAID_RUNGS)),
    AlertKind.BUDGET: ("", *(rung.word for rung in PAID_RUNGS)),
}
"""What a rule can be about where that is one of a list; elsewhere it is the name of a connection or a provider."""

USUAL: Sequence[tuple[str, AlertKind, str, int]] = (
    ("A rung is exhausted", AlertKind.RUNG_EXHAUSTED, "", 60),
    ("The plan pool is empty", AlertKind.POOL_EMPTY, "auto/subscription", 60),
    ("A paid rung serves", AlertKind.PAID_SERVING, "", 60),
    ("A budget is nearly spent", AlertKind.BUDGET, "", 0),
    ("No readings come", AlertKind.NO_READINGS, "", 0),
    ("A billing entry is unreviewed", AlertKind.UNREVIEWED, IN_USE, 0),
    ("A plan bills past its allowance", AlertKind.OVERAGE, "", 0),
)
"""The rules that one button makes: name, kind, subject, and for how many seconds a change must last."""


def create_rule(*, kind: str, actor: Actor, reason: str, now: datetime, **values: Any) -> AlertRule:
    """Store a rule.

    Raises:
        BadRequest: naming every field that cannot be.
        ValidationError: naming every field that a column refuses.
    """
    with transaction.atomic():
        return _save(AlertRule(looks_for=kind, created_at=now), values, actor=actor, reason=reason, now=now)


def update_rule(
    *,
    rule: AlertRule,
    changes: Mapping[str, Any],
    actor: Actor,
    reason: str,
    now: datetime,
    check: Callable[[AlertRule], None] | None = None,
) -> AlertRule:
    """Change a rule and return it; where nothing differs nothing is written.

    What its quiet hours held waits for the new ones, or is due at once where it is quiet no more. `check` sees the
    locked row and may refuse.

    Raises:
        BadRequest: naming every field that cannot be.
        ValidationError: naming every field that a column refuses.
        AlertRule.DoesNotExist: it was deleted meanwhile.
    """
    with transaction.atomic():
        row = AlertRule.objects.select_for_update().get(pk=rule.pk)
        if check is not None:
            check(row)
        if all(getattr(row, name) == value for name, value in changes.items()):
            return row
        _save(row, changes, actor=actor, reason=reason, now=now)
        end = quiet_until(quiet=to_quiet_hours(row), at=now)
        held = AlertDelivery.objects.filter(rule=row, state=DeliveryState.HELD.value)
        held.update(next_attempt_at=end or now)
        return row


def delete_rule(*, rule: AlertRule, actor: Actor, reason: str, now: datetime) -> None:
    """Delete a rule; what it raised and delivered stays in the log, and what is open is resolved by the next look."""
    with transaction.atomic():
        row = AlertRule.objects.select_for_update().filter(pk=rule.pk).first()
        if row is not None:
            stamp(instance=row, actor=actor, reason=reason, now=now)
            row.delete()


def add_usual_rules(*, channel: str, actor: Actor, reason: str, now: datetime) -> list[AlertRule]:
    """Make those of the usual rules that there is no rule of the same kind and subject of; they use one channel."""
    with transaction.atomic():
        there = set(AlertRule.objects.values_list("looks_for", "subject"))
        return [
            create_rule(
                kind=kind.value,
                name=name,
                subject=subject,
                threshold=UNITS[kind].usual if kind in UNITS else None,
                channels=[channel] if channel else [],
                for_seconds=seconds,
                actor=actor,
                reason=reason,
                now=now,
            )
            for name, kind, subject, seconds in USUAL
            if (kind.value, subject) not in there
        ]


def send_test(*, rule: AlertRule, actor: Actor, now: datetime) -> list[AlertDelivery]:
    """Put a test to each channel of a rule in the queue, quiet hours or not, and return them."""
    tests = [
        new_delivery(alert=None, rule=rule, channel=name, kind=NoticeKind.TEST, now=now, asked_by=actor.name)
        for name in rule.channels
    ]
    return AlertDelivery.objects.bulk_create(tests)


def try_again(*, delivery: AlertDelivery, now: datetime) -> bool:
    """Put a delivery that was given up in the queue as if it were new; False where it was not given up.

    With a raise its resolve comes too, and with a resolve its raise, so that neither stands alone.
    """
    pair = AlertDelivery.objects.filter(pk=delivery.pk)
    if delivery.alert_id is not None:
        pair = AlertDelivery.objects.filter(alert=delivery.alert_id, channel=delivery.channel)
    again = {"state": DeliveryState.QUEUED.value, "attempts": 0, "next_attempt_at": now, "last_error": ""}
    return pair.filter(state=DeliveryState.GIVEN_UP.value).update(**again) > 0


def _save(row: AlertRule, values: Mapping[str, Any], *, actor: Actor, reason: str, now: datetime) -> AlertRule:
    before = None if row.pk is None else row.subject
    for name, value in values.items():
        setattr(row, name, value)
    row.updated_at = now
    errors = list(filter(None, (check(row) for check in _CHECKS)))
    # A rule whose connection is gone can still be paused and renamed.
    if row.subject != before and absent_subjects(subjects=[(row.looks_for, row.subject)]):
        errors.append(field("subject", _ABSENT))
    if errors:
        raise BadRequest("The rule cannot be.", errors=errors)
    row.full_clean()
    stamp(instance=row, actor=actor, reason=reason, now=now)
    row.save()
    return row


_ABSENT = (
    "There is nothing of that name, so nothing would ever be told: expected a connection as its page's address has it, "
    "as in claude/c1, or a provider with a billing entry; the other words stand beside the field."
)


def _subject(row: AlertRule) -> FieldError | None:
    known = SUBJECTS.get(AlertKind(row.looks_for)) if row.looks_for in set(AlertKind) else None
    if known is None or row.subject in known:
        return None
    return field("subject", f"Expected one of: {', '.join(filter(None, known))}.")


def _threshold(row: AlertRule) -> FieldError | None:
    unit = UNITS.get(AlertKind(row.looks_for)) if row.looks_for in set(AlertKind) else None
    if unit is None:
        return None if row.threshold is None else field("threshold", "This kind of rule has no number.")
    if row.threshold is None or not unit.least <= row.threshold <= unit.most:
        return field("threshold", f"Expected {unit.least} to {unit.most} {unit.word}.")
    return None


def _channels(row: AlertRule) -> FieldError | None:
    is_list = isinstance(row.channels, list) and all(isinstance(name, str) for name in row.channels)
    if is_list and all(0 < len(name) <= LONGEST_NAME for name in row.channels):
        return None
    return field("channels", "Expected names of channels.")


def _zone(row: AlertRule) -> FieldError | None:
    return None if is_zone(row.quiet_zone) else field("quiet_zone", "Expected an IANA zone, as in Europe/Berlin.")


def _days(row: AlertRule) -> FieldError | None:
    words = {day.value for day in Weekday}
    if not isinstance(row.quiet_days, list) or not words.issuperset(row.quiet_days):
        return field("quiet_days", "Expected days of the week, as in monday.")
    always = row.quiet_from is not None and row.quiet_from == row.quiet_to and len(row.quiet_days) in {0, len(DAYS)}
    return field("quiet_to", "This would be quiet for ever: pause the rule instead.") if always else None


_CHECKS = (_subject, _threshold, _channels, _zone, _days)
