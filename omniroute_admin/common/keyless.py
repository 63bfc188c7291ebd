"""The text of a key belongs into one header: bodies, forms and files that hold one are refused (SPEC 4).

What was kept of them would stand in a table, in the history and in every copy of both.
"""

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from omniroute_admin.common.core.keys import holds_secret
from omniroute_admin.common.errors import BadRequest
from omniroute_admin.common.lean import is_keyed
from omniroute_admin.common.problems import is_api

_BEGINS = b"orl_"
_OVERLAP = 47
"""As many bytes as a key has, so that one on the border of two pieces of a file is seen."""


def refuse_keys(body: bytes) -> None:
    """Check that a body of the API holds no key; one that has none costs a search for four bytes.

    Raises:
        BadRequest: it holds one.
    """
    if _BEGINS in body and holds_secret(body.decode("utf-8", "replace")):
        raise BadRequest(
            "The body holds the text of a key. A key goes into the header Authorization alone; nothing was kept. "
            "Whoever saw this body has the key: rotate it.",
            code="key_in_body",
        )


class NoKeysInForms:
    """Refuses forms of pages, and files sent by them, that hold a key. Stands after the check of the CSRF token."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Any:
        """Answer the request."""
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *_: Any) -> HttpResponse | None:
        """Answer a form that holds a key; None lets every other request go on."""
        if request.method != "POST" or is_keyed(request) or is_api(request.path_info):
            return None
        if not any(holds_secret(text) for text in _texts(request)):
            return None
        return render(request, "key_in_form.html", status=400)


def _texts(request: HttpRequest) -> Iterator[str]:
    for name, values in request.POST.lists():
        yield name
        yield from values
    for files in request.FILES.lists():
        for file in files[1]:
            yield str(file.name)
            yield from _pieces(file)


def _pieces(file: Any) -> Iterator[str]:
    end = b""
    for piece in file.chunks():
        yield (end + piece).decode("utf-8", "replace")
        end = piece[-_OVERLAP:]
    file.seek(0)
