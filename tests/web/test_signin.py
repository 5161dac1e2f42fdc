"""Signing in and out; the demo's accounts are shown in the demo alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from portal.web import signin

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
