"""What exists, and how it is, in Backstage's catalog: an entity comes, follows its instance's state, and goes."""

from __future__ import annotations

import time

from tests.backstage import Object, Town, until
from tests.front import database


def targets(entity: Object, kind: str) -> set[str]:
    """The entities that it has this relation with."""
    return {relation["targetRef"] for relation in entity.get("relations", []) if relation["type"] == kind}


def items(entity: Object) -> list[Object]:
    """What its `status` says."""
    found: list[Object] = entity.get("status", {}).get("items", [])
    return found


def test_an_entity_follows_its_instance(town: Town) -> None:
    instance = town.made("followed")
    entity = town.in_catalog(instance)
    assert entity["kind"] == "Resource"
    until(lambda: "group:default/search" in targets(town.in_catalog(instance), "ownedBy"), "it is the team's")
    assert [item["level"] for item in items(entity)] == ["info"], entity.get("status")

    with town.standing_still("composition-function"):
        change = {"kind": "Change", "instance": instance, "spec": {**database("followed")["spec"], "vectors": 200_000}}
        request = town.submit("ada", change)
        entity = town.in_catalog(instance, "Degraded", 60)
        [item] = items(entity)
        assert item["level"] in ("warning", "error"), item
        assert "composition-function" in item["message"], "it says why"
    town.done(request)
    assert [item["level"] for item in items(town.in_catalog(instance))] == ["info"]

    town.delete("ada", instance)
    until(lambda: town.backend.of_instance(instance) == [], "it is gone, with all that belonged to it")


def test_what_is_on_its_way_out_says_so_until_it_is_gone(town: Town) -> None:
    instance = town.made("sticky")  # its objects are never let go, see EMBEDDED_FAULTS
    town.in_catalog(instance)
    town.submit("ada", {"kind": "Delete", "instance": instance})
    [item] = items(town.in_catalog(instance, "Deleting"))
    assert item["level"] == "warning", item


def test_what_does_not_come_up_is_there_and_says_why(town: Town) -> None:
    request = town.submit("ben", database("unlucky"))
    entity = town.in_catalog(request["instance"], "Provisioning")
    until(lambda: "ImagePullBackOff" in str(items(town.in_catalog(request["instance"], "Provisioning"))), "the reason")
    assert entity["metadata"]["title"]


def test_a_change_is_seen_within_seconds(town: Town) -> None:
    instance = town.made("swift")
    began = time.monotonic()
    town.in_catalog(instance)
    assert time.monotonic() - began < 10
