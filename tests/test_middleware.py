"""What holds for every response: the largest body, and headers that browsers obey."""

from __future__ import annotations

import json

import pytest
from django.test import Client
from pytest_django.fixtures import Settings


@pytest.fixture(autouse=True)
def _small_limit(settings: Settings) -> None:
    settings.REQUEST_BODY_LIMIT = 2048


@pytest.mark.parametrize(
    ("size", "status", "reason"),
    [(0, 200, "no body"), (2048, 200, "just at the limit"), (2049, 413, "one byte more")],
)
def test_a_body_over_the_limit_is_refused(client: Client, size: int, status: int, reason: str) -> None:
    response = client.post("/healthz", b"x" * size, content_type="application/octet-stream")
    assert response.status_code == status, reason
    if status == 413:
        assert response.headers["Content-Type"] == "application/problem+json"
        problem = json.loads(response.content)
        assert (problem["status"], problem["code"]) == (413, "body-too-large")
        assert "2049 bytes; at most 2048" in problem["detail"]


@pytest.mark.parametrize(
    ("length", "status", "reason"),
    [
        ("9" * 400, 413, "a number so long that reading it as one would be work"),
        ("-1", 400, "negative"),
        ("1e3", 400, "not a number of bytes"),
        ("٣", 400, "a digit of another script"),
    ],
)
def test_a_length_that_is_none_is_refused(client: Client, length: str, status: int, reason: str) -> None:
    response = client.get("/healthz", headers={"content-length": length})
    assert response.status_code == status, reason


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("application/json", "application/json"),
        ("*/*", "application/problem+json"),
        ("application/json, application/problem+json", "application/problem+json"),
    ],
)
def test_an_error_comes_as_what_the_client_takes(client: Client, accept: str, media_type: str) -> None:
    response = client.post("/healthz", b"x" * 3000, content_type="text/plain", headers={"accept": accept})
    assert response.headers["Content-Type"] == media_type


def test_security_headers_are_on_every_response(client: Client) -> None:
    for response in (client.get("/healthz"), client.post("/healthz", b"x" * 3000, content_type="text/plain")):
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
        assert "unsafe-inline" not in response.headers["Content-Security-Policy"].split("style-src")[0]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.headers["Referrer-Policy"] == "same-origin"


def test_a_host_that_is_not_ours_is_refused(client: Client, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["portal.example.org"]
    assert client.get("/admin/login/", headers={"host": "evil.example.org"}).status_code == 400


@pytest.mark.django_db
def test_ready_asks_the_database(client: Client) -> None:
    assert client.get("/readyz").json() == {"status": "ok"}
