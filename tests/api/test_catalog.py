"""The catalog feed over the API: complete or an error; then every change once, in order."""

from __future__ import annotations

import time
from typing import Any

import pytest
from django.utils import timezone

from portal.models import FeedEntity, FeedHead, OutboxRow, Quota
from portal.rendering.entity import entity_ref
from portal.services import feed as feed_service
from portal.services import observing
from tests.api.calls import Caller
from tests.api.conftest import As
from tests.api.test_lists import encoded
from tests.sample import model_body
from tests.world import FEED, ready, submit, work


@pytest.fixture
def feed(call_as: As) -> Caller:
    return call_as(FEED)


def all_entities(feed: Caller, limit: int = 200) -> tuple[list[dict[str, Any]], str]:
    """Every entity by following `next`, and the cursor to go on from."""
    answer = feed.get("catalog/entities/", limit=limit)
    cursor, found = answer.json["cursor"], list(answer.json["entities"])
    while answer.json["next"]:
        assert answer.json["complete"] is False
        answer = feed.get(answer.json["next"])
        found += answer.json["entities"]
    assert answer.json["complete"] is True
    return found, cursor


def names(entities: list[dict[str, Any]], kind: str = "Component") -> list[str]:
    return [entity["metadata"]["name"] for entity in entities if entity["kind"] == kind]


def test_an_empty_feed_is_complete(feed: Caller) -> None:
    answer = feed.get("catalog/entities/").json
    assert (answer["entities"], answer["next"], answer["complete"]) == ([], None, True)
    changes = feed.get("catalog/changes/", cursor=answer["cursor"]).json
    assert (changes["upserted"], changes["removed"], changes["more"]) == ([], [], False)


@pytest.mark.parametrize("limit", [1, 2, 200])
def test_pages_hold_everything_once(feed: Caller, limit: int) -> None:
    Quota.objects.filter(dimension="gpu.l4").update(limit=100)
    for number in range(5):
        submit("ada", model_body(f"model-{number}"))
    work()
    found, _ = all_entities(feed, limit)
    refs = [entity_ref(entity) for entity in found]
    assert len(refs) == len(set(refs)) == 11, "five models with their APIs in one System"


def test_changes_follow_a_snapshot(feed: Caller) -> None:
    first = ready("ada", model_body("one"))
    _, cursor = all_entities(feed)
    ready("ada", model_body("two"))
    changes = feed.get("catalog/changes/", cursor=cursor).json
    new = [(entity["kind"], entity["metadata"]["name"]) for entity in changes["upserted"]]
    assert new == [("API", "two.search.dev.modeldeployments"), ("Component", "two.search.dev.modeldeployments")]
    observing.observe_gone(first.pk)
    work()
    later = feed.get("catalog/changes/", cursor=changes["cursor"]).json
    assert later["upserted"] == []
    name = "default/one.search.dev.modeldeployments"
    assert later["removed"] == [f"component:{name}", f"api:{name}"], "what is in the System is still shown"
    assert feed.get("catalog/changes/", cursor=later["cursor"]).json["removed"] == []


def test_a_change_between_two_pages_is_not_missed(feed: Caller) -> None:
    one = ready("ada", model_body("one"))
    ready("ada", model_body("two"))
    first = feed.get("catalog/entities/", limit=1).json
    observing.observe_gone(one.pk)
    work()
    ready("ben", model_body("three"))
    rest, answer = [], first
    while answer["next"]:
        answer = feed.get(answer["next"]).json
        rest += answer["entities"]
    changes = feed.get("catalog/changes/", cursor=first["cursor"]).json
    known = {entity_ref(entity) for entity in [*first["entities"], *rest, *changes["upserted"]]}
    living = FeedEntity.objects.exclude(entity=None).values_list("ref", flat=True)
    assert known - set(changes["removed"]) == set(living)


def test_many_changes_come_in_pages(feed: Caller) -> None:
    _, cursor = all_entities(feed)
    for name in ("one", "two", "three"):
        ready("ada", model_body(name))
    seen: list[str] = []
    more = True
    while more:
        answer = feed.get("catalog/changes/", cursor=cursor, limit=1).json
        seen += names(answer["upserted"])
        cursor, more = answer["cursor"], answer["more"]
    assert sorted(seen) == [f"{name}.search.dev.modeldeployments" for name in ("one", "three", "two")]


HERE = "HERE"
ANOTHER = "3f0e5c1a-5d53-4c54-8a55-0a1c6b7f6f10"
UNKNOWN: list[tuple[Any, str]] = [
    ("x", "no cursor at all"),
    ("a" * 5000, "far too long"),
    (["changes", HERE, 10**6], "of the future: the database was restored"),
    (["changes", ANOTHER, 0], "of another database, although it has as many changes"),
    (["changes", HERE, -1], "before everything"),
    (["changes", HERE, 2**70], "past every number"),
    (["changes", HERE, "1"], "a string"),
    (["changes", 0], "as it was before feeds had names"),
    (["changes", "x", 0], "no feed's name"),
    (["changes", [], 0], "nor this"),
    (["snapshot", HERE, 0, 0], "of the other list"),
    ([], "nothing"),
]


