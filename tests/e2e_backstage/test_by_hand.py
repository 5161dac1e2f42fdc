"""Templates that somebody writes by hand, with the plain action and the portal's API: nothing of this project."""

from __future__ import annotations

from typing import Any

import pytest

from tests.backstage import Task, Town

CREATE, APPROVE = "portal-create-by-hand", "portal-approve-by-hand"
SMALL, LARGE = 100_000, 20_000_000  # vectors: approved at once, and asked about


def said(task: Task) -> dict[str, str]:
    """What the task's output says, by title."""
    assert task.status == "completed", task.log
    return {text["title"]: str(text.get("content")) for text in task.output["text"]}


def count(town: Town) -> int:
    return int(town.rows("SELECT count(*) FROM portal_request")[0][0])


def values(name: str, vectors: int = SMALL, team: str = "search") -> dict[str, Any]:
    return {"name": name, "team": team, "vectors": vectors}


@pytest.mark.parametrize("who", ["ada", "ben"])
def test_a_request_is_that_persons_and_becomes_ready(town: Town, who: str) -> None:
    found = said(town.backend.run(who, CREATE, values(f"by-hand-{who}")))
    assert found["Code"] == "201", found["Why"]
    request = town.done(town.request(found["Request"]))
    assert request["requester"] == who
    assert town.instance(request["instance"])["phase"] == "Ready"


def test_a_dry_run_writes_nothing(town: Town) -> None:
    before = count(town)
    answer = town.backend.dry_run("ada", CREATE, values("never"))
    assert answer.status_code == 200, answer.text
    assert count(town) == before


def test_a_refusal_says_why(town: Town) -> None:
    before = count(town)
    found = said(town.backend.run("ada", CREATE, values("Not A Name")))
    assert found["Code"] == "400"
    assert "/name" in found["Why"]
    assert count(town) == before


def test_nobody_asks_for_a_team_that_is_not_theirs(town: Town) -> None:
    before = count(town)
    found = said(town.backend.run("ben", CREATE, values("theirs", team="ads")))
    assert found["Code"] in ("403", "404"), found["Why"]
    assert count(town) == before


def test_the_requester_has_no_vote_and_an_approver_has(town: Town) -> None:
    # Erin approves for the platform, and works in the team that asks.
    found = said(town.backend.run("erin", CREATE, values("by-hand-large", LARGE)))
    assert (found["Code"], found["State"]) == ("201", "Waiting"), found["Why"]
    own = said(town.backend.run("erin", APPROVE, {"request": found["Request"]}))
    assert own["Code"] in ("403", "409"), own["Why"]
    member = said(town.backend.run("ben", APPROVE, {"request": found["Request"]}))
    assert member["Code"] in ("403", "404", "409"), member["Why"]
    assert town.request(found["Request"])["state"] == "Waiting"
    assert said(town.backend.run("frank", APPROVE, {"request": found["Request"]}))["Code"] == "200"
    town.done(town.request(found["Request"]))
