"""Exact numbers as people and programs read them: never in scientific form, no zeros that say nothing."""

from decimal import Decimal

_CENTS = 2


def decimal_text(value: Decimal) -> str:
    """Return a number without zeros at its end, as in `2`, `0.5`, `1000000`."""
    text = f"{value:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text in {"-0", ""} else text


def percent_number(value: Decimal) -> int | float:
    """Return a percentage as the JSON number that says just what is stored: eight places survive a float's digits."""
    text = decimal_text(value)
    return float(text) if "." in text else int(text)


def usd_text(value: Decimal) -> str:
    """Return an amount in USD: at least cents, more where there are more, and `0` for nothing (SPEC 4)."""
    text = decimal_text(value)
    if text == "0":
        return text
    whole, _, places = text.partition(".")
    return f"{whole}.{places.ljust(_CENTS, '0')}"
