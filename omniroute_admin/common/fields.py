"""Column types that carry a rule of SPEC 1, so that no model states it twice."""

from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models

from omniroute_admin.common.core.names import (
    AUTH_TYPE_PATTERN,
    CONNECTION_ID_PATTERN,
    PROVIDER_PATTERN,
    canonical_name,
)

PROVIDER_NAME = RegexValidator(PROVIDER_PATTERN, "A provider is lower-case letters, digits and ._:@+-")
"""Checks a canonical name that is, or means, a provider (SPEC 1)."""
_MICRO_PLACES = 6
_NOTHING_LOST = Context(prec=40, traps=[Inexact, InvalidOperation])


class CanonicalField(models.CharField):
    """A name kept without surrounding blanks and in lower case, however it was written."""

    def to_python(self, value: Any) -> Any:
        """Return the canonical form; None stays None."""
        text = super().to_python(value)
        return None if text is None else canonical_name(text)

    def get_prep_value(self, value: Any) -> Any:
        """Return the canonical form for the database, so that look-ups fold case as well."""
        text = super().get_prep_value(value)
        return canonical_name(text) if isinstance(text, str) else text

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:
        """Leave the canonical form on the instance too: what was saved is what is seen."""
        value = self.to_python(super().pre_save(model_instance, add))
        setattr(model_instance, self.attname, value)
        return value


class ProviderField(CanonicalField):
    """A provider's id. Adding an alias rewrites every column of this type (SPEC 1)."""

    default_validators = [PROVIDER_NAME]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Set the length that SPEC 1 gives to an id."""
        kwargs.setdefault("max_length", 128)
        super().__init__(*args, **kwargs)


class AuthTypeField(CanonicalField):
    """An auth type (`oauth`, `apikey`, `cookie`, `none`, ...), null where it is not known (B3)."""

    default_validators = [RegexValidator(AUTH_TYPE_PATTERN, "An auth type is letters, digits and ._-")]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Make the column nullable: no auth type is null, never an empty text."""
        kwargs.setdefault("max_length", 32)
        kwargs.setdefault("null", True)
        kwargs.setdefault("blank", True)
        super().__init__(*args, **kwargs)

    def to_python(self, value: Any) -> Any:
        """Return the canonical form; blank is null (B3)."""
        return super().to_python(value) or None

    def get_prep_value(self, value: Any) -> Any:
        """Return the canonical form; blank is null (B3)."""
        return super().get_prep_value(value) or None


class ConnectionIdField(models.CharField):
    """A connection's id: case-sensitive, at most 128 characters (SPEC 1)."""

    default_validators = [
        RegexValidator(
            CONNECTION_ID_PATTERN, "A connection id is letters, digits and ._:@+-, beginning with a letter or digit"
        )
    ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Set the length that SPEC 1 gives."""
        kwargs.setdefault("max_length", 128)
        super().__init__(*args, **kwargs)


class PercentField(models.DecimalField):
    """A percentage, 0 to 100, exact to eight places (SPEC 1)."""

    default_validators = [MinValueValidator(0), MaxValueValidator(100)]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Set eight decimal places."""
        kwargs.setdefault("max_digits", 11)
        kwargs.setdefault("decimal_places", 8)
        super().__init__(*args, **kwargs)


class UsdField(models.DecimalField):
    """US dollars, exact to six places; fifteen digits survive SQLite's number type unharmed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Set six decimal places."""
        kwargs.setdefault("max_digits", 15)
        kwargs.setdefault("decimal_places", 6)
        super().__init__(*args, **kwargs)


class MicroUsdField(models.BigIntegerField):
    """US dollars, exact to six places, stored as whole micro-dollars: sums are exact on every database.

    In Python it is a Decimal with six places.
    """

    if TYPE_CHECKING:
        _pyi_private_set_type: Decimal  # type: ignore[assignment]
        _pyi_private_get_type: Decimal  # type: ignore[assignment]
        _pyi_lookup_exact_type: Decimal  # type: ignore[assignment]

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Decimal | None:
        """Return dollars for what a column, or a sum of one, holds."""
        return None if value is None else Decimal(value).scaleb(-_MICRO_PLACES)

    def to_python(self, value: Any) -> Decimal | None:
        """Return dollars from what was assigned, or typed into a form.

        Raises:
            ValidationError: it is no finite number, or has more than six places.
        """
        if value is None or value == "":
            return None
        try:
            amount = Decimal(value)
            return amount.quantize(Decimal(1).scaleb(-_MICRO_PLACES), context=_NOTHING_LOST)
        except (ArithmeticError, ValueError, TypeError):
            raise ValidationError("Give an amount in USD with at most six places.") from None

    def get_prep_value(self, value: Any) -> int | None:
        """Return whole micro-dollars."""
        amount = self.to_python(value)
        return None if amount is None else int(amount.scaleb(_MICRO_PLACES))


def validate_text_list(value: Any) -> None:
    """Check that a JSON column holds a list of distinct, non-empty texts.

    Raises:
        ValidationError: it does not.
    """
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValidationError("Give a list of non-empty texts.")
    if len(set(value)) != len(value):
        raise ValidationError("A text stands twice in the list.")


class TextListField(models.JSONField):
    """A list of distinct, non-empty texts (globs, capabilities, scopes)."""

    default_validators = [validate_text_list]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Start as an empty list."""
        kwargs.setdefault("default", list)
        kwargs.setdefault("blank", True)
        super().__init__(*args, **kwargs)
