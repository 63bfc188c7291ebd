"""Prices: what models cost now, and one model's prices over time; append-only (SPEC 3; SPEC 5, 4)."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from billing_catalog.errors import PriceHasEnded, RowChanged
from billing_catalog.forms.prices import AT, NOW, EndPriceForm, SetPriceForm
from billing_catalog.forms.rows import labelled
from billing_catalog.models import ModelPrice
from billing_catalog.selectors.aliases import resolve_provider
from billing_catalog.selectors.listing import PRICE_ORDERS, PriceQuery, price_choices, prices_asked, prices_of_model
from billing_catalog.selectors.tiers import read_tier_index
from billing_catalog.services.drafts import plain_texts
from billing_catalog.services.kinds import PRICES
from billing_catalog.services.setting_prices import PriceSet, finish_price, seen_price, set_price
from billing_catalog.views.parts import (
    by_of,
    frame,
    glance,
    leaf_of,
    say_done,
    soft_reverse,
    text_of,
    version_before,
    word_of,
)
from billing_catalog.views.presenting import model_url, price_lines, tier_words
from omniroute_admin.common.core.names import is_provider
from omniroute_admin.common.errors import ProductError
from omniroute_admin.common.forms import seen_text
from omniroute_admin.common.selectors.history import entries_of
from omniroute_admin.common.views.guard import needs
from omniroute_admin.common.zone import display_zone

SORTS = (
    ("", "Order of a stored pool"),
    ("model", "Model"),
    ("cheapest", "Cheapest input"),
    ("dearest", "Dearest input"),
    ("since", "Last changed"),
)
KNOWN = (("", "any"), ("yes", "known"), ("no", "not known"), ("zero", "0"))
SHOWN_VERSIONS = 20


@needs("catalog:read")
@never_cache
@require_safe
def price_list(request: HttpRequest) -> HttpResponse:
    """List the prices in force, each with the tier it means and why."""
    seen, asked = glance(), _asked(request)
    turned = leaf_of(request, prices_asked(asked=asked, now=seen.now))
    index = read_tier_index()
    providers, sources = price_choices(now=seen.now)
    lines = price_lines(turned["leaf"], index=index, seen=seen)
    context = {
        "asked": asked,
        "lines": [(line, tier_words(line.tier, index=index)) for line in lines if line.tier],
        "providers": providers,
        "sources": sources,
        "sorts": SORTS,
        "knowns": KNOWN,
        "is_filtered": asked != PriceQuery(sort=asked.sort),
    }
    return render(
        request, "billing_catalog/prices.html", frame(tab="prices", title="Prices", seen=seen) | turned | context
    )


def _asked(request: HttpRequest) -> PriceQuery:
    return PriceQuery(
        text=text_of(request, "q"),
        provider=text_of(request, "provider"),
        source=text_of(request, "source"),
        known=word_of(request, "known", [word for word, _ in KNOWN]),
        sort=word_of(request, "sort", PRICE_ORDERS),
    )


@needs("catalog:read", to_change="catalog:write")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def model_page(request: HttpRequest) -> HttpResponse:
    """Show one model's prices, past and to come, with the form of a new one; or write it."""
    provider, model = resolve_provider(raw=text_of(request, "provider")), text_of(request, "model")
    if not is_provider(provider) or not model:
        messages.info(request, "Name a provider and a model to see its prices.")
        return redirect("catalogue-prices")
    if request.method != "POST":
        return _model_page(request, provider, model)
    form = _bound(request, provider, model)
    if not form.is_valid():
        return _model_page(request, provider, model, form=form, status=400)
    return _set(request, provider, model, form)


def _bound(request: HttpRequest, provider: str, model: str) -> SetPriceForm:
    """Return the form as it was sent; of what model it is, the address says."""
    data = request.POST.copy()
    data["provider"], data["model"] = provider, model
    return SetPriceForm(data, zone=display_zone())


def _set(request: HttpRequest, provider: str, model: str, form: SetPriceForm) -> HttpResponse:
    by = by_of(request, form.cleaned_data["reason"])
    try:
        done = set_price(began=form.cleaned_data["seen"], sent=form.sent, starts=form.starts_at, **by)
    except RowChanged as error:
        changed = labelled(PRICES, error.differences)
        form = _opened(provider, model, given=form.sent)
        return _model_page(request, provider, model, form=form, changed=changed, status=409)
    except (ValidationError, ProductError) as error:
        form.refuse(error)
        return _model_page(request, provider, model, form=form, status=400)
    _say(request, done)
    return redirect(model_url(provider=provider, model=model))


