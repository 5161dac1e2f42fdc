"""GET /api/v1/fleet/: the same as the page, for machines."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.services import fleet
from tests.api.conftest import As
from tests.clusters import SINCE, add_cluster


@pytest.fixture(autouse=True)
def nothing_kept(world: object) -> None:
    """What another test was told."""
    fleet.forget()


def test_a_cluster_and_the_totals(call_as: As) -> None:
    add_cluster("eu-west-1", "Unreachable", used=6, capacity=4)
    answer = call_as("ada").get("fleet/").json
    assert answer["items"] == [
        {
            "controlPlane": "embedded",
            "name": "eu-west-1",
            "region": "eu-west",
            "state": "Unreachable",
            "since": SINCE,
            "message": "connection refused",
            "pools": [{"name": "small", "resource": "l4", "capacity": 4, "used": 6, "free": -2}],
        }
    ]
    assert answer["totals"] == [{"resource": "l4", "capacity": 4, "used": 6, "free": 0}]
    assert answer["problems"] == []


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 200])
def test_pages_miss_and_repeat_nothing(call_as: As, limit: int) -> None:
    names = [f"c-{number}" for number in range(7)]
    for name in names:
        add_cluster(name)
    caller = call_as("ada")
    seen, answer = [], caller.get("fleet/", limit=limit).json
    while True:
        seen.append([item["name"] for item in answer["items"]])
        if answer["next"] is None:
            break
        answer = caller.get(answer["next"]).json
    assert [name for page in seen for name in page] == names
    back = list(reversed(seen))[1:]
    for page in back:
        answer = caller.get(answer["previous"]).json
        assert [item["name"] for item in answer["items"]] == page
    assert answer["previous"] is None


def test_filters(call_as: As) -> None:
    add_cluster("a", resource="l4")
    add_cluster("b", "Cordoned", resource="h100-80gb")
    caller = call_as("ada")
    assert [item["name"] for item in caller.get("fleet/", state="Cordoned").json["items"]] == ["b"]
    assert [item["name"] for item in caller.get("fleet/", resource="l4").json["items"]] == ["a"]
    assert caller.get("fleet/", state="gone").status == 400
    assert caller.get("fleet/", cursor="nonsense").status == 400


def test_a_control_plane_that_does_not_answer(call_as: As, settings: object, tmp_path: Path) -> None:
    settings.CONTROL_PLANES = {"far": str(tmp_path / "missing.yaml")}  # type: ignore[attr-defined]  # pytest-django's
    add_cluster("near")
    answer = call_as("ada").get("fleet/")
    assert answer.status == 200
    assert [item["name"] for item in answer.json["items"]] == ["near"]
    assert [problem["controlPlane"] for problem in answer.json["problems"]] == ["far"]
