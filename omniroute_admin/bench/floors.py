"""Views that take and give the same bytes as the product's, with the same caller checked, and decide nothing."""

import msgspec
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from msgspec import UNSET, UnsetType
from rest_framework.request import Request
from rest_framework.views import APIView

from ladder.api.answers import ENCODER
from ladder.api.bodies import POOL_DECODER
from ladder.api.pools import PoolView
from ladder.core.values import Exclusion, Pool
from omniroute_admin.common.bodies import read_body
from omniroute_admin.common.views.guard import sign_in_again

_SENT_ALONG = ("ETag", "Cache-Control", "X-Ladder-Revision", "Retry-After")


class PreparedPool(Pool, frozen=True, kw_only=True):
    """A pool as it is read back from an answer."""

    excluded: list[Exclusion] | UnsetType = UNSET


class Prepared(msgspec.Struct, frozen=True):
    """A real answer of the product's, kept at the first call."""

    content: bytes
    headers: dict[str, str]
    pool: PreparedPool


_kept: dict[tuple[str, str], Prepared] = {}


class PoolFloor(APIView):
    """GET: ready bytes and headers. POST: the body decoded, a prepared answer encoded."""

    required_scopes = {"GET": "pools:read", "POST": "pools:read"}

    def get(self, request: Request, pool_id: str) -> HttpResponse:
        """Send the ready bytes."""
        kept = _prepared(request, pool_id)
        return _with_headers(HttpResponse(kept.content, content_type="application/json"), kept)

    def post(self, request: Request, pool_id: str) -> HttpResponse:
        """Decode what came and encode what is prepared."""
        POOL_DECODER.decode(read_body(request._request))
        kept = _prepared(request, pool_id)
        return _with_headers(HttpResponse(ENCODER.encode(kept.pool), content_type="application/json"), kept)


class UnchangedFloor(APIView):
    """Always 304, with the headers of a real answer; the same process must have been asked for its content before."""

    required_scopes = {"GET": "pools:read"}

    def get(self, request: Request, pool_id: str) -> HttpResponse:
        """Send the headers."""
        response = HttpResponse(status=304)
        del response["Content-Type"]
        return _with_headers(response, _prepared(request, pool_id))


@never_cache
@require_safe
def poll(request: HttpRequest) -> HttpResponse:
    """Answer a signed-in person with nothing at all."""
    return HttpResponse(status=204) if request.user.is_authenticated else sign_in_again()


def _with_headers(response: HttpResponse, kept: Prepared) -> HttpResponse:
    for name, value in kept.headers.items():
        response[name] = value
    return response


def _prepared(request: Request, pool_id: str) -> Prepared:
    key = (str(request.method), pool_id)
    kept = _kept.get(key)
    if kept is None:
        kept = _kept[key] = _ask_the_product(request, pool_id)
    return kept


def _ask_the_product(request: Request, pool_id: str) -> Prepared:
    answer: HttpResponseBase = PoolView.as_view()(request._request, pool_id=pool_id)
    content: bytes = answer.content  # type: ignore[attr-defined]
    headers = {name: answer[name] for name in _SENT_ALONG if name in answer}
    return Prepared(content, headers, msgspec.json.decode(content, type=PreparedPool))
