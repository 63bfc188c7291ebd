"""Make the one row of the settings and the two budgets (M3: daily, UTC, no budget set)."""

from django.db import migrations


def make_rows(apps, schema_editor):
    apps.get_model("ladder", "LadderSettings").objects.get_or_create(pk=1)
    for rung in ("cheap", "premium"):
        apps.get_model("ladder", "RungBudget").objects.get_or_create(rung=rung)


class Migration(migrations.Migration):
    dependencies = [("ladder", "0001_initial")]
    operations = [migrations.RunPython(make_rows, migrations.RunPython.noop)]
