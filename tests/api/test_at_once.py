"""The same submission many times at once, on connections of their own: one request, the same answer for all."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest
from django.db import connection

from portal.models import Quota, Request, Vote
from tests.api.calls import Answer, Caller
from tests.sample import model_body
from tests.world import World, build_world, submit

T = TypeVar("T")
MANY = 8


@pytest.fixture
def committed(transactional_db: None) -> World:
    """The world as other connections see it."""
    return build_world()


def at_once(calls: list[Callable[[], T]]) -> list[T]:
    def run(call: Callable[[], T]) -> T:
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_one_key(committed: World) -> None:
    ada = Caller(committed.tokens["ada"])

    def call() -> Answer:
        return ada.post("requests/", model_body(), headers={"Idempotency-Key": "k-1"})

    answers = at_once([call] * MANY)
    assert sorted(answer.status for answer in answers) == [200] * (MANY - 1) + [201], [a.text for a in answers]
    assert len({answer.json["id"] for answer in answers}) == 1
    assert Request.objects.count() == 1
    assert Quota.objects.get(team__slug="search", dimension="gpu.l4").reserved == 1


def test_one_name_without_a_key(committed: World) -> None:
    ada = Caller(committed.tokens["ada"])
    answers = at_once([lambda: ada.post("requests/", model_body())] * MANY)
    assert sorted(answer.status for answer in answers) == [201] + [409] * (MANY - 1)
    assert {answer.code for answer in answers if answer.status == 409} == {"name-taken"}


def test_one_person_votes_once(committed: World) -> None:
    request = submit("ada", model_body(environment="prod")).pk
    frank = Caller(committed.tokens["frank"])
    answers = at_once([lambda: frank.post(f"requests/{request}/approve/")] * MANY)
    assert sorted(answer.status for answer in answers) == [200] + [409] * (MANY - 1)
    assert Vote.objects.count() == 1
    assert Request.objects.get().state == "Waiting"
