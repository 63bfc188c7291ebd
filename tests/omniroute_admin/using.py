"""Somebody who uses a real server as a browser does, and remembers every secret that they were told."""

import http.client
import re
from collections import deque
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urlencode, urljoin, urlsplit

SECONDS = 60
FORM = "application/x-www-form-urlencoded"
_LINK = re.compile(r'(?:href|src|hx-get|action)="([^"#][^"]*)"')
_STEPS_ASIDE = ("/logout", "/static/", "/admin/logout", "/admin/jsi18n")


class Page(NamedTuple):
    """An answer: its status, where it leads, and its text."""

    status: int
    location: str
    text: str


class Person:
    """Opens pages and sends forms; what cookies it was given, now and before, are in `told`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.cookies: dict[str, str] = {}
        self.told: set[str] = set()

    def ask(self, method: str, address: str, body: bytes = b"", **headers: str) -> Page:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        given = {"Cookie": cookies, "Referer": f"http://127.0.0.1:{self._port}/"} if cookies else {}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, address, body or None, given)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        for header in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
            if len(value) > 8:
                self.told.add(value.strip('"'))
        return Page(answer.status, answer.headers.get("Location", ""), text)

    def open(self, address: str, **headers: str) -> Page:
        return self.ask("GET", address, **headers)

    def send(self, address: str, *, opened: str = "", **values: Any) -> Page:
        """Open the page of a form and send the form, its hidden fields as they are."""
        page = self.open(opened or address)
        hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text))
        hidden |= dict(re.findall(r'name="(form_name|seen)" value="([^"]*)"', page.text))
        fields = {name: unescape(value) for name, value in hidden.items()} | values
        return self.ask("POST", address, urlencode(fields, doseq=True).encode(), Content_Type=FORM)

    def upload(self, address: str, *, file: str, name: str, **values: str) -> Page:
        """Send a file by a form."""
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.open(address).text)
        assert token is not None
        parts = values | {"csrfmiddlewaretoken": token[1]}
        body = "".join(
            f'--edge\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
            for field, value in parts.items()
        )
        body += (
            f'--edge\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n{file}\r\n--edge--\r\n'
        )
        return self.ask("POST", address, body.encode(), Content_Type="multipart/form-data; boundary=edge")

    def sign_in(self, username: str, password: str) -> Page:
        return self.send("/login", username=username, password=password)

    def crawl(self, most: int) -> Iterator[tuple[str, Page]]:
        """Yield every page that links lead to from the ladder, with its address."""
        waiting, seen = deque(["/", "/admin/"]), {"/", "/admin/"}
        while waiting and most:
            address = waiting.popleft()
            page = self.open(address)
            yield address, page
            most -= 1
            for link in _LINK.findall(page.text):
                target = urldefrag(urljoin(address, unescape(link)))[0]
                if self._is_new(target, seen):
                    seen.add(target)
                    waiting.append(target)

    @staticmethod
    def _is_new(target: str, seen: set[str]) -> bool:
        parts = urlsplit(target)
        if parts.netloc or not target.startswith("/") or target.startswith(_STEPS_ASIDE) or target in seen:
            return False
        # Of one page in all its orders and filters a few are enough.
        return sum(1 for one in seen if urlsplit(one).path == parts.path) < 4
