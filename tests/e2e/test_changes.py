"""A claim's life on the real core: changed, failing while the old generation serves, reverted; edited and deleted by
others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portal.running.crossplane.kube import Api, Object, eventually
from portal.running.crossplane.layout import CONTROL_PLANE
from tests.e2e.remains import Clusters
from tests.e2e.scratch import body
from tests.front import Front

pytestmark = pytest.mark.timeout(300)
GROUP = "aiplatform.example.org/v1alpha1"
WITHIN = 90.0


@pytest.fixture
def admin(clusters: Clusters) -> Api:
    """The control plane, as somebody who goes round the portal."""
    return clusters.apis[CONTROL_PLANE]


def made(front: Front, name: str, size: int, **changes: Any) -> dict[str, Any]:
    """An instance that is Ready."""
    done = front.done(front.submit("ada", {**body(name, size), **changes}), WITHIN)
    return front.instance(done["instance"])


def live(admin: Api, instance: dict[str, Any]) -> Object:
    meta = instance["claim"]["metadata"]
    found = admin.get(GROUP, "ScratchSpace", meta["name"], meta["namespace"])
    assert found is not None
    return found


def edit(admin: Api, instance: dict[str, Any], **spec: Any) -> None:
    """As `kubectl edit` does it: an update by another manager."""
    found = live(admin, instance)
    found["spec"] |= spec
    admin.call("PUT", admin.path(found), json.dumps(found), parameters={"fieldManager": "kubectl-edit"})


def change(front: Front, instance: dict[str, Any], who: str = "ada", **spec: Any) -> dict[str, Any]:
    wanted = {**instance["spec"], **spec}
    return front.submit(who, {"kind": "Change", "instance": instance["id"], "spec": wanted})


def until_phase(front: Front, instance: dict[str, Any], phase: str, text: str = "") -> dict[str, Any]:
    def reached() -> dict[str, Any] | None:
        now = front.instance(instance["id"])
        return now if now["phase"] == phase and text in now["message"] else None

    try:
        return eventually(f"{phase} with {text!r}", reached, WITHIN)
    except Exception:
        now = front.instance(instance["id"])
        print(now["phase"], now["message"], now["status"])
        raise


def held(front: Front, instance: dict[str, Any]) -> int:
    """GiB that an instance holds: the largest of its reservations that are not given back."""
    query = "SELECT COALESCE(MAX(amount), 0) FROM portal_reservation WHERE instance_id = %s AND state <> 'released'"
    return int(front.rows(query, instance["id"])[0][0])


def test_a_change_is_shown_applied_and_done(front: Front, admin: Api) -> None:
    instance = made(front, "grows", 2)
    wanted = {"kind": "Change", "instance": instance["id"], "spec": {**instance["spec"], "size": 4, "memory": "1024Mi"}}
    preview = front.call("ada", "POST", "requests/preview/", json=wanted).raise_for_status().json()
    assert preview["controlPlane"]["accepted"], preview["controlPlane"]
    pointers = [each["pointer"] for each in preview["controlPlane"]["difference"]]
    assert pointers == ["/spec/size"], "1Gi and 1024Mi are one quantity"
    uid = live(admin, instance)["metadata"]["uid"]
    front.done(front.submit("ada", wanted), WITHIN)
    after = live(admin, instance)
    assert (after["spec"]["size"], after["metadata"]["uid"]) == (4, uid)
    assert front.instance(instance["id"])["phase"] == "Ready"
    assert held(front, instance) == 4


def test_what_the_api_server_refuses_is_told_before_anybody_asks(front: Front) -> None:
    """A CEL rule of the XRD: refused by the portal's own reading of it, or by the API server's dry run."""
    instance = made(front, "superstitious", 12)
    wanted = {"kind": "Change", "instance": instance["id"], "spec": {**instance["spec"], "size": 13}}
    answer = front.call("ada", "POST", "requests/preview/", json=wanted)
    assert "size must not be 13" in answer.text
    assert live_size(front, instance) == 12


def live_size(front: Front, instance: dict[str, Any]) -> int:
    return int(front.instance(instance["id"])["claim"]["spec"]["size"])


def test_the_old_generation_serves_while_the_new_one_fails_and_a_revert_mends_it(front: Front) -> None:
    instance = made(front, "unlucky-change", 2)
    failing = change(front, instance, behave="fatal", size=3)
    seen = until_phase(front, instance, "Degraded", "update failing")
    assert "serving" in seen["message"]
    assert "refuses" in seen["message"]
    assert front.request(failing["id"])["state"] == "Delivering"
    assert held(front, instance) == 3, "the larger of what serves and what was asked for"
    revert = change(front, instance, behave="well", size=2)
    front.done(revert, WITHIN)
    assert front.request(failing["id"])["state"] == "Superseded"
    until_phase(front, instance, "Ready")
    assert held(front, instance) == 2


def test_an_edit_within_the_ceiling_is_shown_and_taken_back_when_asked(front: Front, admin: Api) -> None:
    instance = made(front, "edited-down", 3)
    edit(admin, instance, size=2)

    def drift() -> list[dict[str, Any]]:
        return list(front.instance(instance["id"])["drift"])

    (field,) = eventually("the drift is seen", drift, WITHIN)
    assert (field["field"], field["approved"], field["live"]) == ("/spec/size", 3, 2)
    assert (field["manager"], field["metered"]) == ("kubectl-edit", True)
    assert field["at"]
    assert live(admin, instance)["spec"]["size"] == 2, "nothing is overwritten silently"
    assert front.call("ben", "POST", f"instances/{instance['id']}/take-back/", json={}).status_code == 200
    eventually("taken back", lambda: live(admin, instance)["spec"]["size"] == 3, WITHIN)
    eventually("no drift any more", lambda: drift() == [], WITHIN)
    verbs = [e["verb"] for e in front.get("olivia", "audit/", instance=instance["id"], limit="200")["items"]]
    assert any("take_back" in verb or "take-back" in verb for verb in verbs), verbs


def test_an_edit_beyond_the_quota_is_denied_and_taken_back(front: Front, admin: Api) -> None:
    instance = made(front, "edited-up", 2, team="attic")
    edit(admin, instance, size=5)
    eventually("taken back", lambda: live(admin, instance)["spec"]["size"] == 2, WITHIN)
    changes = front.get("olivia", "requests/", kind="Change", team="attic")["items"]
    assert [each["state"] for each in changes] == ["Denied"]
    assert changes[0]["requester"] == "ada"
    assert "quota-exceeded" in {reason["code"] for reason in changes[0]["decision"]["reasons"]}
    assert held(front, instance) == 2


def test_a_claim_that_others_delete_is_noticed(front: Front, admin: Api) -> None:
    instance = made(front, "swept-away", 2)
    admin.delete(live(admin, instance), "Foreground")
    gone = until_phase(front, instance, "Gone", "other than the portal")
    assert gone["drift"] == []
    assert front.holds(instance["id"]) == (0, 0)
