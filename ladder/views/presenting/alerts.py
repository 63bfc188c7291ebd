"""Alerts, their rules and their deliveries as the page shows them."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

import msgspec

from ladder.core.alerts.channels import Channel
from ladder.core.alerts.rules import EACH, UNITS, AlertKind
from ladder.forms.alerts import ANY, KIND_WORDS
from ladder.models import Alert, AlertDelivery, AlertRule
from ladder.selectors.alert_subjects import Subject
from omniroute_admin.common.core.screen import Glance, Moment, StateWord
from omniroute_admin.common.core.words import span_text

DELIVERY_STATES: Mapping[str, StateWord] = {
    key: StateWord(key=key, word=word, shape=shape, tone=shape)
    for key, word, shape in (
        ("queued", "queued", "unverified"),
        ("failed", "failed, tried again", "stale"),
        ("held_for_quiet", "held for quiet hours", "held"),
        ("sent", "sent", "usable"),
        ("given_up", "given up", "exhausted"),
        ("only_logged", "only logged", "off"),
    )
}
"""Every state of a delivery, in the order a filter lists them."""


class OpenLine(msgspec.Struct, frozen=True):
    """An alert that is open."""

    alert: Alert
    since: Moment


class ChannelWord(msgspec.Struct, frozen=True):
    """A channel as rules and pages name it; `kind` is empty where the environment has no such channel."""

    name: str
    kind: str


class RuleLine(msgspec.Struct, frozen=True):
    """A rule: what it looks for, when it is quiet, and how long a change must last, in words.

    `is_absent`: what it is about is not there.
    """

    rule: Any
    looks_for: str
    about: str
    channels: tuple[ChannelWord, ...]
    quiet: str
    waits: str
    is_absent: bool


class LogLine(msgspec.Struct, frozen=True):
    """A delivery; `next` is when it is tried again."""

    delivery: AlertDelivery
    state: StateWord
    what: str
    at: Moment
    next: Moment | None
    may_try_again: bool


def open_line(alert: Alert, *, glance: Glance) -> OpenLine:
    """Return an open alert as a line."""
    return OpenLine(alert, glance.ago(alert.raised_at))


def rule_line(
    rule: AlertRule, *, channels: Mapping[str, Channel], absent: Container[Subject] = frozenset()
) -> RuleLine:
    """Return a rule as a line; `absent` are subjects that are not there."""
    named = tuple(ChannelWord(name, channels[name].kind if name in channels else "") for name in rule.channels)
    is_absent = (rule.looks_for, rule.subject) in absent
    return RuleLine(rule, looks_for(rule), about(rule), named, quiet_words(rule), _wait(rule), is_absent)


def looks_for(rule: AlertRule) -> str:
    """Return what a rule looks for, with its number."""
    words, _ = KIND_WORDS[AlertKind(rule.looks_for)]
    unit = UNITS.get(AlertKind(rule.looks_for))
    if unit is None:
        return words
    number = f"{rule.threshold} {unit.word.removesuffix('s') if rule.threshold == 1 else unit.word}"
    plain = words.replace("N %", number).replace(f"N {unit.word}", number)
    return plain if plain != words else f"{words}, within {number}"


def about(rule: AlertRule) -> str:
    """Return what a rule is about."""
    if rule.looks_for == AlertKind.NO_READINGS and not rule.subject:
        return "all plans together"
    if rule.subject == EACH:
        return "each connection"
    return rule.subject or ANY.get(AlertKind(rule.looks_for), "each alone")


def quiet_words(rule: AlertRule) -> str:
    """Return when a rule is quiet; nothing where it never is."""
    if rule.quiet_from is None or rule.quiet_to is None:
        return ""
    days = f", {', '.join(day[:3].capitalize() for day in rule.quiet_days)}" if rule.quiet_days else ""
    return f"{rule.quiet_from:%H:%M} to {rule.quiet_to:%H:%M} {rule.quiet_zone}{days}"


def _wait(rule: AlertRule) -> str:
    return f"once it lasted {span_text(rule.for_seconds)}" if rule.for_seconds else ""


def log_lines(deliveries: Iterable[AlertDelivery], *, glance: Glance) -> list[LogLine]:
    """Return deliveries as lines."""
    return [_log_line(one, glance) for one in deliveries]


def _log_line(one: AlertDelivery, glance: Glance) -> LogLine:
    what = one.alert.title if one.alert is not None else f"asked for by {one.asked_by or 'nobody named'}"
    return LogLine(
        delivery=one,
        state=DELIVERY_STATES[one.state],
        what=what,
        at=glance.ago(one.at),
        next=None if one.next_attempt_at is None else glance.until(one.next_attempt_at),
        may_try_again=one.state == "given_up",
    )
