"""Error pages say in plain words what is wrong, and show nothing of the inside."""

from __future__ import annotations

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.views import defaults
from pytest_django.fixtures import Settings

from portal.domain.schema import Problem
from portal.services.errors import Conflict, Forbidden, InvalidInput, NotFound, ServiceError, Unavailable
from portal.web.doors import page, status_of
from tests.web.conftest import SignIn


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInput([Problem("/name", "too-long", "is too long")]), 400),
        (Forbidden("not-yours", "Not yours."), 403),
        (NotFound("request", "x"), 404),
        (Conflict("too-late", "Too late."), 409),
        (Unavailable("feed-incomplete", "Later."), 503),
        (ServiceError("no-bundle", "No policy bundle is active."), 503),
    ],
)
def test_each_refusal_has_its_status_and_its_words(sign_in: SignIn, error: ServiceError, status: int) -> None:
    @page("GET")
    def refuses(request: HttpRequest, acting: object) -> HttpResponse:
        raise error

    client = sign_in("ada")
    request = RequestFactory().get("/x/")
    request.user = client.get("/").wsgi_request.user
    response = refuses(request)
    assert (response.status_code, status_of(error)) == (status, status)
    text = response.content.decode()
    assert error.code in text
    assert error.message.split(":")[0][:10] in text


def test_a_fault_of_our_own_shows_nothing_of_the_inside() -> None:
    response = defaults.server_error(RequestFactory().get("/"))
    assert response.status_code == 500
    text = response.content.decode()
    assert "It is not your doing" in text
    assert "Traceback" not in text


def test_a_body_that_is_too_large_is_said_in_plain_words(settings: Settings) -> None:
    settings.REQUEST_BODY_LIMIT = 2000
    headers = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    response = Client().post("/login/", {"username": "x" * 3000}, headers=headers)
    assert response.status_code == 413
    assert "too much at once" in response.content.decode()
    assert "default-src 'self'" in response.headers["Content-Security-Policy"]


@pytest.mark.django_db
def test_an_unknown_address_is_a_page() -> None:
    response = Client().get("/nowhere/")
    assert response.status_code == 404
    assert "There is nothing here" in response.content.decode()
