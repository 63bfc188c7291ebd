"""The group of each role (SPEC 5)."""

from typing import Any

from django.db import migrations

from omniroute_admin.common.core.roles import ROLES


def make_roles(apps: Any, schema_editor: Any) -> None:
    group = apps.get_model("auth", "Group")
    for name in ROLES:
        group.objects.using(schema_editor.connection.alias).get_or_create(name=name)


class Migration(migrations.Migration):
    dependencies = [("common", "0002_shown"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop)]
