"""Short ways to use the tuning page in tests, as a browser would: by what its form holds."""

import re
from html import unescape
from typing import Any

from django.contrib.auth.models import Group
from django.test import Client


def client_of(django_user_model: Any, name: str, *roles: str) -> Client:
    """Return a client on which somebody with these roles is signed in."""
    user = django_user_model.objects.create_user(name, f"{name}@example.com", "x")
    user.groups.set(Group.objects.filter(name__in=roles))
    client = Client()
    client.force_login(user)
    return client


def fields_of(html: str) -> dict[str, str]:
    """Return what the page's form would send: every input inside it, and the chosen of its choices."""
    form = re.search(r'<form class="stack" id="tune".*?</form>', html, re.DOTALL)
    assert form, html[:2000]
    fields: dict[str, str] = {}
    for tag in re.findall(r"<input[^>]*>", form[0]):
        attributes = dict(re.findall(r'([a-z-]+)="([^"]*)"', tag))
        if attributes.get("type") != "radio" or re.search(r"\schecked\b", tag):
            fields[attributes["name"]] = unescape(attributes["value"])
    for name, options in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', form[0], re.DOTALL):
        fields[name] = re.search(r"<option[^>]* selected>([^<]*)", options)[1]  # type: ignore[index]
    fields.pop("csrfmiddlewaretoken", None)
    return fields


def open_page(client: Client) -> dict[str, str]:
    """Open the page and return the fields of its form."""
    return fields_of(client.get("/tuning").content.decode())


def text_of(html: str) -> str:
    """Return what people read of a piece of HTML, blanks folded."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html.replace("<wbr>", "")))).strip()


def part(html: str, start: str, end: str) -> str:
    """Return the text from one mark to the next."""
    return text_of(html[html.index(start) : html.index(end, html.index(start))])
