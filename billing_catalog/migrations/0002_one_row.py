"""Make the one row of the tier thresholds (T: 0 and 1.00)."""

from django.db import migrations


def make_row(apps, schema_editor):
    apps.get_model("billing_catalog", "TierThresholds").objects.get_or_create(pk=1)


class Migration(migrations.Migration):
    dependencies = [("billing_catalog", "0001_initial")]
    operations = [migrations.RunPython(make_row, migrations.RunPython.noop)]
