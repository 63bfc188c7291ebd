"""One page of a long list (SPEC 5, 1)."""

import re

import msgspec

_NUMBER = re.compile(r"[0-9]{1,6}")


def page_number(text: str) -> int:
    """Return the page that an address asks for; what is no number is the first."""
    return max(1, int(text)) if _NUMBER.fullmatch(text) else 1


class Leaf(msgspec.Struct, frozen=True):
    """Which part of a list of `total` lines is shown: page `page` of `pages`, `size` lines on each, counted from 1."""

    total: int
    page: int
    size: int

    @property
    def pages(self) -> int:
        """Return how many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def first(self) -> int:
        """Return the number of the first line on this page, counted from 1; 0 where there is none."""
        return (self.page - 1) * self.size + 1 if self.total else 0

    @property
    def last(self) -> int:
        """Return the number of the last line on this page."""
        return min(self.page * self.size, self.total)

    @property
    def part(self) -> slice:
        """Return the part of the list that this page holds."""
        return slice((self.page - 1) * self.size, self.page * self.size)


def leaf_of(*, total: int, page: int, size: int) -> Leaf:
    """Return the page that is asked for; past the end the last one there is."""
    return Leaf(total=total, page=min(page, Leaf(total=total, page=1, size=size).pages), size=size)
