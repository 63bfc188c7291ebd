"""Looking into type annotations: what is annotated, what a union has, which words an enum takes."""

import types
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec


def is_union(base: Any) -> bool:
    """Tell whether a type is one of several."""
    return get_origin(base) in (Union, types.UnionType)


def split(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a type without its annotations, and those."""
    if get_origin(annotation) is Annotated:
        return annotation.__origin__, annotation.__metadata__
    return annotation, ()


def parts(annotation: Any) -> list[Any]:
    """Return the types that a value may have; a type that is no union is its own only part."""
    base, _ = split(annotation)
    if is_union(base):
        return [inner for part in get_args(base) if part is not msgspec.UnsetType for inner in parts(part)]
    return [annotation]


def words(part: Any) -> list[str]:
    """Return the values of an enum or a literal; nothing for other types."""
    base, _ = split(part)
    if isinstance(base, type) and issubclass(base, Enum):
        return [str(word.value) for word in base]
    return [str(word) for word in get_args(base)] if get_origin(base) is Literal else []


def with_metas(shape: Any, annotation: Any) -> Any:
    """Return `shape` with the annotations of another type put on."""
    for meta in split(annotation)[1]:
        shape = Annotated[shape, meta]
    return shape
