"""The page Fleet: what there is of each class and in each cluster, and what is said when nobody answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from portal.services import fleet
from tests.clusters import add_cluster
from tests.web.conftest import SignIn
from tests.world import World


@pytest.fixture(autouse=True)
def nothing_kept() -> None:
    """What another test was told."""
    fleet.forget()


def told(page: str) -> str:
    """The text of a page."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_each_state_says_since_when_and_why(sign_in: SignIn, world: World) -> None:
    add_cluster("a-fine")
    add_cluster("b-kept", "Cordoned")
    add_cluster("c-away", "Unreachable")
    add_cluster("d-new", "Unknown")
    text = told(sign_in("ada").get("/fleet/").content.decode())
    for shown in (
        "a-fine Ready",
        "b-kept Cordoned",
        "c-away Unreachable",
        "unreachable since 2026-12-01 12:00",
        "connection refused",
        "takes nothing new",
        "d-new Unknown",
        "have not been counted yet",
        "small (l4) 3 free 1 of 4",
        "l4 12 3 3",  # all of it, and free only where something new may go
    ):
        assert shown in text, (shown, text)


def test_more_than_there_is_does_not_count_as_free(sign_in: SignIn, world: World) -> None:
    add_cluster("shrunk", used=6, capacity=4)
    add_cluster("other", used=0, capacity=2)
    text = told(sign_in("ada").get("/fleet/").content.decode())
    assert "2 more than it has 6 of 4" in text
    assert "l4 6 6 2" in text


def test_a_control_plane_that_does_not_answer_is_named(
    sign_in: SignIn, world: World, settings: object, tmp_path: Path
) -> None:
    settings.CONTROL_PLANES = {"far": str(tmp_path / "missing.yaml")}  # type: ignore[attr-defined]  # pytest-django's
    add_cluster("near")
    response = sign_in("ada").get("/fleet/")
    text = told(response.content.decode())
    assert response.status_code == 200
    assert "Control plane far can't be asked for its fleet:" in text
    assert str(tmp_path) in text, "what is missing"


def test_pages_and_filters(sign_in: SignIn, world: World) -> None:
    for number in range(25):
        add_cluster(f"c-{number:02}", "Cordoned" if number == 7 else "Ready")
    client = sign_in("ada")
    first, second = (client.get(f"/fleet/?page={page}").content.decode() for page in (1, 2))
    assert (first.count("<article"), second.count("<article")) == (20, 5)
    assert "c-19" in first and "c-20" in second
    assert told(client.get("/fleet/?state=Cordoned").content.decode()).count("small (l4)") == 1
    assert client.get("/fleet/?resource=tpu").status_code == 400
    assert client.get("/fleet/?state=ready").status_code == 400


def test_without_a_fleet_it_says_so(sign_in: SignIn, world: World) -> None:
    assert "No control plane has a workload cluster" in sign_in("ada").get("/fleet/").content.decode()
