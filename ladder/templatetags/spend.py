"""Small pieces of the spend page."""

from collections.abc import Mapping

from django import template

register = template.Library()


@register.simple_tag
def sort_of(sorts: Mapping[str, tuple[str, str]] | None, name: str) -> tuple[str, str] | None:
    """Return how a column is sorted by: the query of the link, and the way it is sorted now; None where it is not."""
    return None if sorts is None else sorts.get(name)