def cursor_of(given: Any) -> str:
    """The cursor as it is on the wire; HERE is this database's feed."""
    if isinstance(given, str):
        return given
    here = str(FeedHead.objects.get().feed)
    return encoded([here if part == HERE else part for part in given])


@pytest.mark.parametrize("given, reason", UNKNOWN)
@pytest.mark.parametrize("path", ["catalog/changes/", "catalog/changes/?wait=20"])
def test_a_cursor_that_can_t_be_gone_on_from(feed: Caller, given: Any, reason: str, path: str) -> None:
    answer = feed.get(path + ("&" if "?" in path else "?") + f"cursor={cursor_of(given)}")
    assert (answer.status, answer.code) == (410, "cursor-expired"), reason


@pytest.mark.parametrize("given", [["snapshot", ANOTHER, 0, 0], ["changes", HERE, 0], ["snapshot", HERE, 0, 10**6]])
def test_a_page_that_is_not_of_this_feed(feed: Caller, given: list[Any]) -> None:
    assert feed.get("catalog/entities/", cursor=cursor_of(given)).status == 410


WAITS = [
    ("26", "longer than a proxy waits"),
    ("-1", "negative"),
    ("1.5", "not whole"),
    ("x", "no number"),
    ("", "nothing"),
    ("٣", "a digit of another script"),
]


@pytest.mark.parametrize("wait, reason", WAITS)
def test_a_wait_that_is_refused(feed: Caller, wait: str, reason: str) -> None:
    answer = feed.get("catalog/changes/", cursor=cursor_of(["changes", HERE, 0]), wait=wait)
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (400, "/query/wait"), reason
    assert "0 to 25" in answer.json["errors"][0]["message"]


def test_nobody_waits_for_what_is_there(feed: Caller) -> None:
    _, cursor = all_entities(feed)
    ready("ada", model_body("one"))
    began = time.monotonic()
    changes = feed.get("catalog/changes/", cursor=cursor, wait=25).json
    assert len(changes["upserted"]) == 3
    assert time.monotonic() - began < 5


def test_a_wait_without_changes_ends_empty(feed: Caller) -> None:
    _, cursor = all_entities(feed)
    began = time.monotonic()
    changes = feed.get("catalog/changes/", cursor=cursor, wait=1).json
    assert (changes["upserted"], changes["removed"], changes["cursor"]) == ([], [], cursor)
    assert 0.9 < time.monotonic() - began < 5


def test_answers_name_the_feed(feed: Caller) -> None:
    here = str(FeedHead.objects.get().feed)
    answer = feed.get("catalog/entities/").json
    assert answer["feed"] == feed.get("catalog/changes/", cursor=answer["cursor"]).json["feed"] == here


def test_a_cursor_that_is_too_old(feed: Caller) -> None:
    _, cursor = all_entities(feed)
    made = ready("ada", model_body())
    observing.observe_gone(made.pk)
    work()
    feed_service.forget_removed(timezone.now())
    assert FeedHead.objects.get().oldest > 0
    answer = feed.get("catalog/changes/", cursor=cursor)
    assert (answer.status, answer.code) == (410, "cursor-expired")


def test_changes_need_a_cursor(feed: Caller) -> None:
    answer = feed.get("catalog/changes/")
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (400, "/query/cursor")


@pytest.mark.parametrize("path", ["catalog/entities/", "catalog/changes/?wait=20&cursor="])
def test_a_feed_that_can_t_be_complete_is_an_error(feed: Caller, path: str) -> None:
    path += cursor_of(["changes", HERE, 0]) if path.endswith("=") else ""
    submit("ada", model_body())
    work()
    assert feed.get(path).status == 200
    OutboxRow.objects.filter(topic="publish").update(outcome="failed", done_at=timezone.now())
    answer = feed.get(path)
    assert (answer.status, answer.code) == (503, "feed-incomplete")
    assert answer.headers["Retry-After"]
    assert "entities" not in answer.json


def test_who_may_read_it(call_as: As) -> None:
    assert call_as("ada").get("catalog/entities/").status == 403
    assert call_as("ada", ["read"]).get("catalog/entities/").code == "missing-scope"


def test_an_entity_holds_texts_literally(feed: Caller) -> None:
    """Case 18."""
    ready("ada", model_body(), {"endpoint": {"url": "https://x.example.org/{{7*7}}"}})
    found, _ = all_entities(feed)
    assert "{{7*7}}" in str(found)
