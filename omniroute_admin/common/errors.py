"""What the product refuses, as values: every error knows its HTTP status and its code (SPEC 4).

`detail` and the fields' details are shown to callers: they never carry a secret, a traceback or a database's own words.
"""
# ruff: noqa: N818 - these are answers to a caller, named as the answer is

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, ClassVar

import msgspec


class FieldError(msgspec.Struct, frozen=True):
    """One bad field: `pointer` is a JSON pointer into the body ("" is the whole body), `detail` says what is wrong."""

    pointer: str
    detail: str
    code: str = "invalid"

    def under(self, prefix: str) -> "FieldError":
        """Return the same error seen from further up: `prefix` is the pointer of what this one is relative to."""
        return FieldError(pointer=prefix + self.pointer, detail=self.detail, code=self.code)

    def sentence(self) -> str:
        """Return the error as words, for where no pointer can stand: `window: Expected text, got number`."""
        return f"{self.pointer.removeprefix('/')}: {self.detail}" if self.pointer else self.detail


def escape_pointer(name: str) -> str:
    """Return a name as one step of a JSON pointer (RFC 6901: `~` is `~0`, `/` is `~1`)."""
    return name.replace("~", "~0").replace("/", "~1")


def field(name: str, detail: str, *, code: str = "invalid") -> FieldError:
    """Return the error of a top-level field, its name escaped."""
    return FieldError(pointer=f"/{escape_pointer(name)}", detail=detail, code=code)


class ProductError(Exception):
    """A refusal with an HTTP status and a code of its own.

    `errors` names the bad fields; `code` may be narrower than the class's; `extra` are further members of the problem
    document (as `left_usd`).
    """

    status: ClassVar[int] = 500
    code: str = "error"
    title: ClassVar[str] = "Something went wrong"

    def __init__(
        self, detail: str, *, errors: Iterable[FieldError] = (), code: str | None = None, **extra: Any
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors: Sequence[FieldError] = tuple(errors)
        self.code = code or type(self).code
        self.extra = extra


class BadRequest(ProductError):
    """The body or the query names something that cannot be."""

    status = 400
    code = "invalid_body"
    title = "The request is not valid"


class MalformedJson(ProductError):
    """The body is no JSON at all."""

    status = 400
    code = "malformed_json"
    title = "The body is not JSON"


class Unauthenticated(ProductError):
    """No key, or one that is wrong, expired or revoked; which of them is not told."""

    status = 401
    code = "unauthenticated"
    title = "A key is needed"


class Forbidden(ProductError):
    """The caller is known and may not do this."""

    status = 403
    code = "scope_lacking"
    title = "Not allowed"


class RateLimited(ProductError):
    """The key has had its calls of this minute; `wait` are the whole seconds to the next one, at least 1."""

    status = 429
    code = "rate_limited"
    title = "Too many calls"

    def __init__(self, detail: str, *, wait: int) -> None:
        super().__init__(detail)
        self.wait = wait


class NotFound(ProductError):
    """No such thing."""

    status = 404
    code = "not_found"
    title = "Not found"


class UnknownPool(NotFound):
    """The id of a pool that this product does not serve; the list of those it does goes into `extra`."""

    code = "unknown_pool"
    title = "No pool of that id"


class Conflict(ProductError):
    """What is asked contradicts what is kept."""

    status = 409
    code = "conflict"
    title = "In conflict with what is kept"


class LostUpdate(ProductError):
    """`If-Match` names another state than the present one."""

    status = 412
    code = "precondition_failed"
    title = "Changed in between"


class TooLarge(ProductError):
    """The body, or a list in it, is larger than the product reads."""

    status = 413
    code = "too_large"
    title = "Too large"


class TooSlow(ProductError):
    """The body was not there in time."""

    status = 408
    code = "too_slow"
    title = "Too slow"


class LengthNeeded(ProductError):
    """The request does not say how long its body is."""

    status = 411
    code = "length_required"
    title = "The length is needed"


class TooBusy(ProductError):
    """More is being sent at once than there is room for."""

    status = 503
    code = "too_busy"
    title = "Too busy"


class StateUnavailable(ProductError):
    """The database is out of reach: nothing is decided from memory."""

    status = 503
    code = "state_unavailable"
    title = "The state cannot be read"


class TooManyTries(ProductError):
    """Too many failed sign-ins; `until` (aware, UTC) is when the next try is taken."""

    status = 429
    code = "too_many_tries"
    title = "Too many tries"

    def __init__(self, detail: str, *, until: datetime) -> None:
        super().__init__(detail)
        self.until = until
