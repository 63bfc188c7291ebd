"""The ladder: live state, the decision, its API and its pages."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class LadderConfig(AppConfig):
    """Configure the ladder."""

    name = "ladder"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Make the rows there is one of once the tables are there; say what the history keeps; watch writes."""
        from ladder.services.rollback import register_kinds
        from ladder.services.trail import WATCHER
        from omniroute_admin.common.services.revision import watch_writes

        register_kinds()
        post_migrate.connect(_make_rows, sender=self)
        watch_writes(WATCHER)


def _make_rows(*, using: str, **_: Any) -> None:
    """Make the one row of the settings and the two budgets (M3: daily, UTC, no budget set)."""
    from ladder.models import LadderSettings, RungBudget

    LadderSettings.objects.using(using).get_or_create(pk=1)
    for rung in ("cheap", "premium"):
        RungBudget.objects.using(using).get_or_create(rung=rung)
