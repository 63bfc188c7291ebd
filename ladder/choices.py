"""The words of SPEC 1 as database choices; the core's enums are the one list."""

from ladder.core.values import Combine, CooldownCause, Period, ReadingStatus, Weekday

STATUS_CHOICES = [(word.value, word.value) for word in ReadingStatus]
COMBINE_CHOICES = [(word.value, word.value) for word in Combine]
CAUSE_CHOICES = [(word.value, word.value) for word in CooldownCause]
PERIOD_CHOICES = [(word.value, word.value) for word in Period]
WEEKDAY_CHOICES = [(word.value, word.value) for word in Weekday]
BUDGET_RUNG_CHOICES = [("cheap", "cheap"), ("premium", "premium")]
