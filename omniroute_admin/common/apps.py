"""The lowest layer: what both apps stand on (revision, keys, names, errors)."""

from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate

from omniroute_admin.common.core.roles import ROLES


class CommonConfig(AppConfig):
    """Configure the shared app."""

    name = "omniroute_admin.common"
    label = "common"
    verbose_name = "Access"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Name the actor on every history row, keep the revision's row, write the uses of keys after each answer."""
        from django.core.signals import request_finished
        from simple_history.signals import pre_create_historical_record

        from omniroute_admin.common.meters import share_in
        from omniroute_admin.common.receivers import watch_users
        from omniroute_admin.common.services.key_use import write_uses
        from omniroute_admin.common.services.kinds import register_kinds

        share_in(Path(settings.METRICS_DIR))
        register_kinds()
        watch_users()
        post_migrate.connect(_make_row, sender=self)
        post_migrate.connect(_make_roles, sender=self)
        post_migrate.connect(_bound_keys, sender=self)
        request_finished.connect(write_uses, dispatch_uid="common.key_uses")
        pre_create_historical_record.connect(_name_the_actor, dispatch_uid="common.history_actor")


def _make_row(*, using: str, **_: Any) -> None:
    """Make the one row of the revision."""
    from omniroute_admin.common.models import Revision

    Revision.objects.using(using).get_or_create(pk=1)


def _make_roles(*, using: str, **_: Any) -> None:
    """Make the group of each role that is not there: one deleted by hand comes back with the next migration."""
    from django.contrib.auth.models import Group

    for name in ROLES:
        Group.objects.using(using).get_or_create(name=name)


def _bound_keys(*, using: str, **_: Any) -> None:
    """Bring keys in line with what their makers may: an upgrade may change what a role is."""
    from django.db import DEFAULT_DB_ALIAS, connections

    from omniroute_admin.common import clock
    from omniroute_admin.common.history import Actor
    from omniroute_admin.common.models import ApiKey
    from omniroute_admin.common.services.key_grants import regrant_keys

    with connections[using].cursor() as cursor:
        description = connections[using].introspection.get_table_description(cursor, ApiKey._meta.db_table)
    if using == DEFAULT_DB_ALIAS and "granted" in {column.name for column in description}:  # not on the way back
        regrant_keys(maker_ids=None, actor=Actor(name="migration"), reason="an upgrade", now=clock.now())


def _name_the_actor(*, instance: Any, history_instance: Any, **_: Any) -> None:
    """Take the actor that `stamp` put on the instance; else the signed-in user of the request."""
    name = getattr(instance, "_history_actor", "")
    if name:
        history_instance.history_user_id = instance._history_user_id
    elif history_instance.history_user is not None:
        name = history_instance.history_user.get_username()
    history_instance.history_actor = name
