"""SIGKILL of the whole worker at three bad moments (case 4): the same claim afterwards, each step once, and it goes on.

No part of the portal knows of these tests. They hold rows that the worker needs next, from a connection of their own,
and so stop it at a known place:

    leased, nothing applied        the control plane's sequence row is held: apply waits
    applied, nothing committed     then the team's row is held: the transaction of the result waits
    committed, not acknowledged    the worker's parent, which acknowledges, stands still; its child commits
"""

from __future__ import annotations

import base64
import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.e2e_embedded.house import House
from tests.e2e_embedded.parts import until
from tests.front import database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

CONTROL_PLANE = "SELECT value FROM embedded_sequence FOR UPDATE"
TEAM = "SELECT id FROM portal_team WHERE slug = 'search' FOR NO KEY UPDATE"
ONCE = ["request.allow", "request.deliver", "claim.apply", "request.finish"]


def delivery(house: House, request: dict[str, Any]) -> tuple[int, str | None]:
    """The outbox row of a request's delivery: its id and its outcome, None while it is open."""
    query = "SELECT id, NULLIF(outcome, '') FROM portal_outboxrow WHERE topic = 'apply' AND payload->>'request' = %s"
    [(row_id, outcome)] = house.rows(query, request["id"])
    return row_id, outcome


def waiting(house: House, request: dict[str, Any]) -> str:
    """The statement in which the worker that has this request's lane waits for a row; empty when it doesn't."""
    query = """
        SELECT working.query FROM pg_locks lane JOIN pg_stat_activity working USING (pid)
        WHERE lane.locktype = 'advisory' AND lane.objsubid = 1 AND lane.granted AND working.wait_event_type = 'Lock'
          AND (lane.classid::bigint << 32 | lane.objid::bigint) = hashtextextended('outbox:' || %s, 0)
    """
    found = house.rows(query, f"instance:{request['instance']}:control-plane")
    return found[0][0] if found else ""


def applying(house: House, request: dict[str, Any]) -> bool:
    """Whether the worker waits inside the control plane."""
    return "embedded_sequence" in waiting(house, request)


def finishing(house: House, request: dict[str, Any]) -> bool:
    """Whether the worker waits in the transaction of the result."""
    return "portal_team" in waiting(house, request)


def went_on_by_itself(house: House, request: dict[str, Any], uid: str | None = None) -> None:
    """One claim (with that uid), each step once, Done, Ready and in the catalog."""
    done = house.done(request)
    instance = house.instance(done["instance"])
    assert instance["phase"] == "Ready", instance["message"]
    claims = house.claims(request["name"])
    assert len(claims) == 1
    assert uid is None or claims == [uid], "the same claim, not another of that name"
    [(known,)] = house.rows("SELECT claim_uid FROM portal_instance WHERE id = %s", done["instance"])
    assert known == claims[0]
    assert house.steps(request["id"]) == ONCE
    assert delivery(house, request)[1] == "done"


@contextmanager
def stopped(house: House, name: str) -> Iterator[Callable[[], None]]:
    """A program of the portal that does not get on, until the end or until what this gives is called."""
    pid = house.portal.supervisor.pids()[name]
    os.kill(pid, signal.SIGSTOP)
    try:
        yield lambda: os.kill(pid, signal.SIGCONT)
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def without_function(house: House) -> Iterator[None]:
    house.function.kill()
    try:
        yield
    finally:
        house.function.start()


def test_killed_with_a_lease_and_nothing_applied(house: House) -> None:
    with house.holding(CONTROL_PLANE):
        request = house.submit("ada", database("kill-leased"))
        until(lambda: applying(house, request), "the worker waits to apply")
        killed = house.kill_worker()
        assert house.claims("kill-leased") == []
        assert delivery(house, request)[1] is None
    house.worker_is_back(killed)
    went_on_by_itself(house, request)


@pytest.mark.parametrize("healed_by", ["worker", "mirror"])
def test_killed_with_the_claim_applied_and_nothing_committed(house: House, healed_by: str) -> None:
    """The next worker finds the same claim by its name and label; the mirror, if it is first, by the label alone.

    The function is away meanwhile, so that the request is not finished before the next worker has applied it again.
    """
    name = f"kill-applied-{healed_by}"
    with ExitStack() as team, ExitStack() as others:
        others.enter_context(without_function(house))
        with house.holding(CONTROL_PLANE):
            request = house.submit("ada", database(name))
            until(lambda: applying(house, request), "the worker waits to apply")
            # Who is not to heal it stands still. Without beat nobody sweeps, so that nothing is leased again.
            still = others.enter_context(stopped(house, "mirror" if healed_by == "worker" else "beat"))
            team.enter_context(house.holding(TEAM))
        until(lambda: finishing(house, request), "the worker waits to say that it has applied")
        [uid] = house.claims(name)
        killed = house.kill_worker()
        assert house.steps(request["id"]) == ["request.allow", "request.deliver"]
        team.close()
        until(lambda: "claim.apply" in house.steps(request["id"]), f"the {healed_by} says that it was applied")
        assert delivery(house, request)[1] == ("done" if healed_by == "worker" else None)
        still()
        house.worker_is_back(killed)
        until(lambda: delivery(house, request)[1], "the delivery is acknowledged")
    went_on_by_itself(house, request, uid)


def test_killed_with_everything_committed_and_nothing_acknowledged(house: House) -> None:
    """And then the same message comes once more, as it does after a visibility timeout (case 14)."""
    with house.holding(CONTROL_PLANE):
        request = house.submit("ada", database("kill-committed"))
        until(lambda: applying(house, request), "the worker waits to apply")
        os.kill(house.portal.supervisor.pids()["worker"], signal.SIGSTOP)
    until(lambda: delivery(house, request)[1] == "done", "a child of the worker has committed")
    [uid] = house.claims("kill-committed")
    killed = house.kill_worker()
    row_id, _ = delivery(house, request)
    tag, message = unacknowledged(house, row_id)
    house.worker_is_back(killed)
    went_on_by_itself(house, request, uid)

    before = house.rows("SELECT outcome, attempts FROM portal_outboxrow WHERE id = %s", row_id)
    assert before == [("done", 1)]
    with house.broker.client() as client:
        client.lpush("celery", json.dumps(message))
        until(lambda: not client.hexists("unacked", tag), "the message came again and was acknowledged")
    assert house.rows("SELECT outcome, attempts FROM portal_outboxrow WHERE id = %s", row_id) == before
    went_on_by_itself(house, request, uid)
    assert house.rows("SELECT generation FROM embedded_object WHERE uid = %s", uid) == [(1,)]


def unacknowledged(house: House, row_id: int) -> tuple[str, dict[str, Any]]:
    """The message about an outbox row that the broker still waits for an answer to: its delivery tag and itself."""
    with house.broker.client() as client:
        for tag, kept in client.hgetall("unacked").items():
            message = json.loads(kept)[0]
            arguments = json.loads(base64.b64decode(message["body"]))[0]
            if message["headers"]["task"] == "portal.tasks.perform" and arguments[0] == row_id:
                return tag, message
    raise AssertionError("the message was acknowledged")
