"""`manage.py migrate`: Django's own, one at a time."""

from typing import Any

from django.core.management.commands.migrate import Command as Migrate

from omniroute_admin.alone import alone


class Command(Migrate):
    """Apply migrations; of several that are started at once, each waits for the one before it.

    Every container of an installation may migrate when it starts: without the lock the second would find half of what
    the first one makes.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, alone."""
        with alone("migrate", say=self._say):
            super().handle(*args, **options)

    def _say(self, line: str) -> None:
        self.stderr.write(f"migrate: {line}")
