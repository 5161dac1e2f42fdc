"""One of the two is away, or half of an answer is: nothing is deleted from the catalog, and it is made up for later."""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.backstage import SAMPLE, SERVICE, Town, until
from tests.front import database, database_for

CATCHES_UP = 90.0  # seconds: whoever backs off looks again within a minute
pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def wired(town: Town) -> Iterator[Town]:
    """Whatever a test cuts is whole again after it."""
    yield town
    town.wire.switch("open")


def test_the_portal_is_away(wired: Town) -> None:
    before = wired.made("before-the-cut")
    wired.in_catalog(before)
    known = wired.backend.refs()
    wired.wire.switch("cut")
    refused = wired.wire.refused
    meanwhile = wired.made("during-the-cut")
    until(lambda: wired.wire.refused > refused + 1, "Backstage has asked again in vain", CATCHES_UP)
    assert wired.backend.refs() == known
    wired.wire.switch("open")
    wired.in_catalog(meanwhile, seconds=CATCHES_UP)
    assert wired.backend.refs() >= known


def test_answers_of_the_feed_are_cut_in_half(wired: Town) -> None:
    wired.in_catalog(wired.made("before-the-half"))
    known = wired.backend.refs()
    wired.backend.stop()
    wired.wire.switch("half")
    halved = wired.wire.halved
    meanwhile = wired.made("during-the-half")
    wired.backend.start()  # begins with reading everything
    until(lambda: wired.wire.halved > halved + 1, "two answers ended halfway", CATCHES_UP)
    time.sleep(2)  # whatever it makes of them
    assert wired.backend.refs() == known
    wired.wire.switch("open")
    wired.in_catalog(meanwhile, seconds=CATCHES_UP)
    assert wired.backend.refs() >= known


def test_the_portal_comes_back_empty(town: Town, _database_server: str | None) -> None:
    """Restored from nothing, or given the wrong database: it knows no instance, and says so."""
    town.in_catalog(town.made("before-the-loss"))
    known = town.backend.refs()
    [token] = town.rows(
        "SELECT prefix, secret_hash, name, scopes, created_at, expires_at FROM portal_apitoken "
        "JOIN auth_user u ON u.id = user_id WHERE u.username = %s",
        SERVICE,
    )
    old = town.portal.database_url
    town.stop_portal()
    with database_for(_database_server, "portal_empty") as empty:
        try:
            town.start_portal(empty)
            town.manage("bootstrap", str(SAMPLE))
            _give_token(empty, token)
            asked = len(town.wire.tokens)
            until(lambda: len(town.wire.tokens) > asked + 2, "Backstage has read the feed of the empty one", CATCHES_UP)
            time.sleep(2)  # whatever it makes of it
            assert town.backend.refs() == known
        finally:
            town.stop_portal()
    town.start_portal(old)
    town.in_catalog(town.made("after-the-loss"), seconds=CATCHES_UP)
    assert town.backend.refs() >= known


def _give_token(database_url: str, token: tuple[object, ...]) -> None:
    """The feed's token is known there too: else the feed would only be refused, which proves less."""
    prefix, secret_hash, name, scopes, created, expires = token
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO portal_apitoken (prefix, secret_hash, name, scopes, created_at, expires_at, user_id) "
            "SELECT %s, %s, %s, %s, %s, %s, id FROM auth_user WHERE username = %s",
            [prefix, secret_hash, name, Jsonb(scopes), created, expires, SERVICE],
        )


def test_backstage_is_away(town: Town) -> None:
    known = town.backend.refs()
    town.backend.stop()
    try:
        request = town.submit("ben", database("without-backstage"))
        instance = town.done(request)["instance"]
        assert town.instance(instance)["phase"] == "Ready", "nobody waits for Backstage"
    finally:
        town.backend.start()
    town.in_catalog(instance, seconds=CATCHES_UP)
    assert town.backend.refs() >= known
    until(
        lambda: any("without-backstage" in str(it) for it in town.backend.notifications("ben")),
        "told later",
        CATCHES_UP,
    )


def test_both_are_started_again(town: Town) -> None:
    town.in_catalog(town.made("before-the-night"))
    known = town.backend.refs()
    old = town.portal.database_url
    town.backend.stop()
    town.stop_portal()
    town.start_portal(old)
    town.backend.start()
    assert town.backend.refs() >= known
    town.in_catalog(town.made("after-the-night"), seconds=CATCHES_UP)
    assert town.backend.refs() >= known
