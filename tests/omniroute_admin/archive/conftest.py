"""Databases of their own to restore into, of either kind."""

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from tests.processes import manage

Fresh = Callable[[str], str]


@pytest.fixture
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fresh]:
    """Return what makes a migrated database of a kind, `sqlite` or `postgres`, and returns its address."""
    made: list[str] = []

    def make(kind: str) -> str:
        name = f"restored_{len(made)}_{tmp_path.name[-20:].strip('_')}".lower()
        if kind == "sqlite":
            url = f"sqlite:///{tmp_path / name}.sqlite3"
        else:
            server = request.getfixturevalue("_postgres_url")
            with psycopg.connect(server, autocommit=True) as connection:
                connection.execute(f'CREATE DATABASE "{name}"')
            made.append(name)
            url = f"{server.rpartition('/')[0]}/{quote(name)}"
        done = manage("migrate", "--verbosity", "0", DATABASE_URL=url)
        assert done.returncode == 0, done.stderr
        return url

    yield make
    for name in made:
        with psycopg.connect(request.getfixturevalue("_postgres_url"), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
