"""How long ago a billing entry was reviewed, in words (SPEC 5, 4)."""

from datetime import date
from enum import StrEnum

import msgspec

OLD_AFTER_DAYS = 90
"""A review older than this stands out: plans change their rules about every season."""


class ReviewAge(StrEnum):
    """What a review's age means to its reader."""

    NEVER = "never"
    FRESH = "fresh"
    OLD = "old"


class Review(msgspec.Struct, frozen=True):
    """A review's age, and the words for it."""

    age: ReviewAge
    words: str


def review_of(*, reviewed_on: date | None, today: date) -> Review:
    """Return how long ago the review was; exactly 90 days is fresh, and so is one dated ahead."""
    if reviewed_on is None:
        return Review(ReviewAge.NEVER, "never reviewed")
    days = (today - reviewed_on).days
    if days < 0:
        return Review(ReviewAge.FRESH, f"dated ahead, {reviewed_on.isoformat()}")
    age = ReviewAge.OLD if days > OLD_AFTER_DAYS else ReviewAge.FRESH
    return Review(age, "today" if days == 0 else f"{days} day{'' if days == 1 else 's'} ago")
