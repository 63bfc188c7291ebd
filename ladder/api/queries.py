"""Query parameters: known ones only, each bad one named (SPEC 4: unknown is refused, not ignored)."""

from collections.abc import Iterable

from django.http import QueryDict

from ladder.core.values import MixedRungs, PoolOptions
from omniroute_admin.common.errors import FieldError, field
from omniroute_admin.common.listing import TRUE_OR_FALSE, bad_query, unknown_parameters


def pool_options(query: QueryDict) -> PoolOptions:
    """Return the options of a GET pool.

    Raises:
        BadRequest: a parameter is unknown, given twice, or not one of its words.
    """
    errors = unknown_parameters(query, ("mixed_rungs", "lowest_rung_only", "explain"))
    mixed = query.get("mixed_rungs", MixedRungs.SPLIT.value)
    if mixed not in set(MixedRungs):
        errors.append(field("mixed_rungs", "This is one of split and merge."))
    flags = {name: _flag(query, name, errors) for name in ("lowest_rung_only", "explain")}
    refuse_query(errors)
    return PoolOptions(MixedRungs(mixed), **flags)


def flags(query: QueryDict, names: Iterable[str]) -> dict[str, bool]:
    """Return boolean parameters; one left out is false.

    Raises:
        BadRequest: a parameter is unknown, given twice, or neither true nor false.
    """
    known = tuple(names)
    errors = unknown_parameters(query, known)
    found = {name: _flag(query, name, errors) for name in known}
    refuse_query(errors)
    return found


def refuse_query(errors: list[FieldError]) -> None:
    """Raise BadRequest naming the parameters at fault, if there are any."""
    if errors:
        raise bad_query(errors)


def _flag(query: QueryDict, name: str, errors: list[FieldError]) -> bool:
    word = query.get(name, "false").lower()
    if word not in TRUE_OR_FALSE:
        errors.append(field(name, "This is true or false."))
    return TRUE_OR_FALSE.get(word, False)
