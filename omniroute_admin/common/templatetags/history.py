"""Texts of people in a history: as long as they are, in whatever direction they run (SPEC 5)."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

CLIPPED_AT = 240
"""Characters of a text that a line of a list shows; the page of the version shows it whole."""


@register.filter
def clipped(text: str) -> str:
    """Return the start of a long text, with an ellipsis."""
    return text if len(text) <= CLIPPED_AT else f"{text[:CLIPPED_AT].rstrip()}…"


@register.simple_tag
def whole(text: str) -> SafeString:
    """Render a text of a person: a long one folds."""
    if len(text) <= CLIPPED_AT:
        return format_html('<span class="said" dir="auto">{}</span>', text)
    return format_html(
        '<details class="said"><summary dir="auto">{}</summary><div dir="auto">{}</div></details>', clipped(text), text
    )
