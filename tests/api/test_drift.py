"""Status, drift and Events over the API; taking back and asking for what others set."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest

from portal.models import Instance, OutboxRow, Request
from portal.ports import Explanation, FieldManager
from portal.services import observing
from tests.api.conftest import As, Unwritten
from tests.sample import model_body
from tests.world import observed, ready

AT = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
DRIFTED = {
    "field": "/spec/contextLength",
    "approved": 4096,
    "live": 8192,
    "manager": "kubectl-edit",
    "at": "2026-12-01T12:00:00Z",
    "metered": False,
}


@pytest.fixture
def drifted(world: Any) -> Instance:
    made = ready("ada", model_body())
    spec = {**made.claim["spec"], "contextLength": 8192}
    managers = (FieldManager("kubectl-edit", "Update", "", AT, ("/spec/contextLength",)),)
    observing.observe(dataclasses.replace(observed(made, {}), spec=spec, managers=managers))
    return made


def test_what_others_set_is_shown_with_approved_and_live(call_as: As, drifted: Instance) -> None:
    assert call_as("ada").get(f"instances/{drifted.pk}/").json["drift"] == [DRIFTED]


def test_status_names_the_condition_and_what_to_do(call_as: As) -> None:
    made = ready("ada", model_body())
    shown = call_as("ada").get(f"instances/{made.pk}/").json
    assert (shown["condition"], shown["advice"], shown["typicalSeconds"], shown["events"]) == ("Ready", "", None, [])
    failing = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "DeadlineExceeded"}
    sick = observed(made, {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}, failing]})
    why = Explanation("Warning", "ComposeResources", "context deadline exceeded", "ModelDeployment chat", 3, AT)
    observing.observe(sick, ask=lambda claim: (why,))
    shown = call_as("ada").get(f"instances/{made.pk}/").json
    assert (shown["phase"], shown["condition"]) == ("Degraded", "Synced")
    assert "starts the composition function again" in shown["advice"]
    assert shown["events"] == [
        {
            "type": "Warning",
            "reason": "ComposeResources",
            "message": "context deadline exceeded",
            "about": "ModelDeployment chat",
            "count": 3,
            "lastSeen": "2026-12-01T12:00:00Z",
        }
    ]
    listed = call_as("ada").get("instances/").json["items"][0]
    assert listed["advice"] == shown["advice"]
    assert not {"events", "drift"} & set(listed)


def test_taking_back_queues_the_approved_claim_by_force(call_as: As, drifted: Instance) -> None:
    answer = call_as("ben", ["request"]).post(f"instances/{drifted.pk}/take-back/", {})
    assert (answer.status, answer.json["instance"], answer.json["fields"]) == (200, str(drifted.pk), [DRIFTED])
    assert OutboxRow.objects.get(topic="reapply").payload["force"] is True
    again = call_as("ben").post(f"instances/{drifted.pk}/take-back/", {})
    assert (again.status, again.code) == (409, "already-asked")


def test_asking_makes_a_change_request_in_ones_own_name(call_as: As, drifted: Instance) -> None:
    answer = call_as("ben").post(f"instances/{drifted.pk}/ask-for-drift/", {"reason": "longer answers"})
    assert answer.status == 200
    request = Request.objects.get(pk=answer.json["request"])
    assert (request.kind, request.requester.username, request.reason) == ("Change", "ben", "longer answers")
    assert request.spec["contextLength"] == 8192


@pytest.mark.parametrize("verb", ["take-back", "ask-for-drift"])
@pytest.mark.parametrize(
    ("username", "scopes", "body", "status", "code", "reason"),
    [
        ("carol", None, {}, 404, "not-found", "of another team"),
        ("olivia", None, {}, 403, "not-a-member", "an auditor sees it, and that is all"),
        ("ada", ["read"], {}, 403, "missing-scope", "a token that only reads"),
        ("ada", None, {"force": True}, 400, "invalid-input", "a member that nobody knows"),
        ("ada", None, [], 400, "invalid-input", "no object"),
    ],
)
def test_a_refusal_changes_nothing(
    call_as: As,
    drifted: Instance,
    nothing_written: Unwritten,
    verb: str,
    username: str,
    scopes: list[str] | None,
    body: Any,
    status: int,
    code: str,
    reason: str,
) -> None:
    caller = call_as(username, scopes)
    with nothing_written():
        answer = caller.post(f"instances/{drifted.pk}/{verb}/", body)
    assert (answer.status, answer.code) == (status, code), reason


@pytest.mark.parametrize("reason", [3, "x" * 10_001, None])
def test_a_reason_is_a_text_of_some_length(call_as: As, drifted: Instance, reason: Any) -> None:
    answer = call_as("ada").post(f"instances/{drifted.pk}/ask-for-drift/", {"reason": reason})
    assert (answer.status, answer.json["errors"][0]["pointer"]) == (400, "/reason")


def test_without_drift_there_is_nothing_to_do(call_as: As, nothing_written: Unwritten) -> None:
    made = ready("ada", model_body())
    caller = call_as("ada")
    with nothing_written():
        for verb in ("take-back", "ask-for-drift"):
            answer = caller.post(f"instances/{made.pk}/{verb}/", {})
            assert (answer.status, answer.code) == (409, "no-drift")
