"""Hooks of the schema's generator: what each call may be refused with, what it takes, and what follows from it."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

Operation = dict[str, Any]

PROBLEM = {
    "type": "object",
    "description": "A problem document (RFC 9457). `errors` names every bad field by its JSON pointer.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "detail", "code"],
                "properties": {name: {"type": "string"} for name in ("pointer", "detail", "code")},
            },
        },
    },
    # `pools`, `current`, `left_usd`: members of their own, beside those that all have.
    "additionalProperties": True,
}

NAMES_WHAT_IS_STORED = "x-names-what-is-stored"
"""An extension that a call sets to true whose body names something that may not be there; it stays in here."""

_EVERYWHERE = {
    400: "The query or the body is not valid; `errors` names every bad field.",
    401: "No key, or one that is wrong, expired or revoked.",
    403: "The key or the role lacks the scope.",
    406: "An answer other than JSON is asked for.",
    429: "Too many calls with this key; `Retry-After` says when to ask again.",
    503: "`state_unavailable`: the database is out of reach, and nothing is decided from memory. "
    "`too_busy`: too much is being sent at once.",
}
_WITH_A_BODY = {
    408: "The body was not there in time.",
    411: "The body says no length: send `Content-Length`.",
    413: "The body, or a list in it, is larger than is read.",
    415: "The body is not sent as JSON.",
}
_HEADERS = {
    429: {
        "headers": {
            "Retry-After": {
                "description": "Whole seconds until the next minute.",
                "required": True,
                "schema": {"type": "integer", "minimum": 1},
            }
        }
    }
}
_METHODS = {"get", "post", "put", "patch", "delete"}
# What the filters of decimals take.
_LARGEST = 1e50


def describe_refusals(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of every call which statuses refuse it, each with a problem document."""
    result.setdefault("components", {}).setdefault("schemas", {})["Problem"] = PROBLEM
    for path, method, operation in _operations(result):
        for status, words in _refusals(path, method, operation).items():
            operation["responses"].setdefault(str(status), _problem(words) | _HEADERS.get(status, {}))
    return result


def _refusals(path: str, method: str, operation: Operation) -> dict[int, str]:
    names = {one["name"] for one in operation.get("parameters", [])}
    found = dict(_EVERYWHERE)
    if "{" in path or "page" in names:
        found[404] = "There is nothing at this address, or the list has no such page."
    if operation.pop(NAMES_WHAT_IS_STORED, False):
        found[404] = "The body names something that is not stored; `errors` says where."
    if "requestBody" in operation:
        found |= _WITH_A_BODY
    if method != "get":
        found[409] = "It contradicts what is stored; `code` says how."
    if "If-Match" in names:
        found[412] = "It was changed since the entity tag was read; `current` is how it looks now."
    return found


def _problem(words: str) -> dict[str, Any]:
    answer = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": words, "content": answer}


def close_bodies(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of every object that a call takes that it has no other members: unknown fields are refused (SPEC 4)."""
    schemas = result.get("components", {}).get("schemas", {})
    waiting = [
        operation["requestBody"] for _path, _method, operation in _operations(result) if "requestBody" in operation
    ]
    seen: set[str] = set()
    while waiting:
        for part in _parts(waiting.pop()):
            if "properties" in part:
                part.setdefault("additionalProperties", False)
            name = str(part.get("$ref", "")).rpartition("/")[2]
            if name in schemas and name not in seen:
                seen.add(name)
                waiting.append(schemas[name])
    return result


def _parts(part: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a piece of the document, itself included."""
    if isinstance(part, dict):
        yield part
        for inner in part.values():
            yield from _parts(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _parts(inner)


def bound_queries(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say of every text in a query that it has a character at least and none of NUL, of every number how large."""
    for _path, method, operation in _operations(result):
        for one in operation.get("parameters", []):
            if one["in"] == "query":
                may_be_empty = method != "get" and one["name"] == "reason"
                _bound(one["schema"], least="*" if may_be_empty else "+")
    return result


def _bound(schema: dict[str, Any], *, least: str) -> None:
    if schema.get("type") == "string" and not {"enum", "format", "pattern"} & set(schema):
        schema["pattern"] = f"^[^\\x00]{least}$"
    elif schema.get("type") == "number":
        schema.setdefault("maximum", _LARGEST)


def add_links(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say which calls are about a row that was just made: those below its list, with the name that was answered."""
    paths = result.get("paths", {})
    for path, method, operation in _operations(result):
        made = operation["responses"].get(str(HTTPStatus.CREATED.value))
        if method != "post" or made is None:
            continue
        links = {link["operationId"]: link for below in paths for link in _links(path, below, paths[below])}
        if links:
            made["links"] = links
    return result


def _links(made_at: str, path: str, operations: dict[str, Operation]) -> Iterator[dict[str, Any]]:
    name, brace, rest = path.removeprefix(f"{made_at}/{{").partition("}")
    # A second name in the address is one that the answer does not tell.
    if not path.startswith(f"{made_at}/{{") or not brace or "{" in rest:
        return
    for method, operation in operations.items():
        if method in _METHODS:
            yield {"operationId": operation["operationId"], "parameters": {name: f"$response.body#/{name}"}}


def _operations(result: dict[str, Any]) -> Iterator[tuple[str, str, Operation]]:
    for path, operations in result.get("paths", {}).items():
        for method, operation in operations.items():
            if method in _METHODS:
                yield path, method, operation
