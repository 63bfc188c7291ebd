"""SPEC 4: a constraint that refuses a row says why in words, and names the fields."""

import re
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import models

from omniroute_admin.common.constraints import conflict_in, field_errors, fields_of
from omniroute_admin.common.problems import as_product_error

CONSTRAINTS = [
    pytest.param(model, constraint, id=constraint.name)
    for label in ("billing_catalog", "ladder", "common")
    for model in apps.get_app_config(label).get_models()
    for constraint in model._meta.constraints
]


@pytest.mark.parametrize(("model", "constraint"), CONSTRAINTS)
def test_every_constraint_has_words_and_names_fields_of_its_model(model: Any, constraint: Any) -> None:
    assert constraint.violation_error_code == constraint.name
    words = constraint.get_violation_error_message()
    assert words != models.BaseConstraint.default_violation_error_message % {"name": constraint.name}
    assert constraint.name not in words
    assert re.fullmatch(r"[A-Z].*\.", words)
    names = fields_of(constraint.name)
    assert names
    assert set(names) <= {column.name for column in model._meta.concrete_fields}


@pytest.mark.parametrize(("model", "constraint"), CONSTRAINTS)
def test_a_refusal_by_a_constraint_has_the_pointers_of_its_fields(model: Any, constraint: Any) -> None:
    refused = ValidationError(constraint.get_violation_error_message(), code=constraint.violation_error_code)
    answer = as_product_error(ValidationError({"__all__": [refused]}))
    assert answer is not None
    assert (answer.status, answer.code) == (400, "invalid_body")
    assert [error.pointer for error in answer.errors] == [f"/{name}" for name in fields_of(constraint.name)]
    assert {error.detail for error in answer.errors} == {constraint.violation_error_message}


def test_errors_that_no_constraint_made_keep_their_place() -> None:
    assert [(bad.pointer, bad.detail) for bad in field_errors(ValidationError("both"))] == [("", "both")]
    bad = ValidationError({"a/b": ["one", "two"], "__all__": ["both"]})
    assert [(one.pointer, one.detail) for one in field_errors(bad)] == [
        ("/a~1b", "one"),
        ("/a~1b", "two"),
        ("", "both"),
    ]


def test_only_what_is_there_already_is_a_conflict() -> None:
    twice = ValidationError("There is one.", code="billing_one_per_auth_type")
    taken = ValidationError("Taken.", code="unique")
    conflict = conflict_in(ValidationError({"__all__": [twice], "alias": [taken]}))
    assert conflict is not None
    assert [(error.pointer, error.code) for error in conflict.errors] == [
        ("/provider", "conflict"),
        ("/auth_type", "conflict"),
        ("/alias", "conflict"),
    ]
    assert conflict.detail == "There is one. Taken."
    assert conflict_in(ValidationError({"__all__": [twice], "billing": ["Bad."]})) is None
    assert conflict_in(ValidationError("Bad.", code="billing_is_a_class")) is None
