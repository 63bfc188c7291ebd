"""The words of SPEC 1 as database choices; the core's enums are the one list."""

from billing_catalog.core.values import Billing
from ladder.core.alerts.delivery import DeliveryState
from ladder.core.alerts.rules import AlertKind
from ladder.core.alerts.words import NoticeKind
from ladder.core.timeline.causes import Cause
from ladder.core.values import Combine, CooldownCause, MoneyKind, Period, ReadingStatus, Rung, Weekday

STATUS_CHOICES = [(word.value, word.value) for word in ReadingStatus]
COMBINE_CHOICES = [(word.value, word.value) for word in Combine]
CAUSE_CHOICES = [(word.value, word.value) for word in CooldownCause]
PERIOD_CHOICES = [(word.value, word.value) for word in Period]
WEEKDAY_CHOICES = [(word.value, word.value) for word in Weekday]
BUDGET_RUNG_CHOICES = [("cheap", "cheap"), ("premium", "premium")]
RUNG_CHOICES = [(rung.word, rung.word) for rung in Rung]
FLIP_CAUSE_CHOICES = [(word.value, word.value) for word in Cause]
FLIP_KIND_CHOICES = [("connection", "connection"), ("rung", "rung")]
BILLING_CHOICES = [(word.value, word.value) for word in Billing]
MONEY_CHOICES = [(word.value, word.value) for word in MoneyKind]
ALERT_KIND_CHOICES = [(word.value, word.value) for word in AlertKind]
NOTICE_CHOICES = [(word.value, word.value) for word in NoticeKind]
DELIVERY_STATE_CHOICES = [(word.value, word.value) for word in DeliveryState]
