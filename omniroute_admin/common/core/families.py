"""Metrics as values: a name, what it means, and its samples, before they are written in anybody's format."""

from collections.abc import Iterable

import msgspec

Samples = tuple[tuple[tuple[str, ...], float], ...]


class Gauge(msgspec.Struct, frozen=True):
    """A number that goes up and down, apart by labels; its name ends in its unit."""

    name: str
    help_text: str
    labels: tuple[str, ...] = ()
    samples: Samples = ()


def gauge(name: str, help_text: str, value: float | None) -> Gauge:
    """Return a gauge of one number; None is none."""
    return Gauge(name, help_text, (), () if value is None else (((), float(value)),))


def gauges(name: str, help_text: str, labels: str, samples: Iterable[tuple[tuple[str, ...], float]]) -> Gauge:
    """Return a gauge of several numbers; `labels` are words with blanks between."""
    return Gauge(name, help_text, tuple(labels.split()), tuple((values, float(number)) for values, number in samples))
