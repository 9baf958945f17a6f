"""A log-in service for tests: OpenID Connect on the loopback, with a key of its own and lies on demand."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT_ID = "tacit"
CLIENT_SECRET = "the-client's-secret"


def encoded(content: bytes) -> bytes:
    """Base64 as tokens have it."""
    return base64.urlsafe_b64encode(content).rstrip(b"=")


class Provider:
    """One service; `lie` changes what the next ID token holds or how it is signed."""

    def __init__(self) -> None:
        self.key = RSAKey.generate_key(2048, {"kid": "first"})
        self.published: list[Any] = [self.key]
        self.shared = b""
        self.claims: dict[str, Any] = {}
        self.header: dict[str, Any] = {"alg": "RS256", "kid": "first"}
        self.raw_token: str | None = None
        self.metadata: dict[str, Any] = {}
        self.token_status = 200
        self.padding = 0
        self.codes: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                if self.path.endswith("/.well-known/openid-configuration"):
                    self._answer(200, outer.described())
                else:
                    keys = [key if isinstance(key, dict) else key.as_dict(private=False) for key in outer.published]
                    self._answer(200, {"keys": keys, "padding": "x" * outer.padding})

            def do_POST(self) -> None:
                outer.asked.append(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = {name: values[0] for name, values in parse_qs(body).items()}
                self._answer(*outer.exchanged(form))

            def _answer(self, status: int, document: Any) -> None:
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_arguments: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer = f"http://127.0.0.1:{self._server.server_port}/realm"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def described(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize?tenant=clinic",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
        } | self.metadata

    def authorize(self, url: str) -> dict[str, str]:
        """Do what a browser and a person do there, and return what the callback gets."""
        query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        code = f"code{len(self.codes)}"
        self.codes[code] = query
        return {"code": code, "state": query["state"]}

    def exchanged(self, form: dict[str, str]) -> tuple[int, Any]:
        query = self.codes.get(form.get("code", ""), {})
        challenge = encoded(hashlib.sha256(form.get("code_verifier", "").encode()).digest()).decode()
        if (
            self.token_status != 200
            or query.get("code_challenge") != challenge
            or query.get("redirect_uri") != form.get("redirect_uri")
            or form.get("client_secret") != CLIENT_SECRET
        ):
            return self.token_status if self.token_status != 200 else 400, {"error": "invalid_grant"}
        return 200, {"access_token": "x", "token_type": "Bearer", "id_token": self.id_token(query["nonce"])}

    def id_token(self, nonce: str) -> str:
        if self.raw_token is not None:
            return self.raw_token
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "sub": "42",
            "aud": CLIENT_ID,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "preferred_username": "bob",
        } | self.claims
        kept = {name: value for name, value in claims.items() if value is not None}
        if self.header["alg"] in ("none", "HS256"):  # what no library would sign
            signed = b".".join(encoded(json.dumps(part).encode()) for part in (self.header, kept))
            tag = hmac.digest(self.shared, signed, "sha256") if self.header["alg"] == "HS256" else b""
            return (signed + b"." + encoded(tag)).decode()
        return jwt.encode(self.header, kept, self.key, algorithms=[self.header["alg"]])
