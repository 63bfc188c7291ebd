"""Review age in words (SPEC 5, 4)."""

from datetime import date, timedelta

import pytest

from billing_catalog.core.review import ReviewAge, review_of

TODAY = date(2026, 8, 27)


@pytest.mark.parametrize(
    ("days", "age", "words"),
    [
        (None, ReviewAge.NEVER, "never reviewed"),
        (0, ReviewAge.FRESH, "today"),
        (1, ReviewAge.FRESH, "1 day ago"),
        (90, ReviewAge.FRESH, "90 days ago"),
        (91, ReviewAge.OLD, "91 days ago"),
        (-1, ReviewAge.FRESH, "dated ahead, 2026-08-28"),
    ],
)
def test_a_review_stands_out_once_it_is_older_than_90_days(days: int | None, age: ReviewAge, words: str) -> None:
    reviewed_on = None if days is None else TODAY - timedelta(days=days)
    found = review_of(reviewed_on=reviewed_on, today=TODAY)
    assert (found.age, found.words) == (age, words)
