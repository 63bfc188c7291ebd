"""The progress bar of the commands that take long."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm


@contextmanager
def progress_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """Yield what moves a bar on the terminal, given how many rows are done and of how many; elsewhere there is none."""
    with tqdm(desc=title, unit=" rows", file=sys.stderr, disable=not sys.stderr.isatty(), leave=False) as bar:

        def move(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield move
