"""Reading the traces that writes left for the timeline, and what they are made of."""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from billing_catalog.mapping import read_catalog_rows, read_prices, read_thresholds, read_tier_rules
from billing_catalog.models import FreeProvider, PriceSource
from ladder.core.timeline.trail import Catalogue, Image, Write
from ladder.models import Connection, TimelineCursor, TimelineTrace

_decoder = msgspec.json.Decoder(tuple[Image, ...])


def told_up_to() -> datetime | None:
    """Return up to when the timeline is told, None where no look has been taken yet; one indexed read."""
    return TimelineCursor.objects.filter(pk=1).values_list("at", flat=True).first()


def read_newest_first() -> Iterator[Write]:
    """Yield the writes that no look has told of, from the newest to the oldest.

    One whose images this version cannot read is yielded without any: what it changed is then found, not told.
    """
    rows = TimelineTrace.objects.order_by("-id").values_list("at", "revision", "before")
    for at, revision, before in rows.iterator():
        yield Write(at, revision, _images(bytes(before)))


def _images(before: bytes) -> tuple[Image, ...]:
    try:
        return _decoder.decode(before)
    except msgspec.DecodeError:
        return ()


def read_oldest_keys(*, most: int) -> list[int]:
    """Return the keys of the oldest traces, at most so many, in commit order."""
    return list(TimelineTrace.objects.order_by("id").values_list("pk", flat=True)[:most])


def read_catalogue(*, since: datetime) -> Catalogue:
    """Read all that the catalogue says and said since an instant; six queries."""
    return Catalogue(
        rows=read_catalog_rows(),
        prices=read_prices(now=since),
        tier_rules=read_tier_rules(),
        free_providers=frozenset(FreeProvider.objects.values_list("provider", flat=True)),
        seat_sellers=frozenset(PriceSource.objects.filter(sells_seats=True).values_list("provider", flat=True)),
        thresholds=read_thresholds(),
    )


def read_providers() -> dict[int, str]:
    """Read the provider of each live connection by the key of its row; one query."""
    return dict(Connection.objects.live().order_by().values_list("pk", "provider"))
