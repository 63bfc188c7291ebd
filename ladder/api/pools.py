"""Pools, evaluate, occupancy and the list of ids (SPEC 4): the calls a router makes.

They decode and encode with msgspec; the serializers in `documents` only describe them in the schema.
"""

from datetime import UTC, datetime

import msgspec
from django.http import HttpRequest, HttpResponse
from drf_spectacular.utils import extend_schema
from msgspec import UNSET, UnsetType
from rest_framework.request import Request
from rest_framework.views import APIView

from ladder.api import documents, documents_evaluate, documents_state
from ladder.api.answers import ENCODER, on_the_wire, pool_response, tell
from ladder.api.bodies import EVALUATE_DECODER, POOL_DECODER, check_candidates, check_pairs
from ladder.api.given import are_settings_full, resolve_candidates, settings_of, to_given
from ladder.api.names import resolver
from ladder.api.queries import flags, pool_options
from ladder.api.ready import ready_pool
from ladder.core.ids import FLAT_IDS, PAIR_IDS, POOL_IDS, PoolId, find_pool_id
from ladder.core.occupancy import build_occupancy, build_pool_lines, with_budgets
from ladder.core.pool import build_pool
from ladder.core.values import Pool, PoolOptions
from ladder.core.whatif import Change
from ladder.selectors.evaluate import evaluate, read_stored
from ladder.selectors.state import get_present, get_snapshot
from omniroute_admin.common import clock
from omniroute_admin.common.authentication import caller
from omniroute_admin.common.bodies import check, decode, read_body
from omniroute_admin.common.errors import UnknownPool
from omniroute_admin.common.listing import check_parameters
from omniroute_admin.common.openapi_calls import NAMES_WHAT_IS_STORED

JSON = "application/json"


def known_pool(text: str) -> PoolId:
    """Return the pool of an id.

    Raises:
        UnknownPool: there is none; the answer names those there are (I).
    """
    found = find_pool_id(text)
    if found is None:
        raise UnknownPool(f"There is no pool {text!r}. There are: {', '.join(POOL_IDS)}.", pools=list(POOL_IDS))
    return found


class PoolListView(APIView):
    """The ids, with each one's state in one line."""

    required_scopes = {"GET": "pools:read"}

    @extend_schema(operation_id="pools_list", responses=documents_state.PoolLines)
    def get(self, request: Request) -> HttpResponse:
        """List the pools."""
        flags(request.query_params, ())
        now = clock.now()
        snapshot = get_snapshot(now=now)
        answer = {"pools": build_pool_lines(snapshot=snapshot, now=now), "revision": snapshot.facts.revision}
        return HttpResponse(ENCODER.encode(answer), content_type=JSON)


class PoolView(APIView):
    """One pool, over the stored inventory or over the caller's candidates."""

    required_scopes = {"GET": "pools:read", "POST": "pools:read"}

    @extend_schema(
        operation_id="pools_retrieve", parameters=documents.POOL_PARAMETERS, responses=documents.POOL_ANSWERS
    )
    def get(self, request: Request, pool_id: str) -> HttpResponse:
        """Answer with the pool over the stored inventory."""
        known, options, now = known_pool(pool_id), pool_options(request.query_params), clock.now()
        snapshot = get_snapshot(now=now, revision=caller(request).revision)
        told = ready_pool(snapshot=snapshot, pool_id=known, options=options, now=now)
        return pool_response(request=request._request, told=told, now=now)

    @extend_schema(operation_id="pools_build", request=documents.PoolRequest, responses=documents.PoolAnswer)
    def post(self, request: Request, pool_id: str) -> HttpResponse:
        """Answer with the pool over the candidates sent, in their order."""
        known = known_pool(pool_id)
        check_parameters(request.query_params)
        body = decode(body=read_body(request._request, is_kept=False), decoder=POOL_DECODER, rules=False)
        check_candidates(body.candidates, body)
        now = clock.now()
        snapshot = get_snapshot(now=now, revision=caller(request).revision)
        candidates = resolve_candidates(candidates=body.candidates, resolve=resolver(snapshot.facts.aliases))
        options = PoolOptions(body.mixed_rungs, body.lowest_rung_only, body.explain)
        pool = build_pool(snapshot=snapshot, pool_id=known, candidates=candidates, options=options, now=now)
        return pool_response(request=request._request, told=tell(pool), now=now)


