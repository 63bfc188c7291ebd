"""Serializers of resources: strict about types, and about fields that nobody knows (SPEC 4)."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, ClassVar

from django.db import models
from django.utils.timezone import is_naive
from rest_framework import serializers
from rest_framework.validators import UniqueValidator

from omniroute_admin.common.core.names import canonical_name
from omniroute_admin.common.core.numbers import decimal_text, percent_number, usd_text
from omniroute_admin.common.fields import (
    CanonicalField,
    ConnectionIdField,
    PercentField,
    TextListField,
    UsdField,
    validate_text_list,
)
from omniroute_admin.common.history import LONGEST_REASON

# SQLite would take more than its column type says, and PostgreSQL not.
_LARGEST_INTEGER = 2**31 - 1

Detail = serializers.ErrorDetail


class AwareDateTimeField(serializers.DateTimeField):
    """An instant with its zone; one without is refused, for nobody could say when it is."""

    def enforce_timezone(self, value: Any) -> Any:
        """Return the instant in UTC.

        Raises:
            ValidationError: it has no zone.
        """
        if is_naive(value):
            raise serializers.ValidationError("Give the zone too, as in 2026-08-22T12:00:00Z.")
        return super().enforce_timezone(value)


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


class ExactDecimalField(serializers.DecimalField):
    """A number, in a text only in plain decimal notation: Python would read "1_0", " 10 " and other scripts' digits."""

    default_error_messages = {"notation": "Expected a number in plain decimal notation, as in 1.25."}

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        """Return whether the value is null or left out; an empty text is neither.

        Raises:
            ValidationError: a text that is no number in plain decimal notation.
        """
        if isinstance(data, str) and not _NUMBER.fullmatch(data):
            self.fail("notation")
        return super().validate_empty_values(data)


class PlainDecimalField(ExactDecimalField):
    """A number as an exact text without zeros at its end."""

    def to_representation(self, value: Any) -> Any:
        """Return the text."""
        return None if value is None else decimal_text(Decimal(value))


class PercentNumberField(ExactDecimalField):
    """A percentage as an exact number."""

    def to_representation(self, value: Any) -> Any:
        """Return the number."""
        return None if value is None else percent_number(Decimal(value))


class UsdTextField(ExactDecimalField):
    """An amount in USD as an exact text with at least cents."""

    def to_representation(self, value: Any) -> Any:
        """Return the text."""
        return None if value is None else usd_text(Decimal(value))


class TextsField(serializers.ListField):
    """A list of distinct, non-empty texts."""

    child = serializers.CharField()

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.validators.append(validate_text_list)


class CanonicalTextField(serializers.CharField):
    """A name in its canonical form, before anything is checked: case and blanks do not count (SPEC 1)."""

    def to_internal_value(self, data: Any) -> str:
        """Return the canonical name."""
        return canonical_name(super().to_internal_value(data))


class ExactTextField(serializers.CharField):
    """A text as it was sent: blanks around it are a part of it."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **kwargs})


class WordField(serializers.ChoiceField):
    """One of a few words; a refusal lists them and does not repeat what came."""

    default_error_messages = {"invalid_choice": "Expected one of: {words}."}

    def fail(self, key: str, **kwargs: Any) -> Any:
        """Raise the error with the words there are."""
        super().fail(key, words=", ".join(str(word) for word in self.choices), **kwargs)


_TYPES: tuple[tuple[type[serializers.Field], tuple[type, ...], str], ...] = (
    (serializers.BooleanField, (bool,), "true or false"),
    (serializers.IntegerField, (int,), "an integer"),
    (serializers.DecimalField, (int, Decimal, str), "a number"),
    (serializers.CharField, (str,), "a text"),
    (serializers.ChoiceField, (str,), "a text"),
    (serializers.DateTimeField, (str,), "a text"),
    (serializers.DateField, (str,), "a text"),
)


def _type_problem(field: Any, value: Any) -> Any:
    """Return what is wrong with a value's JSON type; REST framework itself would take "1" for 1 and 1 for true."""
    if value is None:
        return None
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        found = {str(i): bad for i, item in enumerate(value) if (bad := _type_problem(field.child, item))}
        return found or None
    for kind, types, words in _TYPES:
        if isinstance(field, kind):
            is_wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
            return [Detail(f"Expected {words}.", code="invalid")] if is_wrong else None
    return None


