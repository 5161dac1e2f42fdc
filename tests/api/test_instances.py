"""Instances over the API: what was asked for, and what was observed."""

from __future__ import annotations

from typing import Any

import yaml

from portal.models import Instance
from portal.services import observing
from tests.api.conftest import As
from tests.sample import model_body
from tests.world import ready, submit, work

URL = "https://chat.models.example.org/v1"


def test_a_ready_instance_shows_its_endpoint_and_price(call_as: As) -> None:
    made = ready("ada", model_body(), {"endpoint": {"url": URL, "model": "m", "api": "openai"}})
    shown = call_as("ben").get(f"instances/{made.pk}/").json
    assert (shown["phase"], shown["team"], shown["environment"]) == ("Ready", "search", "dev")
    assert shown["endpoint"] == {"url": URL}
    assert shown["monthly"] == {"amount": "584.00", "currency": "USD"}
    assert "simulated" in shown["controlPlane"]
    assert shown["status"]["endpoint"]["model"] == "m"
    assert shown["claim"]["kind"] == "ModelDeployment"
    assert yaml.safe_load(shown["claimYaml"]) == shown["claim"]
    assert shown["observedAt"]
    request = call_as("ben").get("requests/").json["items"][0]
    assert (request["state"], request["instance"]) == ("Done", shown["id"])


def test_before_delivery_there_is_no_claim(call_as: As) -> None:
    request = submit("ada", model_body(environment="prod"))
    shown = call_as("ada").get(f"instances/{request.instance_id}/").json
    assert (shown["phase"], shown["claim"], shown["claimYaml"], shown["composed"]) == ("Pending", None, None, [])
    assert (shown["status"], shown["endpoint"], shown["observedAt"]) == ({}, {}, None)


def test_composed_objects_are_shown_without_their_manifests(call_as: As) -> None:
    made = ready("ada", model_body())
    composed: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "namespace": "search-dev",
        "name": "chat",
        "ready": None,
        "message": "",
    }
    Instance.objects.filter(pk=made.pk).update(composed=[{**composed, "manifest": {"data": {"password": "x"}}}])
    assert call_as("ada").get(f"instances/{made.pk}/").json["composed"] == [composed]


def test_the_list_is_in_short(call_as: As) -> None:
    ready("ada", model_body())
    listed = call_as("ada").get("instances/").json["items"][0]
    assert not {"claim", "claimYaml", "status", "composed"} & set(listed)
    assert listed["phase"] == "Ready"


def test_one_that_is_gone_costs_nothing(call_as: As) -> None:
    made = ready("ada", model_body())
    call_as("ada").post("requests/", {"kind": "Delete", "instance": str(made.pk)})
    work()
    assert call_as("ada").get(f"instances/{made.pk}/").json["phase"] == "Deleting"
    observing.observe_gone(made.pk)
    shown = call_as("ada").get(f"instances/{made.pk}/").json
    assert (shown["phase"], shown["monthly"]) == ("Gone", None)
    again = call_as("ada").post("requests/", {"kind": "Delete", "instance": str(made.pk)})
    assert (again.status, again.code) == (409, "already-gone")


def test_an_endpoint_is_what_the_status_says_literally(call_as: As) -> None:
    """Case 18: a status is somebody else's text."""
    made = ready("ada", model_body(), {"endpoint": {"url": "javascript:alert('{{7*7}}')"}})
    assert call_as("ada").get(f"instances/{made.pk}/").json["endpoint"] == {"url": "javascript:alert('{{7*7}}')"}
