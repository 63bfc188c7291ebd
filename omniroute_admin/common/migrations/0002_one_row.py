"""Make the one row of the revision."""

from django.db import migrations


def make_row(apps, schema_editor):
    apps.get_model("common", "Revision").objects.get_or_create(pk=1)


class Migration(migrations.Migration):
    dependencies = [("common", "0001_initial")]
    operations = [migrations.RunPython(make_row, migrations.RunPython.noop)]
