"""`manage.py migrate`: Django's own, one at a time, and a SQLite file that it makes is its owner's alone."""

from pathlib import Path
from typing import Any

from django.core.management.commands.migrate import Command as Migrate
from django.db import connections

from omniroute_admin.alone import alone


class Command(Migrate):
    """Apply migrations; of several that are started at once, each waits for the one before it.

    Every container of an installation may migrate when it starts: without the lock the second would find half of what
    the first one makes.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, alone."""
        with alone("migrate", say=self._say):
            keep_to_owner(connections[options["database"]])
            super().handle(*args, **options)

    def _say(self, line: str) -> None:
        self.stderr.write(f"migrate: {line}")


def keep_to_owner(connection: Any) -> None:
    """Make a SQLite file that is not there yet one that its owner alone may read; SQLite gives its mode to the log."""
    if connection.vendor == "sqlite" and not connection.is_in_memory_db():
        file = Path(str(connection.settings_dict["NAME"]))
        if not file.exists():
            file.touch(mode=0o600)
