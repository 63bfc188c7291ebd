"""Whether what a rule of alerts is about is there at all: of something that is not there, nothing is ever told."""

from collections.abc import Iterable, Iterator, Mapping

from billing_catalog.models import BillingEntry
from ladder.core.alerts.rules import EACH, IN_USE, AlertKind
from ladder.models import Connection

Subject = tuple[str, str]
"""The kind of a rule, and the word for what it is about."""

_OF_ALL: Mapping[str, frozenset[str]] = {
    AlertKind.NO_READINGS: frozenset({"", EACH}),
    AlertKind.OVERAGE: frozenset({""}),
    AlertKind.UNREVIEWED: frozenset({"", IN_USE}),
}
"""The kinds that may be about one thing alone, with their words for all of them."""


def absent_subjects(*, subjects: Iterable[Subject]) -> frozenset[Subject]:
    """Return those that are about a connection or a provider's billing entry that is not there; two queries at most.

    Whoever was deleted is not there.
    """
    named = {(kind, word) for kind, word in subjects if word not in _OF_ALL.get(kind, {word})}
    providers = {word for kind, word in named if kind == AlertKind.UNREVIEWED}
    connections = {word for kind, word in named if kind != AlertKind.UNREVIEWED}
    there = {*_with_entries(providers), *_live(connections)}
    return frozenset(one for one in named if one[1] not in there)


def _with_entries(providers: set[str]) -> Iterator[str]:
    if providers:
        yield from BillingEntry.objects.filter(provider__in=providers).values_list("provider", flat=True)


def _live(names: set[str]) -> Iterator[str]:
    """Yield those of these names, as in claude/c1, that are live connections."""
    if names:
        ids = {name.partition("/")[2] for name in names}
        rows = Connection.objects.live().filter(connection_id__in=ids).values_list("provider", "connection_id")
        yield from ("/".join(row) for row in rows)
