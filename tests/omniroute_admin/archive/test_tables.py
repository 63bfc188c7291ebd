"""Every table is in an archive, or left out with a reason."""

import pytest
from django.apps import apps

from omniroute_admin import VERSION
from omniroute_admin.archive.tables import KEPT, LEFT_OUT, MATCHED, columns_of, kept_models, undecided_models
from omniroute_admin.archive.target import read_held
from tests.shared import ROOT

# What an archive's lines carry, and `to_python` of the column reads back exactly.
CARRIED = {
    "AutoField", "BigAutoField", "BigIntegerField", "BinaryField", "BooleanField", "CharField", "DateField",
    "DateTimeField", "DecimalField", "EmailField", "ForeignKey", "GenericIPAddressField", "IntegerField", "JSONField",
    "OneToOneField", "PositiveBigIntegerField", "PositiveIntegerField", "PositiveSmallIntegerField",
    "SmallIntegerField", "TextField", "TimeField", "URLField", "UUIDField",
}  # fmt: skip


def test_nobody_forgot_to_decide_upon_a_table() -> None:
    assert undecided_models() == [], "put it into KEPT or LEFT_OUT of omniroute_admin/archive/tables.py"


def test_what_is_left_out_or_matched_exists() -> None:
    labels = {model._meta.label for model in apps.get_models(include_auto_created=True)}
    kept = {f"{app}.{name}" for app, names in KEPT.items() for name in names}
    assert {*LEFT_OUT, *MATCHED, *kept} <= labels
    assert not {*LEFT_OUT, *MATCHED} & kept
    assert {model._meta.label for model in kept_models()} == labels - set(LEFT_OUT)


@pytest.mark.parametrize("model", kept_models(), ids=lambda model: model._meta.label)
def test_each_column_is_of_a_kind_that_an_archive_carries(model: type) -> None:
    kinds = {field.get_internal_type() for field in columns_of(model)}
    assert kinds <= CARRIED, "let tests/omniroute_admin/archive/test_round_trip.py carry such a column first"


@pytest.mark.django_db(transaction=True)
def test_a_database_that_was_only_migrated_counts_as_unused() -> None:
    """A row that a new migration makes is to be named in MADE_BY_MIGRATIONS."""
    held = read_held()
    assert not held.is_used, held


def test_the_archive_names_the_products_version() -> None:
    assert f'version = "{VERSION}"' in (ROOT / "pyproject.toml").read_text()
