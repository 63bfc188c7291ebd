"""A file that is there whole or not at all, for its owner alone."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def written_whole(*, file: Path, overwrite: bool) -> Iterator[IO[bytes]]:
    """Yield a file aside, which takes the place of `file` when the block ends well; else nothing is left of it.

    Raises:
        FileExistsError: `file` is there, and `overwrite` is not set.
        OSError: it cannot be written.
    """
    if file.exists() and not overwrite:
        raise FileExistsError(f"{file} is there already")
    aside = file.with_name(f".{file.name}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _put(aside, file, overwrite)
    finally:
        aside.unlink(missing_ok=True)


def _put(aside: Path, file: Path, overwrite: bool) -> None:
    if overwrite:
        aside.replace(file)
    else:
        # Unlike a rename, a link takes no other file's place: one that came meanwhile is kept.
        file.hardlink_to(aside)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
