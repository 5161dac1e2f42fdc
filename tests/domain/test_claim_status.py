"""What claims say on a real core, and which phase and words come of it."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.claim_status import Past, assess
from portal.domain.lifecycle import InstancePhase
from portal.ports import ComposedObject
from tests.domain.claims import (
    BROKEN,
    LONG_AGO,
    NOW,
    POD,
    READY,
    STUCK_AFTER,
    SYNCED,
    WAS_READY,
    claim,
    condition,
    look,
)

CASES: list[tuple[object, dict[str, Any], str, str, str]] = [
    ((READY, SYNCED), {}, "Ready", "ready", "both True and of this generation"),
    ((), {}, "Pending", "hasn't looked at", "a new claim"),
    (None, {}, "Pending", "hasn't looked at", "conditions are null"),
    ("soon", {}, "Pending", "hasn't looked at", "conditions are no list"),
    ((None, 3, {}, {"type": None}), {}, "Pending", "hasn't looked at", "no item is a condition"),
    ((SYNCED,), {}, "Provisioning", "not ready yet", "Ready is absent, nothing failed"),
    (
        (BROKEN,),
        {},
        "Provisioning",
        "failing, and tried again: ReconcileError",
        "the first failure: Ready absent",
    ),
    (
        (condition("Synced", "False", 2, "ReconcileError", "boom", minutes_ago=45),),
        {},
        "Stuck",
        "never ready, failing for 45 min: ReconcileError: boom",
        "failing for longer than it may",
    ),
    (
        (condition("Ready", "True", 1), BROKEN),
        {},
        "Degraded",
        "serving generation 1; update failing: ReconcileError: cannot compose resources",
        "a fatal result after it was healthy: stale Ready (cases 5 and 6)",
    ),
    ((READY, BROKEN), {}, "Degraded", "Ready, but not in sync: ReconcileError", "Synced False, Ready True (case 5)"),
    (
        (condition("Ready", "True", None), condition("Synced", "False", None, "ReconcileError", "boom")),
        {},
        "Degraded",
        "Ready, but not in sync: ReconcileError: boom",
        "a core that sets no observedGeneration",
    ),
    (
        (condition("Ready", "True", 1), condition("Synced", "True", 2)),
        WAS_READY,
        "Updating",
        "serving generation 1; updating to 2",
        "Ready is of an older generation",
    ),
    (
        (condition("Ready", "True", 1), condition("Synced", "True", 1)),
        WAS_READY,
        "Updating",
        "serving generation 1; updating to 2",
        "the edit was not looked at yet",
    ),
    (
        (condition("Ready", "True", None), condition("Synced", "True", 1)),
        WAS_READY,
        "Updating",
        "serving generation 1; updating to 2",
        "only Synced says of which generation it is",
    ),
    ((condition("Ready", "True", None), condition("Synced", "True", None)), {}, "Ready", "ready", "neither says"),
    (
        (condition("Ready", "True", 1), condition("Synced", "False", 2, "ReconcilePaused")),
        {},
        "Degraded",
        "serving generation 1; reconciling is paused",
        "paused, then edited",
    ),
    (
        (condition("Synced", "False", 2, "ReconcilePaused"),),
        {},
        "Unknown",
        "take the annotation crossplane.io/paused off",
        "paused before it was ever looked at",
    ),
    (
        (condition("Ready", "True", 2), condition("Synced", "False", 2, "ReconcileError", "DeadlineExceeded")),
        {},
        "Degraded",
        "DeadlineExceeded",
        "the function is down",
    ),
    (
        (condition("Synced", "False", 2, "ReconcileError", "missing required capabilities: composition"),),
        {},
        "Provisioning",
        "missing required capabilities: composition",
        "the function misses the capability",
    ),
    (
        (condition("Synced", "False", 2, "ReconcileError", "Unsynced resources: inference"),),
        {"composed": (POD,)},
        "Provisioning",
        "Unsynced resources: inference; LLMInferenceService chat-x is not ready: no GPU free; the cause is in the "
        "claim's Events",
        "an invalid composed resource: where the cause is",
    ),
    (
        (condition("Ready", "False", None, "Waiting"), condition("Synced", "True", None)),
        {},
        "Provisioning",
        "Waiting; the cause is on the composite resource",
        "a v1 claim over a failing XR",
    ),
    (
        (condition("Ready", "False", 2, "Creating"), SYNCED, condition("Placed", "False", None, "Full", "no l4 free")),
        {"composed": (POD,)},
        "Provisioning",
        "not ready yet: Creating; Placed is False: Full: no l4 free; LLMInferenceService chat-x is not ready: no GPU",
        "what it waits for, by the function's own condition",
    ),
    (
        (READY, SYNCED, condition("Responsive", "False", None, "WatchCircuitOpen", "too many watch events")),
        {},
        "Ready",
        "ready; Responsive is False: WatchCircuitOpen: too many watch events",
        "status may be late, and that is said",
    ),
    (
        (condition("Ready", "False", 4, ""), condition("Synced", "True", 4)),
        {"generation": 4},
        "Provisioning",
        "not ready yet: no reason given",
        "empty reason and message (case 8)",
    ),
    (
        ({"type": "Ready", "status": "True", "lastTransitionTime": None}, {"type": "Synced", "status": "True"}),
        {},
        "Ready",
        "ready",
        "null and absent lastTransitionTime (case 8)",
    ),
    ((READY,), {}, "Unknown", "condition Synced is absent", "Ready alone is not healthy"),
    ((condition("Ready", "Unknown"), SYNCED), {}, "Unknown", "condition Ready is Unknown", "it doesn't know itself"),
    ((READY, condition("Synced", "")), {}, "Unknown", "condition Synced is without a status", "an empty status"),
    (
        (condition("Ready", "True", 2.0), SYNCED),  # type: ignore[arg-type]  # as it may come from the wire
        {},
        "Ready",
        "ready",
        "an integer that came as 2.0 (case 11)",
    ),
    (
        (READY, SYNCED),
        {"deleted_minutes_ago": 5, "finalizers": ("foregroundDeletion",)},
        "Deleting",
        "deleting for 5 min; waiting for finalizer foregroundDeletion",
        "Ready=True while it is deleted (case 7)",
    ),
    (
        (READY, SYNCED),
        {"deleted_minutes_ago": 300, "finalizers": ("a.example/x", "b.example/y"), "composed": (POD,)},
        "Stuck",
        "deleting for 5 h; waiting for finalizer a.example/x, b.example/y; still there: LLMInferenceService chat-x",
        "after a time it is stuck, and by whom (case 7)",
    ),
]


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "less than 10 s"), (9, "less than 10 s"), (47, "40 s"), (119, "110 s"), (120, "2 min"), (7200, "2 h")],
)
def test_a_short_time_is_told_in_tens_of_seconds(seconds: int, told: str) -> None:
    """Not to the second: a message that changed at every look would be published at every look."""
    leaving = dataclasses.replace(claim(), deletion_requested_at=NOW - dt.timedelta(seconds=seconds))
    assert f"deleting for {told}; no finalizer" in assess(leaving, NOW, STUCK_AFTER).message


@pytest.mark.parametrize(("conditions", "more", "phase", "message", "reason"), CASES)
def test_a_claim_is_read_honestly(
    conditions: object, more: dict[str, Any], phase: str, message: str, reason: str
) -> None:
    found = look(conditions, more)
    assert found.phase == phase, f"{reason}: {found.message}"
    assert message in found.message, reason


NO_LONGER = [
    ((condition("Ready", "False", 2, "Unavailable", "pod died"), SYNCED), "Degraded", "no longer ready: Unavailable"),
    ((condition("Ready", "False", 1, "Creating"), SYNCED), "Updating", "not ready while updating"),
    ((condition("Ready", "False", 2), BROKEN), "Degraded", "not ready, and not in sync: ReconcileError"),
]


@pytest.mark.parametrize(("conditions", "phase", "message"), NO_LONGER)
def test_what_was_ready_once_is_not_provisioning(conditions: object, phase: str, message: str) -> None:
    found = assess(claim(conditions), NOW, STUCK_AFTER, Past(was_ready=True))
    assert (found.phase, message in found.message) == (phase, True), found.message


def test_a_claim_that_is_not_there_is_gone() -> None:
    assert assess(None, NOW, STUCK_AFTER).phase is InstancePhase.GONE


def test_the_deciding_condition_its_time_and_the_served_generation_are_kept() -> None:
    found = assess(claim((condition("Ready", "True", 1, minutes_ago=9), BROKEN)), NOW, STUCK_AFTER)
    assert (found.condition, found.observed_generation) == ("Synced", 1)
    assert found.since == NOW - dt.timedelta(minutes=1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
ANYTHING = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["Ready", "Synced", "Other"]) | JSON,
        "status": st.sampled_from(["True", "False", "Unknown"]) | JSON,
        "reason": JSON,
        "message": JSON,
        "lastTransitionTime": st.just("2026-12-01T11:00:00Z") | st.just("2026-12-01T11:00:00") | JSON,
        "observedGeneration": st.integers(0, 4) | JSON,
    },
)


@given(st.lists(ANYTHING | JSON, max_size=5), st.booleans())
def test_ready_is_only_said_when_both_conditions_are_true_and_current(listed: list[Any], was_ready: bool) -> None:
    past = Past(was_ready, not was_ready, LONG_AGO, 2, LONG_AGO, 1)
    found = assess(claim(listed), NOW, STUCK_AFTER, past)
    assert found.message
    if found.phase is InstancePhase.READY:
        for kind in ("Ready", "Synced"):
            last = [c for c in listed if isinstance(c, dict) and c.get("type") == kind][-1]
            assert last["status"].strip() == "True"
            generation = last.get("observedGeneration")
            if isinstance(generation, int) and not isinstance(generation, bool):
                assert generation >= 2


@given(
    status=JSON,
    manifest=JSON,
    spec=st.dictionaries(st.sampled_from(["resourceRef", "suspend"]), JSON),
    gone=st.booleans(),
)
def test_no_shape_of_an_object_raises(status: Any, manifest: Any, spec: dict[str, Any], gone: bool) -> None:
    """Case 8, for the whole of what is read: conditions, composed objects' manifests, the spec."""
    as_object = manifest if isinstance(manifest, dict) else {"metadata": manifest, "status": manifest}
    each = ComposedObject("v1", "Object", "search-dev", "x", None, "", as_object)
    reference = {"resourceRef": {"kind": "Object", "name": "x"}, **spec}
    seen = dataclasses.replace(
        claim((), composed=(each,), spec=reference, deleted_minutes_ago=45 if gone else None),
        status=status if isinstance(status, dict) else {"conditions": status},
    )
    assert assess(seen, NOW, STUCK_AFTER).message
