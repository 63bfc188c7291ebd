"""A small provider of OpenID Connect for tests: a real HTTP server that signs with RSA, checks PKCE, and can misbehave.

`misbehave` changes what it says next; whoever asks it for a code is `person`, without being asked anything.
"""

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

CLIENT, SECRET = "ladder", "the-client-secret-of-the-tests"


class Provider(ThreadingHTTPServer):
    """The provider. `asked` are the addresses that it was asked, `codes` what each code was given for."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.issuer = f"http://127.0.0.1:{self.server_port}/realm"
        self.key = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
        self.person: dict[str, Any] = {"sub": "1234", "preferred_username": "mira", "email": "mira@example.com"}
        self.claims: dict[str, Any] = {}
        self.description: dict[str, Any] = {}
        self.sign = self.by_key
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.sent: list[dict[str, str]] = []

    def by_key(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "RS256", "kid": "first"}, claims, self.key)

    def by_another_key(self, claims: dict[str, Any]) -> str:
        other = RSAKey.generate_key(2048, {"kid": "first"})
        return jwt.encode({"alg": "RS256", "kid": "first"}, claims, other)

    def by_the_shared_secret(self, claims: dict[str, Any]) -> str:
        return jwt.encode({"alg": "HS256"}, claims, OctKey.import_key(SECRET))

    def by_the_public_key_as_a_secret(self, claims: dict[str, Any]) -> str:
        public = self.key.as_pem(private=False)
        header, body = (_b64(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": "first"}, claims))
        import hmac

        mac = hmac.digest(public, f"{header}.{body}".encode(), "sha256")
        return f"{header}.{body}.{_b64(mac)}"

    def by_nothing(self, claims: dict[str, Any]) -> str:
        return f"{_b64(json.dumps({'alg': 'none'}).encode())}.{_b64(json.dumps(claims).encode())}."

    def describe(self) -> dict[str, Any]:
        base = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }
        return base | self.description

    def id_token(self, given: dict[str, str]) -> str:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": given["nonce"]}
        claims |= self.person | self.claims
        return self.sign({name: value for name, value in claims.items() if value is not None})


class _Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self.server.asked.append(self.path)
        if parts.path == "/realm/.well-known/openid-configuration":
            self._json(self.server.describe())
        elif parts.path == "/realm/keys":
            self._json({"keys": [self.server.key.as_dict(private=False)]})
        elif parts.path == "/realm/authorize":
            self._authorize({name: values[0] for name, values in parse_qs(parts.query).items()})
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        sent = {name: values[0] for name, values in parse_qs(body).items()}
        self.server.sent.append(sent)
        given = self.server.codes.pop(sent.get("code", ""), None)
        basic = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        challenge = _b64(hashlib.sha256(sent.get("code_verifier", "").encode()).digest())
        if self.headers.get("Authorization") != basic:
            self._json({"error": "invalid_client"}, status=401)
        elif given is None or challenge != given["code_challenge"] or sent["redirect_uri"] != given["redirect_uri"]:
            self._json({"error": "invalid_grant"}, status=400)
        else:
            answer = {"access_token": secrets.token_urlsafe(), "token_type": "Bearer", "expires_in": 60}
            self._json(answer | {"id_token": self.server.id_token(given)})

    def _authorize(self, asked: dict[str, str]) -> None:
        wanted = (asked["client_id"], asked["response_type"], asked["code_challenge_method"])
        assert wanted == (CLIENT, "code", "S256")
        assert {"state", "nonce", "code_challenge", "redirect_uri"} <= set(asked)
        code = secrets.token_urlsafe()
        self.server.codes[code] = asked
        self.send_response(302)
        self.send_header("Location", f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}")
        self.end_headers()

    def _json(self, body: dict[str, Any], status: int = 200) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def running_provider() -> Iterator[Provider]:
    """Serve a provider beside the block."""
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _b64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()
