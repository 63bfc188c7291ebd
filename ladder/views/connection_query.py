"""What the address of a connection's page asks for: pages of its lists, models, and the act to open (SPEC 5, 2)."""

import re
from urllib.parse import urlencode

import msgspec
from django.http import QueryDict

_NUMBER = re.compile(r"[0-9]{1,9}")
_LONGEST = 200


class ConnectionAsked(msgspec.Struct, frozen=True):
    """What a page was asked for; what cannot be is left out, so an old bookmark still shows a page.

    `models` is a part of a model's name; `past` the key of a deleted connection of the same name; `act` the act whose
    form is open, `window` the window chosen in it.
    """

    models: str = ""
    windows_page: int = 1
    models_page: int = 1
    history_page: int = 1
    past: int | None = None
    act: str = ""
    window: str = ""

    def query(self, **changes: int | str) -> str:
        """Return the query string of what is asked, with other pages where given; the open act is no part of it."""
        asked = msgspec.structs.replace(self, **changes)
        pages = (("windows", asked.windows_page), ("page", asked.models_page), ("history", asked.history_page))
        pairs = [("models", asked.models)] if asked.models else []
        pairs += [(name, str(number)) for name, number in pages if number > 1]
        pairs += [("past", str(asked.past))] if asked.past is not None else []
        return urlencode(pairs)

    def live_query(self) -> str:
        """Return the query string that a poll asks with: the open form is part of the picture."""
        opened = [(name, value) for name, value in (("act", self.act), ("window", self.window)) if value]
        return "&".join(filter(None, (self.query(), urlencode(opened))))


def connection_asked(query: QueryDict) -> ConnectionAsked:
    """Return what a query string asks for."""
    past = query.get("past", "")
    return ConnectionAsked(
        models=_text(query, "models"),
        windows_page=_number(query, "windows"),
        models_page=_number(query, "page"),
        history_page=_number(query, "history"),
        past=int(past) if _NUMBER.fullmatch(past) else None,
        act=_text(query, "act"),
        window=_text(query, "window"),
    )


def _text(query: QueryDict, name: str) -> str:
    return query.get(name, "").replace("\x00", "").strip()[:_LONGEST]


def _number(query: QueryDict, name: str) -> int:
    text = query.get(name, "")
    return max(1, int(text)) if _NUMBER.fullmatch(text) else 1
