"""Calls the portal as a web server does: its WSGI application, all middleware included, in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from wsgiref.util import setup_testing_defaults

from django.core.handlers.wsgi import WSGIHandler


@dataclass(frozen=True)
class Caller:
    """One person's token at the door."""

    application: WSGIHandler
    token: str

    def get(self, path: str) -> bytes:
        return self._call("GET", path, b"", 200)

    def post(self, path: str, body: dict[str, Any], status: int = 201) -> bytes:
        return self._call("POST", path, json.dumps(body).encode(), status)

    def _call(self, method: str, path: str, body: bytes, expected: int) -> bytes:
        path, _, query = path.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "HTTP_HOST": "localhost",
            "HTTP_ACCEPT": "application/json",
            "HTTP_AUTHORIZATION": f"Bearer {self.token}",
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        setup_testing_defaults(environ)
        found: list[str] = []
        response = self.application(environ, lambda status, headers, error=None: found.append(status))
        content = b"".join(response)
        response.close()  # here Django gives the connection back to the pool
        assert found[0].startswith(str(expected)), (found, content[:500])
        return content
