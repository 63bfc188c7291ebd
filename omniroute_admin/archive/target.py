"""What a database is to be restored into: whether it is in use, and of which version."""

from typing import Any

import msgspec
from django.db import connection

from omniroute_admin.archive.errors import ArchiveError
from omniroute_admin.archive.manifest import Manifest
from omniroute_admin.archive.tables import MADE_BY_MIGRATIONS, kept_models
from omniroute_admin.common.selectors.revision import current_revision
from omniroute_admin.selectors.health import shipped_migrations, unapplied_migrations

_UNUSED_REVISION = 1


class Held(msgspec.Struct, frozen=True):
    """What a database holds now: rows by table, of tables that have any, and its revision."""

    rows: dict[str, int]
    revision: int

    @property
    def is_used(self) -> bool:
        """Tell whether there is anything that did not come from the migrations."""
        return self.revision != _UNUSED_REVISION or not MADE_BY_MIGRATIONS.issuperset(self.rows)


def read_held() -> Held:
    """Count what the database holds now."""
    counts = {model._meta.label: model._base_manager.count() for model in kept_models()}
    return Held({label: count for label, count in counts.items() if count}, current_revision())


def refuse_other_version(manifest: Manifest) -> None:
    """Check that archive, database and product have the same migrations.

    Raises:
        ArchiveError: naming what is missing where, and the remedy.
    """
    missing = unapplied_migrations()
    if missing:
        raise ArchiveError(f"The database lacks {_some(missing)}. Run manage.py migrate first.")
    shipped, archived = set(shipped_migrations()), set(manifest.migrations)
    if archived - shipped:
        raise ArchiveError(
            f"The archive is of version {manifest.product_version}, which knows {_some(archived - shipped)}; this one "
            "does not. Install the version that made it, or a newer one."
        )
    if shipped - archived:
        raise ArchiveError(
            f"The archive is of version {manifest.product_version}, before {_some(shipped - archived)}. "
            "Restore it with that version into a database of its own, then upgrade."
        )


def _some(names: Any) -> str:
    found = sorted(names)
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""  # noqa: PLR2004
    return ", ".join(found[:3]) + more


def database_words() -> str:
    """Return which database this is, without its password."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"SQLite, {settings['NAME']}"
    return f"PostgreSQL, {settings['NAME']} on {settings['HOST'] or 'this machine'}"
