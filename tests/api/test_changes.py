"""Changes over the API: what they would bring, what they differ in, what the control plane says, and revisions."""

from __future__ import annotations

from typing import Any

import pytest

from portal.api import requests as door
from portal.models import Instance
from portal.ports import RetryableError
from portal.services import observing
from tests.api.conftest import As, Unwritten
from tests.sample import MODEL_SPEC, model_body
from tests.services.planes import embedded_plane
from tests.world import OUTSIDER, observed, ready, submit, work


def change_body(instance: Instance, gpus: int = 2, **spec: Any) -> dict[str, Any]:
    new = {**MODEL_SPEC, "replicas": {"min": 1, "max": gpus}, **spec}
    return {"kind": "Change", "instance": str(instance.pk), "spec": new}


def seen(instance: Instance) -> None:
    """Its claim is delivered and observed as asked."""
    work()
    observing.observe(observed(Instance.objects.get(pk=instance.pk), {}))


def test_a_change_tells_its_difference_and_what_it_costs_more(call_as: As) -> None:
    instance = ready("ada", model_body())
    answer = call_as("ada").post("requests/", change_body(instance))
    assert answer.status == 201, answer.text
    assert answer.json["difference"] == [{"pointer": "/spec/replicas/max", "old": 1, "new": 2}]
    assert answer.json["cost"] == {"currency": "USD", "before": "584.00", "after": "1168.00", "delta": "584.00"}
    assert answer.json["old"]["replicas"]["max"] == 1
    assert [(u["before"], u["after"]) for u in answer.json["decision"]["usage"] if u["team"] == "search"] == [(1, 2)]
    assert (answer.json["appliedAt"], answer.json["generation"]) == (None, None)
    seen(instance)
    done = call_as("ada").get(answer.json["links"]["self"]).json
    assert (done["state"], done["generation"], done["appliedAt"] is not None) == ("Done", 1, True)


@pytest.mark.parametrize(
    ("body", "pointer", "reason"),
    [
        ({"spec": {}}, "/spec/model", "the whole spec is wanted"),
        ({"spec": {**MODEL_SPEC, "replicas": {"min": 1, "max": 1}}}, "/spec", "nothing would change"),
        ({"name": "other"}, "/name", "a name is for life"),
        ({"team": "ads"}, "/team", "so is a team"),
        ({"environment": "prod"}, "/environment", "and an environment"),
        ({"spec": {**MODEL_SPEC, "suspend": True}}, "/spec/suspend", "a request of its own does that"),
        ({"instance": "x"}, "/instance", "no identifier"),
    ],
)
def test_what_can_not_be_asked_is_named(
    call_as: As, nothing_written: Unwritten, body: dict[str, Any], pointer: str, reason: str
) -> None:
    instance = ready("ada", model_body())
    with nothing_written():
        answer = call_as("ada").post("requests/", {**change_body(instance), **body})
    assert (answer.status, answer.code) == (400, "invalid-input"), reason
    assert pointer in [error["pointer"] for error in answer.json["errors"]], reason


def test_others_instances_are_not_there(call_as: As, nothing_written: Unwritten) -> None:
    instance = ready("ada", model_body())
    with nothing_written():
        for who in (OUTSIDER, "carol"):
            for kind in ("Suspend", "Resume"):
                body = {"kind": kind, "instance": str(instance.pk)}
                assert call_as(who).post("requests/", body).status == 404
            assert call_as(who).post("requests/", change_body(instance)).status == 404
            assert call_as(who).get(f"instances/{instance.pk}/revisions/").status == 404


def test_suspend_and_resume(call_as: As) -> None:
    ada, instance = call_as("ada"), ready("ada", model_body())
    body = {"kind": "Suspend", "instance": str(instance.pk)}
    preview = ada.post("requests/preview/", body).json
    assert preview["cost"] == {"currency": "USD", "before": "584.00", "after": "0.00", "delta": "-584.00"}
    assert ada.post("requests/", {**body, "kind": "Resume"}).code == "already-so"
    assert ada.post("requests/", body).json["state"] == "Approved"
    assert ada.post("requests/", body).code == "already-asked"
    seen(instance)
    assert ada.get(f"instances/{instance.pk}/").json["phase"] == "Suspended"
    assert ada.post("requests/", {**body, "kind": "Resume"}).json["cost"]["delta"] == "584.00"


