"""Says of the keys there are who made them, by their history; what each may is what it was given, until it is seen
after the migration what its maker has."""

from typing import Any

from django.db import migrations
from django.db.models import F


def name_makers(apps: Any, schema_editor: Any) -> None:
    """Take the maker from the first version of each key; one made by a command has none."""
    alias = schema_editor.connection.alias
    keys = apps.get_model("common", "ApiKey").objects.using(alias)
    versions = apps.get_model("common", "HistoricalApiKey").objects.using(alias)
    keys.update(granted=F("scopes"))
    versions.update(granted=F("scopes"))
    for key_id, maker_id in versions.filter(history_type="+").values_list("id", "history_user_id"):
        keys.filter(pk=key_id).update(maker_id=maker_id)
        versions.filter(id=key_id).update(maker_id=maker_id)


class Migration(migrations.Migration):

    dependencies = [
        ('common', '0009_key_rights'),
    ]

    operations = [
        migrations.RunPython(name_makers, migrations.RunPython.noop),
    ]
