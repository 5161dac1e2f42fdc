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


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/admin/portal/auditevent/?verb=%00", "a filter of the admin"),
        (
            "/admin/autocomplete/?app_label=portal&model_name=membership&field_name=user&term=%00",
            "a search of the admin",
        ),
        ("/audit/?verb=a%00b", "a filter of a page"),
        ("/api/v1/audit/?%00=1", "the name of a parameter"),
        ("/login/?next=/%00", "where to go after signing in"),
        ("/healthz?%00", "nobody reads it there"),
    ],
)
@pytest.mark.django_db
def test_an_address_with_a_nul_is_refused(admin_client: Client, path: str, reason: str) -> None:
    response = admin_client.get(path)
    assert response.status_code == 400, reason
    assert response.json()["errors"][0]["code"] == "bad-text", reason
    page = admin_client.get(path, headers={"accept": "text/html"})
    assert (page.status_code, page.headers["Content-Type"].split(";")[0]) == (400, "text/html"), reason


@pytest.mark.django_db
def test_a_nul_that_the_admin_spells_in_its_own_way(admin_client: Client) -> None:
    assert admin_client.get("/admin/portal/document/_00/change/").status_code in (302, 400, 404)


def test_what_only_looks_like_a_nul_passes(client: Client) -> None:
    assert client.get("/healthz?name=a%2500b").status_code == 200