class EvaluateView(APIView):
    """Stateless, or what-if: what is given replaces what is stored; nothing is stored."""

    required_scopes = {"POST": "pools:read"}

    @extend_schema(
        operation_id="evaluate",
        request=documents_evaluate.EvaluateRequest,
        responses=documents.PoolAnswer,
        extensions={NAMES_WHAT_IS_STORED: True},
    )
    def post(self, request: Request) -> HttpResponse:
        """Answer as the pool would, and say what would move."""
        check_parameters(request.query_params)
        pool, changes, now = _evaluate(request._request)
        response = pool_response(request=request._request, told=tell(pool), now=now)
        if changes is not None:
            response.content = _with_changes(pool, changes)
        return response


def _evaluate(request: HttpRequest) -> tuple[Pool, list[Change] | None, datetime]:
    body = decode(body=read_body(request, is_kept=False), decoder=EVALUATE_DECODER, rules=False)
    check_pairs([] if isinstance(body.candidates, UnsetType) else body.candidates)
    check(body)
    known, present = known_pool(body.id), clock.now()
    at = None if isinstance(body.now, UnsetType) else body.now.astimezone(UTC)
    stored = read_stored(at=at, now=present)
    resolve = resolver(stored.facts.aliases)
    given = to_given(
        body=body,
        settings=settings_of(body=body, stored=stored.facts.settings),
        resolve=resolve,
        stored=stored.facts.connections,
    )
    listed = None if body.candidates is UNSET else resolve_candidates(candidates=body.candidates, resolve=resolve)
    pool, changes = evaluate(
        stored=stored,
        given=given,
        is_full=are_settings_full(body),
        pool_id=known,
        candidates=listed,
        options=PoolOptions(body.mixed_rungs, body.lowest_rung_only, body.explain),
        now=at or present,
    )
    return pool, changes, at or present


def _with_changes(pool: Pool, changes: list[Change]) -> bytes:
    answer = msgspec.to_builtins(pool, builtin_types=(datetime,))
    return ENCODER.encode({**answer, "changes": changes})


class OccupancyView(APIView):
    """The ladder now."""

    required_scopes = {"GET": "pools:read"}

    @extend_schema(operation_id="occupancy", responses=documents_state.Occupancy)
    def get(self, request: Request) -> HttpResponse:
        """Answer with the rungs, how many connections serve on each, and the budgets."""
        flags(request.query_params, ())
        now = clock.now()
        snapshot, budgets, _ = get_present(now=now)
        drawn = build_occupancy(snapshot=snapshot, now=now)
        ladder = with_budgets(occupancy=drawn, budgets=budgets, now=now)
        answer = {name: getattr(ladder, name) for name in ladder.__struct_fields__ if name != "places"}
        response = HttpResponse(ENCODER.encode(on_the_wire(answer)), content_type=JSON)
        response["Cache-Control"] = "private, no-cache"
        response["X-Ladder-Revision"] = ladder.revision
        return response


class ModelListView(APIView):
    """The ids in the shape of OpenAI's model list; none of them counts as paid, so hiding paid ones keeps all (I)."""

    required_scopes = {"GET": "pools:read"}

    @extend_schema(operation_id="models_list", parameters=documents.MODEL_PARAMETERS, responses=documents.ModelList)
    def get(self, request: Request) -> HttpResponse:
        """List the flat ids, with `pairs=true` the ten pairs too."""
        asked = flags(request.query_params, ("pairs", "hide_paid"))
        ids = (*FLAT_IDS, *PAIR_IDS) if asked["pairs"] else FLAT_IDS
        created = int(clock.now().timestamp())
        data = [{"id": one.id, "object": "model", "created": created, "owned_by": "omniroute_admin"} for one in ids]
        return HttpResponse(ENCODER.encode({"object": "list", "data": data}), content_type=JSON)