def test_revisions_are_paged_and_say_who_when_and_for_how_much(call_as: As) -> None:
    ada, instance = call_as("ada"), ready("ada", model_body())
    submit("ben", change_body(instance))
    seen(instance)
    submit("ada", {"kind": "Suspend", "instance": str(instance.pk)})
    seen(instance)
    submit("ada", change_body(instance, 3))  # asked for, and nothing more
    first = ada.get(f"instances/{instance.pk}/revisions/?limit=2").json
    rows = [(r["number"], r["kind"], r["state"], r["requester"], r["current"]) for r in first["items"]]
    assert rows == [(3, "Suspend", "Done", "ada", True), (2, "Change", "Done", "ben", False)]
    assert [r["monthly"]["amount"] for r in first["items"]] == ["0.00", "1168.00"]
    rest = ada.get(first["next"]).json
    assert [(r["number"], r["kind"], r["spec"]["replicas"]["max"]) for r in rest["items"]] == [(1, "Create", 1)]
    assert (rest["next"], ada.get(rest["previous"]).json["items"] == first["items"]) == (None, True)


def test_a_revision_can_be_asked_for_again(call_as: As) -> None:
    ada, instance = call_as("ada"), ready("ada", model_body())
    submit("ada", change_body(instance, 2, contextLength=8192))
    seen(instance)
    spec = ada.get(f"instances/{instance.pk}/revisions/").json["items"][1]["spec"]
    answer = ada.post("requests/", {"kind": "Change", "instance": str(instance.pk), "spec": spec})
    assert {row["pointer"]: row["new"] for row in answer.json["difference"]} == {
        "/spec/contextLength": 4096,
        "/spec/replicas/max": 1,
    }


# --- what the control plane says --------------------------------------------------------------------------------------


def test_a_preview_tells_what_the_control_plane_would_make_of_it(call_as: As) -> None:
    plane = embedded_plane()
    instance = ready("ada", model_body())
    plane.ensure_namespace(instance.namespace, True, {})
    assert instance.claim is not None
    plane.apply(instance.claim)
    said = call_as("ada").post("requests/preview/", change_body(instance)).json["controlPlane"]
    assert (said["accepted"], said["message"]) == (True, "it would be taken")
    assert {"pointer": "/spec/replicas/max", "old": 1, "new": 2} in said["difference"]
    assert "kind: ModelDeployment" in said["claim"]
    assert "max: 2" in said["claim"]


def test_a_refusal_of_the_control_plane_is_told_before_anybody_asks(call_as: As) -> None:
    plane = embedded_plane()
    plane.ensure_namespace("search-dev", True, {})
    instance = ready("ada", model_body())
    claim = instance.claim or {}
    labels = {
        name: "stranger" if name.endswith("/instance") else text for name, text in claim["metadata"]["labels"].items()
    }
    plane.apply({**claim, "metadata": {**claim["metadata"], "labels": labels}})
    said = call_as("ada").post("requests/preview/", change_body(instance)).json["controlPlane"]
    assert (said["accepted"], said["code"]) == (False, "claim-name-taken")


def test_a_control_plane_that_is_away_is_in_nobodys_way(call_as: As, monkeypatch: pytest.MonkeyPatch) -> None:
    class Away:
        def dry_run(self, claim: dict[str, Any]) -> None:
            raise RetryableError("control-plane-down", "nobody answers at 10.0.0.1")

    monkeypatch.setattr(door, "control_plane", lambda name: Away())
    answer = call_as("ada").post("requests/preview/", model_body())
    assert (answer.status, answer.json["outcome"]) == (200, "Allowed")
    said = answer.json["controlPlane"]
    assert (said["accepted"], said["message"]) == (None, "not asked: nobody answers at 10.0.0.1")


def test_an_approver_sees_what_the_control_plane_says(call_as: As) -> None:
    embedded_plane().ensure_namespace("search-prod", True, {})
    request = submit("ada", model_body(environment="prod"))
    answer = call_as("frank").get(f"requests/{request.pk}/rehearsal/")
    assert (answer.status, answer.json["controlPlane"]["accepted"]) == (200, True), answer.text
    assert call_as(OUTSIDER).get(f"requests/{request.pk}/rehearsal/").status == 404
    done = submit("ada", model_body("other"))
    work()
    assert call_as("ada").get(f"requests/{done.pk}/rehearsal/").code == "not-waiting"
