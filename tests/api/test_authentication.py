"""Who is let in: tokens, scopes, sessions. Whatever is wrong with a token, the answer is the same."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from portal.models import ApiToken, Request
from portal.services.tokens import revoke_token
from tests.api.calls import BASE, Caller
from tests.api.conftest import As, Unwritten
from tests.sample import model_body
from tests.world import FEED, World, submit


def _prefix(token: str) -> str:
    return token.split("_")[1]


def _expired(world: World) -> str:
    token = world.token("ada")
    ApiToken.objects.filter(prefix=_prefix(token)).update(expires_at=timezone.now() - dt.timedelta(seconds=1))
    return f"Bearer {token}"


def _revoked(world: World) -> str:
    token = world.token("ada")
    revoke_token(_prefix(token))
    return f"Bearer {token}"


def _inactive(world: World) -> str:
    token = world.token("ben")
    User.objects.filter(username="ben").update(is_active=False)
    return f"Bearer {token}"


def _wrong_secret(world: World) -> str:
    token = world.token("ada")
    return f"Bearer {token[:-1]}{'A' if token[-1] != 'A' else 'B'}"


def _swapped(world: World) -> str:
    ada, ben = world.token("ada"), world.token("ben")
    return f"Bearer prt_{_prefix(ada)}_{ben.split('_', 2)[2]}"


NO_GOOD: list[tuple[str, Callable[[World], str]]] = [
    ("empty", lambda world: ""),
    ("no token after the word", lambda world: "Bearer"),
    ("no word before the token", lambda world: world.token("ada")),
    ("another scheme", lambda world: "Basic YWRhOmFkYQ=="),
    ("not of the form", lambda world: "Bearer secret"),
    ("cut off", lambda world: f"Bearer {world.token('ada')[:-5]}"),
    ("something behind it", lambda world: f"Bearer {world.token('ada')} x"),
    ("nobody's", lambda world: "Bearer prt_aaaaaaaaaaaa_" + "b" * 43),
    ("of another script", lambda world: "Bearer prt_\xe4\xe4\xe4"),
    ("a megabyte of it", lambda world: "Bearer prt_" + "a" * 1_000_000),
    ("expired", _expired),
    ("revoked", _revoked),
    ("of somebody who left", _inactive),
    ("wrong secret", _wrong_secret),
    ("one's prefix with another's secret", _swapped),
]


@pytest.mark.parametrize("reason, header", NO_GOOD, ids=[reason for reason, _ in NO_GOOD])
def test_a_token_that_is_no_good(
    world: World, nothing_written: Unwritten, reason: str, header: Callable[[World], str]
) -> None:
    given = {"Authorization": header(world)}
    with nothing_written():
        reading = Caller().get("requests/", headers=given)
        writing = Caller().post("requests/", model_body(), headers=given)
    for answer in (reading, writing):
        assert (answer.status, answer.code) == (401, "invalid-token"), reason
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="portal"'


def test_without_credentials(world: World, nothing_written: Unwritten) -> None:
    with nothing_written():
        answers = [Caller().get(""), Caller().get("catalog/entities/"), Caller().post("requests/", model_body())]
    for answer in answers:
        assert (answer.status, answer.code) == (401, "not-authenticated")
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="portal"'


SCOPED = [
    ("request", "GET", "requests/", "read"),
    ("request", "GET", "offerings/", "read"),
    ("feed", "GET", "audit/", "read"),
    ("approve", "GET", "", "read"),
    ("read", "POST", "requests/", "request"),
    ("approve", "POST", "requests/preview/", "request"),
    ("read", "POST", "requests/{id}/withdraw/", "request"),
    ("request", "POST", "requests/{id}/approve/", "approve"),
    ("read", "POST", "requests/{id}/reject/", "approve"),
    ("read", "GET", "catalog/entities/", "feed"),
    ("read", "GET", "catalog/changes/?cursor=x", "feed"),
]


@pytest.mark.parametrize("scope, method, path, needed", SCOPED)
def test_a_token_without_the_scope(
    call_as: As, nothing_written: Unwritten, scope: str, method: str, path: str, needed: str
) -> None:
    waiting = submit("ada", model_body(environment="prod")).pk
    caller = call_as("frank" if needed == "approve" else "ada", [scope])
    path = path.format(id=waiting)
    body = model_body() if path in ("requests/", "requests/preview/") else {}
    with nothing_written():
        answer = caller.get(path) if method == "GET" else caller.post(path, body)
    assert (answer.status, answer.code) == (403, "missing-scope")
    assert f"'{needed}'" in answer.json["detail"]


def test_a_token_without_any_scope_may_nothing(call_as: As) -> None:
    assert call_as("ada", []).get("").status == 403


def test_the_root_says_who_is_asking(call_as: As) -> None:
    answer = call_as("erin", ["read"]).get("")
    assert answer.json["you"] == {"username": "erin", "groups": ["platform-approvers"], "scopes": ["read"]}
    assert all(call_as("erin").get(url).status != 404 for url in answer.json["links"].values())


def test_a_service_token_reads_the_feed_and_nothing_else(call_as: As) -> None:
    feed = call_as(FEED)
    assert feed.get("catalog/entities/").status == 200
    assert feed.get("requests/").status == 403


@pytest.fixture
def browser(world: World) -> Client:
    """Ada, signed in at the pages; CSRF is checked as it is for browsers."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(username="ada"))
    return client


def test_a_session_reads(browser: Client) -> None:
    answer = browser.get(BASE).json()
    assert (answer["you"]["username"], answer["you"]["scopes"]) == ("ada", None)


def test_a_session_does_not_write_without_the_csrf_token(browser: Client, nothing_written: Unwritten) -> None:
    with nothing_written():
        answer = browser.post(BASE + "requests/", model_body(), content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")
    assert "CSRF" in answer.json()["detail"]


def test_a_session_writes_with_it(browser: Client) -> None:
    secret = "a" * 32
    browser.cookies["csrftoken"] = secret
    answer = browser.post(
        BASE + "requests/", model_body(), content_type="application/json", headers={"X-CSRFToken": secret}
    )
    assert answer.status_code == 201
    assert Request.objects.get().requester.username == "ada"


def test_a_bad_token_beside_a_good_session_is_refused(browser: Client) -> None:
    assert browser.get(BASE, headers={"Authorization": "Bearer prt_x"}).status_code == 401


def test_a_token_that_does_not_read_is_told_no_more_than_what_became_of_it(call_as: As) -> None:
    asked = call_as("ada", ["request"]).post("requests/", model_body("one", environment="prod"))
    assert (asked.status, set(asked.json), asked.json["state"]) == (201, {"id", "state", "links"}, "Waiting")
    assert asked.headers["Location"] == asked.json["links"]["self"]
    path = f"requests/{asked.json['id']}"
    voted = call_as("frank", ["approve"]).post(f"{path}/approve/")
    assert (voted.status, set(voted.json)) == (200, {"id", "state", "links"})
    withdrawn = call_as("ada", ["request"]).post(f"{path}/withdraw/")
    assert (withdrawn.status, set(withdrawn.json)) == (200, {"id", "state", "links"})
    assert call_as("ada", ["request", "read"]).post("requests/", model_body("two")).json["spec"]
