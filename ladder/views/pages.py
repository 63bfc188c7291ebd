"""The ladder page, the page of one pool, and the one address that keeps both up to date (SPEC 5, 1)."""

from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from ladder.core.ids import POOL_IDS
from ladder.views.filters import asked_of, option_pairs
from ladder.views.polls import answer_held, changed_regions
from ladder.views.regions import LADDER_REGIONS, POOL_REGIONS, out_of_band, page_context
from ladder.views.seen import see
from omniroute_admin.common import clock
from omniroute_admin.common.views.guard import needs


@needs("pools:read")
@never_cache
@require_safe
def ladder_page(request: HttpRequest) -> HttpResponse:
    """Show the ladder, the connections on it, and one pool as a router gets it."""
    asked = asked_of(request.GET, pool_ids=POOL_IDS)
    context = page_context(seen=see(now=clock.now()), asked=asked, names=LADDER_REGIONS)
    response = render(request, "ladder/ladder.html", context | {"section": "ladder", "shows": "ladder"})
    if "HX-Request" in request.headers:
        # The address a browser keeps is the shortest that says the same.
        response["HX-Push-Url"] = f"{request.path}?{context['query']}".rstrip("?")
    return response


@needs("pools:read")
@require_safe
def choose_pool(request: HttpRequest) -> HttpResponse:
    """Lead from the id picker to the page of the chosen pool, with the options chosen."""
    asked = asked_of(request.GET, pool_ids=POOL_IDS)
    options = urlencode(option_pairs(asked.options))
    return redirect(f"{reverse('pool', args=[asked.pool_id])}?{options}".rstrip("?"))


@needs("pools:read")
@never_cache
@require_safe
def pool_page(request: HttpRequest, pool_id: str) -> HttpResponse:
    """Show one pool alone; an unknown id is 404 and names the ids there are (I)."""
    if pool_id not in POOL_IDS:
        raise Http404(f"There is no pool {pool_id}. The ids are {', '.join(POOL_IDS)}.")
    asked = asked_of(request.GET, pool_ids=POOL_IDS, pool_id=pool_id)
    context = page_context(seen=see(now=clock.now()), asked=asked, names=POOL_REGIONS)
    return render(request, "ladder/pool.html", context | {"section": "ladder", "shows": "pool"})


@never_cache
@require_safe
def live_ladder(request: HttpRequest) -> HttpResponse:
    """Answer 204 while the picture of the browser holds, else the regions of it that changed."""
    now = clock.now()
    answer = answer_held(request, right="pools:read", now=now)
    if answer is not None:
        return answer
    shows = "pool" if request.GET.get("show") == "pool" else "ladder"
    names = POOL_REGIONS if shows == "pool" else LADDER_REGIONS
    context = page_context(seen=see(now=now), asked=asked_of(request.GET, pool_ids=POOL_IDS), names=names)
    changed = [out_of_band(name=name, html=html) for name, html in changed_regions(request, context).items()]
    return render(request, "ladder/_live.html", context | {"shows": shows, "changed": changed})
