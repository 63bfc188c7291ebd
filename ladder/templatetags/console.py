"""Small pieces that every page uses: shapes, bars, times, breakable names, and the navigation."""

from typing import Any

import msgspec
from django import template
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from omniroute_admin.common.core.roles import AUDIT_READ, KEYS_WRITE
from omniroute_admin.common.core.screen import Moment, Segment, StateWord
from omniroute_admin.common.scopes import rights_of_user

register = template.Library()

NAVIGATION = (
    ("ladder", "Ladder", "ladder", "pools:read"),
    ("connections", "Connections", "connections", "connections:read"),
    ("tuning", "Tuning", "tuning", "settings:read"),
    ("catalogue", "Catalogue", "catalogue", "catalog:read"),
    ("spend", "Spend", "spend", "settings:read"),
    ("timeline", "Timeline", "timeline", "pools:read"),
    ("alerts", "Alerts", "alerts", "settings:read"),
    ("audit", "Audit", "audit", AUDIT_READ),
    ("keys", "Keys", "keys", KEYS_WRITE),
)
"""The console in its order: key, word, the name of its address, and the right to open it."""


@register.inclusion_tag("console/_nav.html", takes_context=True)
def navigation(context: dict[str, Any], section: str = "") -> dict[str, Any]:
    """Render the main navigation; what its reader may not open is left out."""
    request = context.get("request")
    user = getattr(request, "user", None)
    rights = rights_of_user(user) if user is not None and user.is_authenticated else frozenset()
    items = [
        {"word": word, "url": url, "is_current": key == section or (not section and _is_under(url, request))}
        for key, word, name, right in NAVIGATION
        if right in rights
        for url in (_address_of(name),)
    ]
    return {"items": items}


def _is_under(url: str, request: HttpRequest | None) -> bool:
    """Tell whether the page asked for belongs to a list of the admin."""
    return request is not None and url not in {"/", reverse("admin:index")} and request.path.startswith(url)


def _address_of(name: str) -> str:
    try:
        return reverse(name)
    except NoReverseMatch:
        return reverse("admin:index")


@register.simple_tag
def shape(name: str, tone: str = "") -> SafeString:
    """Render a shape of the page's sprite; it is decoration, the word stands beside it."""
    return format_html(
        '<svg class="icon{}" aria-hidden="true"><use href="#s-{}"/></svg>', f" is-{tone}" if tone else "", name
    )


@register.simple_tag
def state(value: StateWord) -> SafeString:
    """Render a state: shape, word and colour."""
    return format_html('<span class="state is-{}">{}{}</span>', value.tone, shape(value.shape), value.word)


@register.simple_tag
def tile(index: int) -> SafeString:
    """Render a rung's number on its colour."""
    return format_html('<span class="tile rung-{}" aria-hidden="true">{}</span>', index, index)


@register.simple_tag
def clock(moment: Moment) -> SafeString:
    """Render the clock of a moment."""
    return format_html('<time datetime="{}">{}</time>', moment.iso, moment.clock)


@register.simple_tag
def tick(moment: Moment) -> SafeString:
    """Render the words of a moment, which the browser goes on counting."""
    return format_html('<span data-tick="{}" data-at="{}">{}</span>', moment.tick, moment.iso, moment.words)


@register.filter
def breakable(text: str, marks: str = "/:_") -> SafeString:
    """Allow a line break after each of these marks: an id has no blanks to break at."""
    escaped = str(escape(text))
    for mark in marks:
        escaped = escaped.replace(mark, f"{mark}<wbr>")
    return mark_safe(escaped)  # noqa: S308 - escaped above


_FORMS = {
    "": "{text}",
    "strong": "<strong>{text}</strong>",
    "code": "<code>{text}</code>",
    "serving": '<strong class="serving">{text}</strong>',
    "clock": '<time datetime="{iso}">{text}</time>',
    "label": '<span title="{whole}">{text}</span>',
    "short": '<span title="{whole}"><span aria-hidden="true">{text}</span><span class="vh">{whole}</span></span>',
    "tick": '<span data-tick="{tick}" data-at="{iso}">{text}</span>',
}


@register.simple_tag
def sentence(segments: tuple[Segment, ...]) -> SafeString:
    """Render a sentence from its segments."""
    parts = (format_html(_FORMS[each.kind], **msgspec.structs.asdict(each)) for each in segments)
    return mark_safe("".join(parts))  # noqa: S308 - each part is escaped
