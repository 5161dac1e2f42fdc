"""Errors: always a problem, in the media type that the client takes, and never a stack trace."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404
from django.test import Client
from pytest_django.fixtures import Settings

from portal.api import requests
from portal.models import ActiveDocument
from portal.services import access
from tests.api.calls import BASE, Caller
from tests.api.conftest import As, Unwritten
from tests.sample import model_body
from tests.world import World

PROBLEM, PLAIN = "application/problem+json", "application/json"
ACCEPTS = [
    (None, PROBLEM, "no word about it"),
    ("*/*", PROBLEM, "anything"),
    ("application/json", PLAIN, "only plain JSON"),
    ("application/json; q=0.9", PLAIN, "only plain JSON, with a weight"),
    ("application/json, text/plain", PLAIN, "plain JSON and something that isn't JSON"),
    ("application/json, */*;q=0.1", PROBLEM, "anything after plain JSON"),
    ("application/problem+json, application/json", PROBLEM, "both"),
    ("application/*", PROBLEM, "any application type"),
]


@pytest.mark.parametrize("accept, kind, reason", ACCEPTS)
def test_the_media_type_of_an_error(call_as: As, accept: str | None, kind: str, reason: str) -> None:
    answer = call_as("ada").get("requests/?surprise=1", headers={"Accept": accept} if accept else None)
    assert answer.status == 400
    assert answer.headers["Content-Type"] == kind, reason


def test_an_error_has_all_its_members(call_as: As, settings: Settings) -> None:
    answer = call_as("ada").get("requests/?surprise=1")
    assert answer.json == {
        "type": f"{settings.PUBLIC_URL}/problems/invalid-input",
        "title": "Bad Request",
        "status": 400,
        "detail": answer.json["detail"],
        "code": "invalid-input",
        "errors": [
            {
                "pointer": "/query/surprise",
                "code": "unknown-parameter",
                "message": "there is no such parameter; known: state, kind, team, environment, offering, requester, "
                "waitingFor, cursor, limit",
            }
        ],
        "instance": "/api/v1/requests/",
    }


NOWHERE = ["/api/", "/api/v2/", "nothing/", "requests", "requests/1/", "requests/%00/", "offerings/A%2F/", "/api/v1"]


@pytest.mark.parametrize("path", NOWHERE)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_what_is_not_there(call_as: As, path: str, method: str) -> None:
    answer = call_as("ada").verb(method, path)
    assert (answer.status, answer.code) == (404, "not-found")
    assert answer.headers["Content-Type"] == PROBLEM


def test_a_slash_that_is_missing_is_named(call_as: As) -> None:
    assert "/api/v1/requests/" in call_as("ada").post("requests", {}).json["detail"]


@pytest.mark.parametrize("method, path", [("DELETE", "requests/"), ("PUT", "quotas/"), ("OPTIONS", "requests/")])
def test_a_verb_that_is_not_there(call_as: As, method: str, path: str) -> None:
    answer = call_as("ada").verb(method, path)
    assert (answer.status, answer.code) == (405, "method-not-allowed")
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/png"])
def test_what_is_not_answered(call_as: As, accept: str) -> None:
    answer = call_as("ada").get("requests/", headers={"Accept": accept})
    assert (answer.status, answer.code) == (406, "not-acceptable")
    assert answer.headers["Content-Type"] == PROBLEM


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/yaml", "nonsense"])
def test_a_body_of_another_type(call_as: As, nothing_written: Unwritten, kind: str) -> None:
    with nothing_written():
        answer = call_as("ada").post("requests/", model_body(), kind=kind)
    assert (answer.status, answer.code) == (415, "unsupported-media-type")


def test_a_charset_is_no_other_type(call_as: As) -> None:
    assert call_as("ada").post("requests/", model_body(), kind="application/json; charset=utf-8").status == 201


def test_a_body_that_is_too_large(call_as: As, nothing_written: Unwritten, settings: Settings) -> None:
    with nothing_written():
        answer = call_as("ada").post("requests/", b" " * (settings.REQUEST_BODY_LIMIT + 1))
    assert (answer.status, answer.code) == (413, "body-too-large")


def chunked(token: str, body: bytes, terminated: bool) -> tuple[int, bytes]:
    """(status, body) of a submission without a length, as a server hands it over."""
    environ: dict[str, Any] = {
        "CONTENT_TYPE": "application/json",
        "HTTP_TRANSFER_ENCODING": "chunked",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": terminated,
    }
    headers = {"Authorization": f"Bearer {token}"}
    answer = Client().generic("POST", BASE + "requests/", headers=headers, **environ)
    return answer.status_code, answer.content


def test_a_chunked_body_is_read(world: World) -> None:
    status, body = chunked(world.tokens["ada"], json.dumps(model_body()).encode(), terminated=True)
    assert status == 201, body


def test_a_chunked_body_that_is_too_large(world: World, nothing_written: Unwritten, settings: Settings) -> None:
    with nothing_written():
        status, body = chunked(world.tokens["ada"], b"[" * (settings.REQUEST_BODY_LIMIT + 1), terminated=True)
    assert status == 413
    assert b"body-too-large" in body


def test_a_chunked_body_that_can_t_be_read(world: World, nothing_written: Unwritten) -> None:
    with nothing_written():
        status, body = chunked(world.tokens["ada"], b"{}", terminated=False)
    assert status == 411
    assert b"length-required" in body


RAISED = [
    (RuntimeError("secret of the house"), 500, "internal-error"),
    (KeyError("secret of the house"), 500, "internal-error"),
    (OperationalError("secret of the house"), 503, "database-unavailable"),
    (SuspiciousOperation("secret of the house"), 400, "bad-request"),
    (Http404("secret of the house"), 404, "not-found"),
    (PermissionDenied(), 403, "forbidden"),
]


@pytest.mark.parametrize("error, status, code", RAISED)
def test_what_nobody_expected(
    call_as: As, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int, code: str
) -> None:
    def broken(*args: object) -> None:
        raise error

    monkeypatch.setattr(access, "visible_requests", broken)
    answer = call_as("ada").get("requests/")
    assert (answer.status, answer.code) == (status, code)
    assert "secret" not in answer.text
    assert requests.access.visible_requests is broken


def test_without_a_bundle_nothing_is_decided(call_as: As, nothing_written: Unwritten) -> None:
    ActiveDocument.objects.filter(kind="bundle").delete()
    with nothing_written():
        answer = call_as("ada").post("requests/", model_body())
    assert (answer.status, answer.code) == (503, "no-bundle")
    assert answer.headers["Retry-After"] == "30"


def test_no_error_without_an_endpoint() -> None:
    assert Caller().get("/healthz").status == 200
