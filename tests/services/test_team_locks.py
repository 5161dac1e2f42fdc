"""The team chain is locked from the root down, whatever order the database would find its rows in."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import DatabaseError, connection, connections, transaction

from portal.models import Team
from portal.services.locks import MAX_DEPTH, lock_team_chain, team_chain


@pytest.fixture
def deep(transactional_db: None) -> list[Team]:
    """A root, a group and a team, of which the root is the youngest row and the group the oldest."""
    group = Team.objects.create(slug="group", title="Group")
    team = Team.objects.create(slug="team", title="Team", parent=group)
    root = Team.objects.create(slug="root", title="Root")
    Team.objects.filter(pk=group.pk).update(parent=root)
    return [root, group, team]


@pytest.mark.slow
def test_who_waits_for_a_group_holds_what_is_above_it_and_nothing_below(deep: list[Team]) -> None:
    waiting = threading.Event()

    def lock() -> None:
        try:
            with transaction.atomic():
                waiting.set()
                lock_team_chain(Team.objects.get(slug="team"))
        finally:
            connections.close_all()

    other = threading.Thread(target=lock)
    with transaction.atomic():
        Team.objects.select_for_update(no_key=True).get(slug="group")
        other.start()
        waiting.wait(10)
        _until_somebody_waits()
        assert _locked("root")
        assert not _locked("team")
    other.join(10)
    assert not other.is_alive()


@pytest.mark.django_db
def test_the_chain_is_root_first_and_has_an_end() -> None:
    above = None
    for depth in range(MAX_DEPTH):
        above = Team.objects.create(slug=f"team-{depth}", title="Team", parent=above)
    assert [team.slug for team in team_chain(above)] == [f"team-{depth}" for depth in range(MAX_DEPTH)]
    with transaction.atomic():
        assert lock_team_chain(above) == team_chain(above)
    too_deep = Team.objects.create(slug="too-deep", title="Team", parent=above)
    with pytest.raises(ValueError, match="too-deep"):
        team_chain(too_deep)


def _until_somebody_waits() -> None:
    for _ in range(500):
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            if cursor.fetchone()[0]:
                return
        time.sleep(0.02)
    pytest.fail("nobody waits for the lock")


def _locked(slug: str) -> bool:
    """Whether somebody else holds the row."""
    try:
        with transaction.atomic():
            Team.objects.select_for_update(no_key=True, nowait=True).get(slug=slug)
    except DatabaseError:
        return True
    return False
