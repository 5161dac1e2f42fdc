"""Every page for every kind of person: who sees it, that reading writes nothing, and that nothing inline is in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.sample import model_body, quota_body
from tests.web.conftest import SignIn
from tests.world import OUTSIDER, World, ready, submit

PAGES = [
    "/",
    "/offerings/",
    "/offerings/modeldeployments/",
    "/offerings/vectordatabases/request/",
    "/requests/",
    "/requests/?state=Waiting&kind=Create&team=search&requester=ada",
    "/instances/",
    "/instances/?phase=Ready&team=search&offering=modeldeployments",
    "/inbox/",
    "/teams/",
    "/quotas/raise/?team=search&dimension=gpu.l4",
    "/fleet/",
    "/fleet/?state=Ready",
    "/prices/",
    "/prices/?sku=gpu.&region=eu-west",
    "/audit/",
    "/audit/?verb=request.ask&team=search&actor=ada",
]


@pytest.fixture
def addresses(world: World) -> Callable[[], list[str]]:
    """All pages, those of one instance and of two requests among them."""

    def of_everything() -> list[str]:
        instance = ready("ada", model_body())
        waiting = submit("ada", model_body("prod-chat", environment="prod", reason="<script>1</script>"))
        quota = submit("ada", quota_body(6, team="search"))
        own = [*[f"/instances/{instance.pk}/{part}" for part in ("", "delete/", "drift/")], "/teams/search/"]
        return [*PAGES, *own, *[f"/requests/{each.pk}/" for each in (waiting, quota)]]

    return of_everything


def test_reading_writes_nothing_and_takes_few_queries(sign_in: SignIn, addresses: Callable[[], list[str]]) -> None:
    for address in addresses():
        client = sign_in("ada")
        with CaptureQueriesContext(connection) as queries:
            response = client.get(address)
        assert response.status_code == 200, address
        sent = [query["sql"] for query in queries.captured_queries]
        written = [sql for sql in sent if re.search(r"\b(INSERT INTO|UPDATE|DELETE FROM|TRUNCATE)\b", sql)]
        assert written == [], address
        assert len(queries) < 30, (address, len(queries))


def test_nothing_inline_and_every_input_labelled(sign_in: SignIn, addresses: Callable[[], list[str]]) -> None:
    for address in addresses():
        for person in ("ada", "frank"):
            response = sign_in(person).get(address)
            page = response.content.decode()
            assert not re.search(r"<script(?![^>]*\bsrc=)", page), address
            assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", page), address
            ids = re.findall(r'\sid="([^"]+)"', page)
            assert len(ids) == len(set(ids)), (address, sorted({i for i in ids if ids.count(i) > 1}))
            for pointed in re.findall(r'\s(?:for|aria-labelledby|list)="([^"]+)"', page):
                assert pointed in ids, (address, pointed)
            for described in re.findall(r'aria-describedby="([^"]+)"', page):
                assert set(described.split()) <= set(ids), (address, described)
            levels = [int(level) for level in re.findall(r"<h([1-6])", page)]
            assert levels.count(1) == 1, address
            assert all(after <= before + 1 for before, after in pairwise(levels)), (
                address,
                levels,
            )


def test_one_has_to_sign_in_first(addresses: Callable[[], list[str]]) -> None:
    for address in addresses():
        response = Client().get(address)
        assert response.status_code == 302, address
        assert response.headers["Location"].startswith("/login/?next=/"), address


def test_an_outsider_sees_what_is_public_and_nothing_of_others(
    sign_in: SignIn, addresses: Callable[[], list[str]]
) -> None:
    for address in addresses():
        response = sign_in(OUTSIDER).get(address)
        private = re.match(r"/(requests|instances)/[0-9a-f]|/teams/search/", address)
        assert response.status_code == (404 if private else 200), address
        assert b"prod-chat" not in response.content, address


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/requests/?page=0", "no such page"),
        ("/requests/?page=abc", "no number"),
        ("/requests/?page=99999999", "past all pages"),
        ("/requests/?state=Bogus", "no such state"),
        ("/instances/?phase=Bogus", "no such phase"),
        ("/audit/?request=x", "no id"),
        ("/inbox/?page=-1", "negative"),
        ("/offerings/modeldeployments/request/?from=x", "no id"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(sign_in: SignIn, address: str, reason: str) -> None:
    response = sign_in("ada").get(address)
    assert response.status_code == 400, reason
    assert "invalid-input" in response.content.decode(), reason


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/offerings/nothing/", "no such offering"),
        ("/offerings/nothing/request/", "no such offering"),
        ("/teams/nothing/", "no such team"),
        ("/teams/ads/", "another team"),
        ("/nowhere/", "no such page"),
        ("/teams/%00/", "text that no database holds"),
        ("/offerings/%00/request/", "text that no database holds"),
        ("/requests/not-an-id/", "no such page"),
    ],
)
def test_what_is_not_there_is_a_plain_page(sign_in: SignIn, address: str, reason: str) -> None:
    response = sign_in("ada").get(address)
    assert response.status_code == 404, reason
    assert "Traceback" not in response.content.decode()


@pytest.mark.parametrize(
    ("method", "address"),
    [("get", "/logout/"), ("post", "/requests/"), ("get", "/offerings/modeldeployments/preview/"), ("put", "/")],
)
def test_a_wrong_method_is_refused(sign_in: SignIn, method: str, address: str) -> None:
    response = getattr(sign_in("ada"), method)(address)
    assert response.status_code == 405
    assert response.headers["Allow"]


def test_lists_are_paged(sign_in: SignIn) -> None:
    for number in range(27):
        submit("ada", model_body(f"chat-{number}", gpus=9))
    client = sign_in("ada")
    first, second = client.get("/requests/?state=Denied"), client.get("/requests/?state=Denied&page=2")
    assert first.content.decode().count('data-label="Request"') == 25
    assert second.content.decode().count('data-label="Request"') == 2
    assert 'href="?state=Denied&amp;page=2"' in first.content.decode()


def test_auditors_see_all_steps_and_others_their_own(sign_in: SignIn) -> None:
    submit("ada", model_body("prod-chat", environment="prod"))
    assert "Create prod-chat" in sign_in("olivia").get("/audit/").content.decode()
    assert "Create prod-chat" in sign_in("ada").get("/audit/").content.decode()
    assert "prod-chat" not in sign_in("carol").get("/audit/").content.decode()