class StrictMixin:
    """Refuses unknown fields and wrong types, all at once, and takes the reason of the change.

    A read-only field may come back as it was sent, so that what was read can be written; another value is refused.
    """

    reason_field: ClassVar[str] = "reason"

    def get_fields(self: Any) -> dict[str, Any]:
        """Return the declared fields and the one for the reason of a change."""
        fields: dict[str, Any] = super().get_fields()  # type: ignore[misc]
        fields[self.reason_field] = serializers.CharField(
            write_only=True,
            required=False,
            allow_blank=True,
            max_length=LONGEST_REASON,
            help_text="Why; goes to the history.",
        )
        return fields

    def to_internal_value(self: Any, data: Any) -> Any:
        """Return the validated values.

        Raises:
            ValidationError: naming every bad field.
        """
        if not isinstance(data, Mapping):
            raise serializers.ValidationError({"non_field_errors": [Detail("Expected an object.", code="invalid")]})
        errors = dict(self._shape_problems(data))
        try:
            values = super().to_internal_value(data)  # type: ignore[misc]
        except serializers.ValidationError as error:
            raise serializers.ValidationError({**error.detail, **errors}) from None  # type: ignore[dict-item]
        if errors:
            raise serializers.ValidationError(errors)
        return values

    def _shape_problems(self: Any, data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        now = self.to_representation(self.instance) if self.instance is not None else {}
        for name, value in data.items():
            field = self.fields.get(name)
            if field is None:
                yield name, [Detail("Unknown field.", code="unknown_field")]
            elif field.read_only:
                if name not in now or now[name] != value:
                    yield name, [Detail("This field cannot be set.", code="read_only")]
            elif problem := _type_problem(field, value):
                yield name, problem


class StrictSerializer(StrictMixin, serializers.Serializer):
    """A strict serializer with fields of its own."""


class StrictModelSerializer(StrictMixin, serializers.ModelSerializer):
    """A strict serializer of a model's columns. The services run the model's own checks."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.DateTimeField: AwareDateTimeField,
        models.DecimalField: PlainDecimalField,
        CanonicalField: CanonicalTextField,
        ConnectionIdField: ExactTextField,
        PercentField: PercentNumberField,
        UsdField: UsdTextField,
    }
    serializer_choice_field = WordField

    def get_validators(self) -> list[Any]:
        """Return none: what is unique over several columns is checked by the service, under its lock."""
        return []

    def left_out(self) -> dict[str, Any]:
        """Return the defaults of the columns that may be left out: what PUT makes of those that are."""
        meta: Any = self.Meta.model._meta  # type: ignore[attr-defined]
        optional = [name for name, found in self.fields.items() if not (found.read_only or found.required)]
        return {name: meta.get_field(name).get_default() for name in optional if name != self.reason_field}

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        """Return class and arguments of a column's field; a list of texts is checked text by text.

        That a value is taken already is the service's word: it is a conflict, and no bad field.
        """
        if isinstance(model_field, TextListField):
            return TextsField, {"required": False, "help_text": model_field.help_text}
        kind, arguments = super().build_standard_field(field_name, model_field)
        if "validators" in arguments:
            arguments["validators"] = [one for one in arguments["validators"] if not isinstance(one, UniqueValidator)]
        if isinstance(model_field, models.IntegerField) and not isinstance(model_field, models.BigIntegerField):
            arguments["max_value"] = min(arguments.get("max_value", _LARGEST_INTEGER), _LARGEST_INTEGER)
        return kind, arguments
