"""Query parameters: known ones only, each bad one named (SPEC 4: unknown is refused, not ignored)."""

from collections.abc import Iterable

from django.http import QueryDict

from ladder.core.values import MixedRungs, PoolOptions
from omniroute_admin.common.bodies import refuse
from omniroute_admin.common.errors import FieldError

_WORDS = {"true": True, "1": True, "false": False, "0": False}


def pool_options(query: QueryDict) -> PoolOptions:
    """Return the options of a GET pool.

    Raises:
        BadRequest: a parameter is unknown, given twice, or not one of its words.
    """
    errors = unknown_parameters(query, ("mixed_rungs", "lowest_rung_only", "explain"))
    mixed = query.get("mixed_rungs", MixedRungs.SPLIT.value)
    if mixed not in set(MixedRungs):
        errors.append(FieldError("?mixed_rungs", "This is one of split and merge."))
    flags = {name: _flag(query, name, errors) for name in ("lowest_rung_only", "explain")}
    refuse(errors)
    return PoolOptions(MixedRungs(mixed), **flags)


def flags(query: QueryDict, names: Iterable[str]) -> dict[str, bool]:
    """Return boolean parameters; one left out is false.

    Raises:
        BadRequest: a parameter is unknown, given twice, or neither true nor false.
    """
    known = tuple(names)
    errors = unknown_parameters(query, known)
    found = {name: _flag(query, name, errors) for name in known}
    refuse(errors)
    return found


def unknown_parameters(query: QueryDict, known: Iterable[str]) -> list[FieldError]:
    """Return an error for each parameter that is not known, or stands there twice."""
    names = set(known)
    errors = [FieldError(f"?{name}", "There is no such parameter.", "unknown") for name in query if name not in names]
    return errors + [
        FieldError(f"?{name}", "Give this parameter once.") for name in names if len(query.getlist(name)) > 1
    ]


def _flag(query: QueryDict, name: str, errors: list[FieldError]) -> bool:
    word = query.get(name, "false").lower()
    if word not in _WORDS:
        errors.append(FieldError(f"?{name}", "This is true or false."))
    return _WORDS.get(word, False)
