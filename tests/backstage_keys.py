"""A stand-in for what Backstage serves without a person: its public keys, and a catalog of people and groups; and the
tokens that its keys sign. Over real HTTP, so that the adapters meet what they meet in front of the real one."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

USER, PLUGIN, LIMITED = "vnd.backstage.user", "vnd.backstage.plugin", "vnd.backstage.limited-user"


class Key:
    """A key that a plugin signs with."""

    def __init__(self, kid: str) -> None:
        self.kid, self.private = kid, ec.generate_private_key(ec.SECP256R1())

    def jwk(self) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(self.private.public_key()))
        return {**made, "kid": self.kid, "alg": "ES256", "use": "sig"}

    def pem(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, claims: dict[str, Any], typ: str | None, **header: Any) -> str:
        given = {"typ": typ, "kid": self.kid, **header}
        return jwt.encode(claims, self.private, "ES256", headers={k: v for k, v in given.items() if v is not None})


class Stand:
    """The stand-in at `url`. `entities`: reference -> entity. `down`: it answers 503 to everything."""

    def __init__(self) -> None:
        self.auth, self.scaffolder, self.other = Key("auth-1"), Key("scaffolder-1"), Key("other-1")
        self.keys = {"auth": [self.auth], "scaffolder": [self.scaffolder], "other": [self.other]}
        self.entities: dict[str, dict[str, Any]] = {}
        self.url, self.down, self.asked = "", False, 0

    def user(self, ref: str, uid: str, *groups: str) -> None:
        """Put a person into the catalog, or change who they are."""
        name = ref.rpartition("/")[2]
        self.entities[ref] = {
            "kind": "User",
            "metadata": {"name": name, "namespace": "default", "uid": uid},
            "spec": {"profile": {"displayName": name.title(), "email": f"{name}@example.org"}},
            "relations": [{"type": "memberOf", "targetRef": group} for group in groups],
        }

    def group(self, ref: str, *above: str) -> None:
        self.entities[ref] = {
            "kind": "Group",
            "metadata": {"name": ref.rpartition("/")[2], "namespace": "default", "uid": ref},
            "relations": [{"type": "childOf", "targetRef": parent} for parent in above],
        }

    # --- tokens as the real one makes them, and as it doesn't ---------------------------------------------------------

    def claims(self, ref: str, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        made = {"iss": f"{self.url}/api/auth", "sub": ref, "aud": "backstage", "iat": now, "exp": now + 3600, **changes}
        return {key: value for key, value in made.items() if value is not None}

    def user_token(self, ref: str, **changes: Any) -> str:
        return self.auth.sign(self.claims(ref, **changes), USER)

    def limited(self, ref: str, **changes: Any) -> dict[str, Any]:
        return self.claims(ref, **{"iss": None, "aud": None, **changes})

    def plugin_claims(self, obo: str | None, **changes: Any) -> dict[str, Any]:
        return self.claims("scaffolder", **{"iss": None, "aud": "proxy", "obo": obo, **changes})

    def plugin_token(self, ref: str | None, **changes: Any) -> str:
        obo = self.auth.sign(self.limited(ref), LIMITED) if ref else None
        return self.scaffolder.sign(self.plugin_claims(obo, **changes), PLUGIN)

    # --- what it answers ----------------------------------------------------------------------------------------------

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        self.asked += 1
        if self.down:
            return 503, {"error": "down"}
        steps = path.strip("/").split("/")
        if path == "/api/auth/.well-known/jwks.json":
            return 200, {"keys": [key.jwk() for key in self.keys["auth"]]}
        if path.endswith("/.backstage/auth/v1/jwks.json"):
            return 200, {"keys": [key.jwk() for key in self.keys.get(steps[1], [])]}
        if path == "/api/catalog/entities/by-refs":
            return 200, {"items": [self.entities.get(ref) for ref in body["entityRefs"]]}
        if path.startswith("/api/catalog/entities/by-name/"):
            found = self.entities.get(f"{steps[-3]}:{steps[-2]}/{steps[-1]}")
            return (200, found) if found else (404, {"error": {"name": "NotFoundError"}})
        return 404, {"error": path}


@contextmanager
def standing() -> Iterator[Stand]:
    """A stand-in that answers on a port of its own."""
    stand = Stand()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _reply(self, body: Any) -> None:
            status, answer = stand.answer(self.path, body)
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stand.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield stand
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
