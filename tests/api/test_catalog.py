"""The catalog feed over the API: complete or an error; then every change once, in order."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from portal.models import FeedEntity, FeedHead, OutboxRow, Quota
from portal.services import observing, publishing
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


def names(entities: list[dict[str, Any]]) -> list[str]:
    return [entity["metadata"]["name"] for entity in entities]


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
    assert len(found) == len(set(names(found))) == 5


def test_changes_follow_a_snapshot(feed: Caller) -> None:
    first = ready("ada", model_body("one"))
    _, cursor = all_entities(feed)
    ready("ada", model_body("two"))
    changes = feed.get("catalog/changes/", cursor=cursor).json
    assert [entity["metadata"]["name"] for entity in changes["upserted"]] == [
        name for name in names(changes["upserted"]) if "two" in name
    ]
    assert len(changes["upserted"]) == 1
    observing.observe_gone(first.pk)
    work()
    later = feed.get("catalog/changes/", cursor=changes["cursor"]).json
    assert later["upserted"] == []
    assert later["removed"] == [FeedEntity.objects.get(instance=first).ref]
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
    known = {name for name in names([*first["entities"], *rest, *changes["upserted"]])}
    gone = {ref.rsplit("/", 1)[1] for ref in changes["removed"]}
    living = FeedEntity.objects.exclude(entity=None).values_list("ref", flat=True)
    assert known - gone == {ref.rsplit("/", 1)[1] for ref in living}


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
    assert len(seen) == 3


UNKNOWN = [
    ("x", "no cursor at all"),
    ("a" * 5000, "far too long"),
    (encoded(["changes", 10**6]), "of the future: another database"),
    (encoded(["changes", -1]), "before everything"),
    (encoded(["changes", 2**70]), "past every number"),
    (encoded(["changes", "1"]), "a string"),
    (encoded(["snapshot", 1, 1]), "of the other list"),
]


@pytest.mark.parametrize("cursor, reason", UNKNOWN)
def test_a_cursor_that_can_t_be_gone_on_from(feed: Caller, cursor: str, reason: str) -> None:
    answer = feed.get("catalog/changes/", cursor=cursor)
    assert (answer.status, answer.code) == (410, "cursor-expired"), reason


def test_a_cursor_that_is_too_old(feed: Caller) -> None:
    _, cursor = all_entities(feed)
    made = ready("ada", model_body())
    observing.observe_gone(made.pk)
    work()
    publishing.forget_removed(timezone.now())
    assert FeedHead.objects.get().oldest > 0
    answer = feed.get("catalog/changes/", cursor=cursor)
    assert (answer.status, answer.code) == (410, "cursor-expired")


def test_changes_need_a_cursor(feed: Caller) -> None:
    answer = feed.get("catalog/changes/")
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (400, "/query/cursor")


@pytest.mark.parametrize("path", ["catalog/entities/", "catalog/changes/?cursor=" + encoded(["changes", 0])])
def test_a_feed_that_can_t_be_complete_is_an_error(feed: Caller, path: str) -> None:
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