def _say(request: HttpRequest, done: PriceSet) -> None:
    name = f"{done.price.provider}/{done.price.model}"
    if not done.is_written:
        say_done(request, what=f"Saved already: {name} has just that price.", undo="")
        return
    say_done(request, what=f"Saved the price of {name}.", undo=_undo(done.price))


def _undo(price: ModelPrice) -> str:
    """Return where a price is undone: the version of the one before it, which becomes a new price.

    One that has not begun, or is the first of its model, is taken back on the model's own page.
    """
    taken_back = f"{model_url(provider=price.provider, model=price.model)}#end-{price.pk}"
    if price.effective_from > glance().now:
        return taken_back
    before = ModelPrice.objects.filter(
        provider=price.provider, model=price.model, effective_from__lt=price.effective_from
    ).order_by("-effective_from").first()  # fmt: skip
    if before is not None:
        return version_before(before, key=PRICES.key, steps=0)
    return taken_back


@needs("catalog:write")
@require_POST
def end_price_page(request: HttpRequest, pk: int) -> HttpResponse:
    """End a price, now or at an instant to come."""
    price = get_object_or_404(ModelPrice, pk=pk)
    form = EndPriceForm(request.POST, zone=display_zone(), auto_id=f"end-{pk}-%s")
    back = model_url(provider=price.provider, model=price.model)
    if not form.is_valid():
        return _model_page(request, price.provider, price.model, ending=(pk, form), status=400)
    try:
        finish_price(price=price, began=form.cleaned_data["seen"], ends=form.ends_at,
                     **by_of(request, form.cleaned_data["reason"]))  # fmt: skip
    except PriceHasEnded:
        messages.info(request, "This price has ended already.")
        return redirect(back)
    except (ProductError, ValidationError) as error:
        form.add_error(None, _words(error))
        return _model_page(request, price.provider, price.model, ending=(pk, form), status=409)
    say_done(request, what=f"Ended the price of {price.provider}/{price.model}.",
             undo=version_before(price, key=PRICES.key))  # fmt: skip
    return redirect(back)


def _words(error: ProductError | ValidationError) -> str:
    return " ".join(error.messages) if isinstance(error, ValidationError) else error.detail


def _opened(provider: str, model: str, *, given: dict[str, str] | None = None) -> SetPriceForm:
    shown = seen_price(provider=provider, model=model, now=glance().now)
    initial = {**shown, **(given or {}), "provider": provider, "model": model, "seen": seen_text(shown), "starts": NOW}
    return SetPriceForm(initial=initial, zone=display_zone())


def _model_page(
    request: HttpRequest,
    provider: str,
    model: str,
    *,
    form: SetPriceForm | None = None,
    changed: list[Any] | None = None,
    ending: tuple[int, EndPriceForm] | None = None,
    status: int = 200,
) -> HttpResponse:
    seen, index = glance(), read_tier_index()
    rows = prices_of_model(provider=provider, model=model)
    lines = price_lines(rows, index=index, seen=seen)
    entries = entries_of(kind=PRICES.key, rows=[row.pk for row in rows], limit=SHOWN_VERSIONS)
    context = {
        "provider": provider,
        "model": model,
        "form": form or _opened(provider, model),
        "changed": changed or [],
        "lines": [(line, _ending(line.row, ending) if line.state != "ended" else None) for line in lines],
        "current": next(((line, tier_words(line.tier, index=index)) for line in lines
                         if line.state == "in force" and line.tier), None),
        "versions": [(one, seen.ago(one.at), soft_reverse("history-version", PRICES.key, one.history_id))
                     for one in entries],
        "back": reverse("catalogue-prices"),
        "at": AT,
    }  # fmt: skip
    page = frame(tab="prices", title=f"Prices of {provider}/{model}", seen=seen)
    return render(request, "billing_catalog/model.html", page | context, status=status)


def _ending(row: ModelPrice, ending: tuple[int, EndPriceForm] | None) -> EndPriceForm:
    if ending is not None and ending[0] == row.pk:
        return ending[1]
    seen = seen_text(plain_texts(PRICES, row))
    return EndPriceForm(initial={"seen": seen, "ends": NOW}, zone=display_zone(), auto_id=f"end-{row.pk}-%s")
