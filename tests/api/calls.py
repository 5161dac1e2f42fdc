"""Calling the API as a person with a token, through all of Django."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.test import Client

BASE = "/api/v1/"


@dataclass(frozen=True)
class Answer:
    """What came back; `json` of an empty body is None."""

    status: int
    json: Any
    headers: dict[str, str]
    text: str

    @property
    def code(self) -> str:
        return str(self.json["code"])


@dataclass(frozen=True)
class Caller:
    """One token at the door; None: no credentials."""

    token: str | None = None

    def get(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Answer:
        """GET below /api/v1/, or of an absolute address as found in an answer."""
        return _answer(_client().get(_path(path), query or None, headers=self._headers(headers)))

    def post(
        self, path: str, body: Any = None, headers: dict[str, str] | None = None, kind: str = "application/json"
    ) -> Answer:
        """POST a value as JSON; bytes go as they are."""
        raw = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        return _answer(_client().post(_path(path), raw, content_type=kind, headers=self._headers(headers)))

    def verb(self, method: str, path: str) -> Answer:
        """Any other method."""
        return _answer(_client().generic(method, _path(path), headers=self._headers(None)))

    def _headers(self, more: dict[str, str] | None) -> dict[str, str]:
        own = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return {**own, **(more or {})}


def _client() -> Client:
    """A client without cookies. All share one handler: loading the middleware takes longer than most calls."""
    client = Client()
    client.handler = _shared.handler
    return client


_shared = Client()


def _path(path: str) -> str:
    if path.startswith("http"):
        return "/" + path.split("/", 3)[3]
    return path if path.startswith("/") else BASE + path


def _answer(response: HttpResponse) -> Answer:
    text = response.content.decode()
    is_json = "json" in response.headers.get("Content-Type", "")
    return Answer(response.status_code, json.loads(text) if is_json and text else None, dict(response.headers), text)
