"""Reading a page's form as a browser would send it."""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any


class _Form(HTMLParser):
    """Reads what the form of an id would send as it stands."""

    def __init__(self, marks: Callable[[dict[str, str | None]], bool]) -> None:
        super().__init__()
        self.marks, self.inside, self.values = marks, False, dict[str, str]()
        self.area = self.select = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if tag == "form":
            self.inside = self.marks(given)
        if not self.inside:
            return
        name = given.get("name") or ""
        if tag == "input" and (given.get("type") not in {"radio", "checkbox"} or "checked" in given) and name:
            self.values[name] = given.get("value") or ""
        elif tag == "textarea":
            self.area, self.values[name] = name, ""
        elif tag == "select":
            self.select, self.values[name] = name, ""
        elif tag == "option" and self.select and "selected" in given:
            self.values[self.select] = given.get("value") or ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self.inside = False
        elif tag == "textarea":
            self.area = ""
        elif tag == "select":
            self.select = ""

    def handle_data(self, data: str) -> None:
        if self.inside and self.area:
            # The line break after the tag is the markup's.
            self.values[self.area] += data.removeprefix("\n") if not self.values[self.area] else data


def form_in(response: Any, *, marks: Callable[[dict[str, str | None]], bool] | None = None) -> dict[str, str]:
    """Return the fields of the main form of a page as a browser would send them."""
    reader = _Form(marks or (lambda given: given.get("id") == "row-form"))
    reader.feed(response.content.decode())
    assert reader.values, response.status_code
    return reader.values
