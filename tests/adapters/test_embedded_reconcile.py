"""How the embedded control plane reconciles, against a real function process over gRPC. The right values are
Crossplane's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from portal.adapters.embedded.controller import Controller, backoff
from portal.adapters.embedded.deliver import apply_object
from portal.adapters.embedded.functions import Functions
from portal.models.embedded import EmbeddedEvent, EmbeddedObject, EmbeddedSequence
from portal.ports import ControlPlane, ObservedClaim
from tests.adapters.conftest import FAULTS, FunctionProcess, wait_until
from tests.adapters.suite_observe import condition, ready
from tests.adapters.widgets import composition, ref, shelf, widget

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def observed(plane: ControlPlane, name: str = "one") -> ObservedClaim:
    claim = plane.get(ref(name))
    assert claim is not None
    return claim


def entry(claim: ObservedClaim, kind: str) -> dict[str, Any]:
    return next(one for one in claim.status.get("conditions", []) if one["type"] == kind)


def synced(plane: ControlPlane, status: str, name: str = "one") -> bool:
    return condition(observed(plane, name).status, "Synced") == status


@pytest.fixture
def own_function() -> Iterator[FunctionProcess]:
    """One that the test may kill."""
    process = FunctionProcess()
    process.start()
    yield process
    process.kill()


def test_the_functions_status_arrives_with_its_integers(controlled: ControlPlane) -> None:
    controlled.apply(widget(size=3))
    wait_until(lambda: ready(controlled), "Ready")
    status = observed(controlled).status
    assert (status["size"], status["big"]) == (3, 2**40)
    assert isinstance(status["size"], int)


def test_composed_objects_are_named_labelled_and_owned(controlled: ControlPlane) -> None:
    uid = controlled.apply(widget(size=1)).uid
    wait_until(lambda: ready(controlled), "Ready")
    metadata = observed(controlled).composed[0].manifest["metadata"]
    assert metadata["name"].startswith("one-")
    assert metadata["namespace"] == "search-dev"
    assert metadata["labels"]["crossplane.io/composite"] == "one"
    assert metadata["annotations"]["crossplane.io/composition-resource-name"] == "part-0"
    assert metadata["ownerReferences"][0]["uid"] == uid


def test_what_is_no_longer_desired_goes_and_the_rest_stays(controlled: ControlPlane) -> None:
    controlled.apply(widget(size=3))
    wait_until(lambda: ready(controlled), "Ready")
    before = {one.name: one.manifest["metadata"]["uid"] for one in observed(controlled).composed}
    controlled.apply(widget(size=1))
    wait_until(lambda: len(observed(controlled).composed) == 1, "two parts went")
    kept = observed(controlled).composed[0]
    assert before[kept.name] == kept.manifest["metadata"]["uid"]


def test_a_fatal_result_touches_synced_and_leaves_ready(controlled: ControlPlane) -> None:
    first = controlled.apply(widget())
    wait_until(lambda: ready(controlled), "Ready")
    second = controlled.apply(widget(mode="fatal"))
    wait_until(lambda: synced(controlled, "False"), "Synced=False")
    claim = observed(controlled)
    assert entry(claim, "Synced")["reason"] == "ReconcileError"
    assert "the tiny function refuses" in entry(claim, "Synced")["message"]
    assert entry(claim, "Synced")["observedGeneration"] == second.generation
    assert (entry(claim, "Ready")["status"], entry(claim, "Ready")["observedGeneration"]) == ("True", first.generation)
    assert entry(claim, "Looked")["message"] == "it did look"
    assert len(claim.composed) == 1


def test_a_first_failure_says_nothing_of_ready(controlled: ControlPlane) -> None:
    controlled.apply(widget(mode="fatal"))
    wait_until(lambda: synced(controlled, "False"), "Synced=False")
    assert condition(observed(controlled).status, "Ready") is None


def test_warnings_and_conditions_of_the_function_are_kept(controlled: ControlPlane) -> None:
    uid = controlled.apply(widget(mode="warned")).uid
    wait_until(lambda: ready(controlled), "Ready")
    placed = entry(observed(controlled), "Placed")
    assert (placed["status"], placed["reason"], placed["message"]) == ("False", "NoRoom", "full")
    assert "observedGeneration" not in placed
    events = EmbeddedEvent.objects.filter(object_uid=uid, severity="Warning")
    assert [event.message for event in events] == ["careful"]
    assert events[0].count > 1


def test_required_resources_come_in_several_rounds(controlled: ControlPlane) -> None:
    for name, color in (("a", "red"), ("b", "red"), ("c", "blue")):
        apply_object(shelf(name, color), "tests")
    controlled.apply(widget(mode="rounds"))
    wait_until(lambda: ready(controlled), "Ready")
    assert observed(controlled).status["seen"] == {
        "first": ["a"],
        "alike": ["a", "b"],
        "all": ["a", "b", "c"],
        "missing": [],
    }


def test_requirements_that_never_settle_are_an_error(controlled: ControlPlane) -> None:
    controlled.apply(widget(mode="unstable"))
    wait_until(lambda: synced(controlled, "False"), "Synced=False")
    assert "requirements didn't stabilize" in entry(observed(controlled), "Synced")["message"]


def test_a_function_that_is_too_slow(controlled: ControlPlane) -> None:
    controlled.apply(widget(mode="slow"))
    wait_until(lambda: synced(controlled, "False"), "Synced=False")
    claim = observed(controlled)
    assert "DeadlineExceeded" in entry(claim, "Synced")["message"]
    assert condition(claim.status, "Ready") is None


def test_the_ttl_of_an_answer_is_kept(controlled: ControlPlane) -> None:
    controlled.apply(widget(mode="ticking"))
    wait_until(lambda: "calledAt" in observed(controlled).status, "a first call")
    first = observed(controlled).status["calledAt"]
    wait_until(lambda: observed(controlled).status["calledAt"] > first, "a second call", timeout=2)


@pytest.mark.parametrize(("mode", "status"), [("explicit", "True"), ("waiting", "False")])
def test_the_function_has_the_last_word_on_ready(controlled: ControlPlane, mode: str, status: str) -> None:
    """`explicit` is ready though its part is not, `waiting` is not though it has none."""
    controlled.apply(widget(mode=mode))
    wait_until(lambda: synced(controlled, "True"), "Synced")
    assert condition(observed(controlled).status, "Ready") == status


def test_while_the_function_is_down_nothing_becomes_ready(plane: ControlPlane, own_function: FunctionProcess) -> None:
    with Controller(Functions({"tiny": own_function.address}, timeout=1.5), {}):
        plane.apply(widget("before"))
        wait_until(lambda: ready(plane, "before"), "Ready")
        own_function.kill()
        plane.apply(widget("after"))
        wait_until(lambda: synced(plane, "False", "after"), "Synced=False")
        time.sleep(0.5)
        assert "Unavailable" in entry(observed(plane, "after"), "Synced")["message"]
        assert condition(observed(plane, "after").status, "Ready") is None
        assert condition(observed(plane, "before").status, "Ready") == "True"
        own_function.start()
        wait_until(lambda: ready(plane, "after"), "Ready again by itself")


def test_a_function_without_an_address(plane: ControlPlane) -> None:
    with Controller(Functions({}, timeout=1.5), {}):
        plane.apply(widget())
        wait_until(lambda: synced(plane, "False"), "Synced=False")
        assert "FUNCTION_ENDPOINTS" in entry(observed(plane), "Synced")["message"]


def test_a_pinned_revision_stays_and_an_unpinned_claim_follows(controlled: ControlPlane) -> None:
    """The second content of the Composition calls a function that nobody serves."""
    pin = {
        "compositionRef": {"name": "widgets"},
        "compositionRevisionRef": {"name": controlled.composition_revision("widgets")},
        "compositionUpdatePolicy": "Manual",
    }
    controlled.apply(widget("pinned", crossplane=pin))
    controlled.apply(widget("free"))
    wait_until(lambda: ready(controlled, "pinned") and ready(controlled, "free"), "both Ready")
    changed = composition("widgets", "Widget")
    changed["spec"]["pipeline"][0]["functionRef"]["name"] = "nobody"
    apply_object(changed, "tests")
    wait_until(lambda: synced(controlled, "False", "free"), "the free one follows")
    controlled.apply(widget("pinned", size=2, crossplane=pin))
    wait_until(lambda: ready(controlled, "pinned") and len(observed(controlled, "pinned").composed) == 2, "still works")
    assert controlled.composition_revision("widgets") != pin["compositionRevisionRef"]["name"]
    apply_object(composition("widgets", "Widget"), "tests")
    assert controlled.composition_revision("widgets") == pin["compositionRevisionRef"]["name"]


def test_a_pipeline_passes_desired_state_on(controlled: ControlPlane) -> None:
    apply_object(composition("widgets", "Widget", steps=2), "tests")
    controlled.apply(widget(size=2))
    wait_until(lambda: ready(controlled), "Ready")
    assert len(observed(controlled).composed) == 2


def test_a_paused_claim_is_left_alone(controlled: ControlPlane) -> None:
    controlled.apply(widget(size=1))
    wait_until(lambda: ready(controlled), "Ready")
    paused = widget(size=2)
    paused["metadata"]["annotations"] = {"crossplane.io/paused": "true"}
    controlled.apply(paused)
    wait_until(lambda: synced(controlled, "False"), "Synced=False")
    assert entry(observed(controlled), "Synced")["reason"] == "ReconcilePaused"
    assert len(observed(controlled).composed) == 1
    controlled.apply(widget(size=2))
    wait_until(lambda: len(observed(controlled).composed) == 2 and ready(controlled), "goes on")


def test_deletion_takes_the_composed_objects_first(controlled: ControlPlane) -> None:
    """`kept` keeps its parts: the claim says so and stays."""
    controlled.apply(widget("kept", size=2))
    wait_until(lambda: ready(controlled, "kept"), "Ready")
    controlled.delete(ref("kept"), None)
    wait_until(lambda: condition(observed(controlled, "kept").status, "Ready") == "False", "Deleting")
    time.sleep(0.5)
    claim = observed(controlled, "kept")
    assert entry(claim, "Ready")["reason"] == "Deleting"
    assert len(claim.composed) == 2
    assert all(one.manifest["metadata"]["deletionTimestamp"] for one in claim.composed)
    assert {name for one in claim.composed for name in one.manifest["metadata"]["finalizers"]} == {
        "finalizer.managedresource.crossplane.io"
    }


def test_a_name_that_a_stranger_has_is_not_taken_over(controlled: ControlPlane) -> None:
    """The part's name is a function of the composite alone, so that another composite's can be in its way."""
    uid = controlled.apply(widget(size=1)).uid
    wait_until(lambda: ready(controlled), "Ready")
    part = EmbeddedObject.objects.get(kind="Object")
    other = controlled.apply(widget("two", size=0)).uid
    wait_until(lambda: ready(controlled, "two"), "Ready")
    EmbeddedObject.objects.filter(pk=part.pk).update(owner=EmbeddedObject.objects.get(uid=other))
    controlled.apply(widget(size=1, note="again"))
    wait_until(lambda: synced(controlled, "False"), "Synced=False")
    assert "not controlled by" in entry(observed(controlled), "Synced")["message"]
    assert str(EmbeddedObject.objects.get(uid=uid).uid) == uid


def test_settled_objects_are_not_written_again(controlled: ControlPlane) -> None:
    controlled.apply(widget(size=2))
    wait_until(lambda: ready(controlled), "Ready")
    time.sleep(0.5)
    before = EmbeddedSequence.objects.get().value
    apply_object(composition("widgets", "Widget"), "tests")
    time.sleep(0.7)
    assert EmbeddedSequence.objects.get().value == before


def test_two_controllers_share_the_work(plane: ControlPlane, tiny_function: FunctionProcess) -> None:
    """Twelve claims, two controllers: each part exists once, and every claim becomes Ready."""
    functions = Functions({"tiny": tiny_function.address}, timeout=5)
    with Controller(functions, FAULTS, workers=2), Controller(functions, FAULTS, workers=2):
        for number in range(12):
            plane.apply(widget(f"w{number}", size=2))
        wait_until(lambda: all(ready(plane, f"w{number}") for number in range(12)), "all Ready")
    assert EmbeddedObject.objects.filter(kind="Object").count() == 24


def test_from_apply_to_ready_takes_the_delay_and_little_more(
    plane: ControlPlane, tiny_function: FunctionProcess
) -> None:
    with (
        override_settings(SIMULATOR_DELAY=0.5),
        Controller(Functions({"tiny": tiny_function.address}, timeout=5), {}),
    ):
        took = []
        for name in ("a", "b", "c"):  # the best of three: the machine may be busy with something else
            started = time.monotonic()
            plane.apply(widget(name))
            wait_until(lambda name=name: ready(plane, name), "Ready")
            took.append(time.monotonic() - started)
    assert 0.5 <= min(took) < 1.5


def test_waiting_grows_to_a_limit() -> None:
    assert [backoff(attempts) for attempts in (0, 1, 2, 5, 1000)] == [0.5, 1.0, 2.0, 10.0, 10.0]
