"""Signing in and out; the demo's accounts are shown in the demo alone."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from portal.models import AuditEvent
from portal.services import signing_in
from portal.web import signin

pytestmark = pytest.mark.slow

PASSWORD = "correct horse battery"


@pytest.fixture
def person(db: None) -> User:
    return User.objects.create_user("ada", password=PASSWORD)


@pytest.mark.parametrize(
    ("target", "lands", "reason"),
    [
        ("/requests/", "/requests/", "where one wanted to go"),
        ("", "/", "the first page"),
        ("https://evil.example/", "/", "never elsewhere"),
        ("//evil.example/", "/", "never elsewhere"),
    ],
)
def test_one_lands_where_one_wanted(person: User, target: str, lands: str, reason: str) -> None:
    response = Client().post("/login/", {"username": "ada", "password": PASSWORD, "next": target})
    assert response.headers["Location"] == lands, reason


def test_a_wrong_password_keeps_the_name_and_says_little(person: User) -> None:
    page = Client().post("/login/", {"username": "ada", "password": "wrong"}).content.decode()
    assert 'value="ada"' in page
    assert "don&#x27;t match" in page or "don't match" in page
    assert "wrong" not in page


def test_forms_need_their_token(person: User) -> None:
    client = Client(enforce_csrf_checks=True)
    response = client.post("/login/", {"username": "ada", "password": PASSWORD})
    assert response.status_code == 403
    assert "form is too old" in response.content.decode()


def test_signing_out_is_a_post(person: User) -> None:
    client = Client()
    client.force_login(person)
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/").headers["Location"] == "/login/"
    assert client.get("/").status_code == 302


@pytest.mark.parametrize(
    ("demo", "content", "expected", "reason"),
    [
        (True, '[{"username": "ada", "password": "pw", "role": "owner"}]', ["ada"], "the demo"),
        (True, '[{"username": "service", "password": "", "role": ""}]', [], "nobody signs in as a service"),
        (True, "{broken", [], "a file that is half written"),
        (True, None, [], "no file yet"),
        (False, '[{"username": "ada", "password": "pw", "role": "owner"}]', [], "not the demo"),
    ],
)
def test_the_demos_accounts(
    db: None, settings: Settings, tmp_path: Path, demo: bool, content: str | None, expected: list[str], reason: str
) -> None:
    settings.DEMO, settings.STATE_DIR = demo, tmp_path
    if content is not None:
        (tmp_path / signin.DEMO_ACCOUNTS).write_text(content, encoding="utf-8")
    assert [row["username"] for row in signin.demo_accounts()] == expected, reason
    page = Client().get("/login/").content.decode()
    assert ("demo&#x27;s accounts" in page or "demo's accounts" in page) == bool(expected), reason


def test_what_the_demo_writes_is_what_the_page_reads() -> None:
    from portal.demo.accounts import Account

    assert {"username", "password", "role"} <= set(Account.__annotations__), json.dumps(sorted(Account.__annotations__))


def attempt(username: str, password: str, address: str = "192.0.2.1") -> Any:
    return Client(REMOTE_ADDR=address).post("/login/", {"username": username, "password": password})


def test_who_signs_in_and_who_fails_is_recorded(person: User) -> None:
    attempt("ada", "wrong")
    attempt("hunter2", "wrong")
    attempt("ada", PASSWORD)
    failed = AuditEvent.objects.filter(verb="person.signin_failed").order_by("id")
    assert [(row.data["user"], row.data["address"]) for row in failed] == [("ada", "192.0.2.1"), (None, "192.0.2.1")]
    assert "hunter2" not in str([row.data for row in failed]), "it may have been a password"
    assert [row.actor for row in AuditEvent.objects.filter(verb="person.signin")] == [person]


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_guessing_at_one_account_is_braked_whoever_it_is(person: User, name: str) -> None:
    for number in range(signing_in.MOST_OF_ACCOUNT):
        assert attempt(name, "wrong", f"192.0.2.{number}").status_code == 200
    refused = attempt(name, PASSWORD, "192.0.2.99")
    assert refused.status_code == 429, "also with the right password"
    assert refused.headers["Retry-After"] == "600"
    assert "too many wrong passwords" in refused.content.decode()
    assert not AuditEvent.objects.filter(verb="person.signin").exists()
    others = "ben"
    User.objects.create_user(others, password=PASSWORD)
    assert attempt(others, PASSWORD).status_code == 302, "somebody else is not hindered"


def test_the_brake_is_let_go(person: User, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(signing_in.MOST_OF_ACCOUNT):
        attempt("ada", "wrong")
    monkeypatch.setattr(signing_in, "WINDOW", dt.timedelta(0))
    assert attempt("ada", PASSWORD).status_code == 302


def test_guessing_from_one_address_is_braked(person: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_in, "MOST_OF_ADDRESS", 3)
    for number in range(3):
        assert attempt(f"name-{number}", "wrong").status_code == 200
    assert attempt("ada", PASSWORD).status_code == 429
    assert attempt("ada", PASSWORD, "192.0.2.2").status_code == 302


def test_the_admin_has_the_same_door(person: User) -> None:
    assert Client().post("/admin/login/?next=/admin/auth/", {"username": "ada"}).headers["Location"] == (
        "/login/?next=/admin/auth/"
    )
    client = Client()
    client.force_login(person)
    assert client.get("/admin/", follow=True).status_code == 403, "and nobody is sent around in circles"
