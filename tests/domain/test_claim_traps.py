"""Crossplane's traps, each seen on a real core: what a claim says there, and what the portal makes of it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from portal.domain import advice
from portal.domain.claim_status import Past, assess
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


def composed(name: str, ready: bool | None = False, message: str = "", **manifest: Any) -> ComposedObject:
    return ComposedObject("kubernetes.m.crossplane.io/v1alpha1", "Object", "search-dev", name, ready, message, manifest)


def on_its_way_out(name: str, minutes: int, *conditions: dict[str, Any]) -> ComposedObject:
    asked = (NOW - dt.timedelta(minutes=minutes)).isoformat()
    metadata = {"finalizers": ["finalizer.managedresource.crossplane.io"], "deletionTimestamp": asked}
    return composed(name, metadata=metadata, status={"conditions": list(conditions)})


V1_SPEC = {"resourceRef": {"apiVersion": "x.example.org/v1", "kind": "XModel", "name": "chat-7xk"}}


def xr(*conditions: dict[str, Any]) -> ComposedObject:
    """The composite resource behind a claim of v1."""
    manifest = {"metadata": {"generation": 3}, "status": {"conditions": list(conditions)}}
    return ComposedObject("x.example.org/v1", "XModel", "", "chat-7xk", None, "", manifest)


WAITING = condition("Ready", "False", None, "Waiting")
V1_SYNCED = condition("Synced", "True", None, "ReconcileSuccess")
APPROVED_NOT = condition("Approved", "False", None, "ApprovalExceeded", "gpu.l4: 4 is above the approved 2")
TIMED_OUT = (
    'cannot compose resources: cannot run Composition pipeline step "compose": rpc error: code = DeadlineExceeded '
    "desc = context deadline exceeded"
)
MISSES = "cannot run function: missing required capabilities: composition"
FATAL = 'cannot compose resources: pipeline step "compose" returned a fatal result: /spec/accelerator/class is "h200"'
UNCOMPOSED = 'cannot fetch Composition: cannot get Composition: "modeldeployments-kserve" not found'
SERVED_2 = {"past": Past(was_ready=True, spec_generation=2, served=2, generation_since=LONG_AGO, spec_since=LONG_AGO)}
TO_5 = Past(was_ready=True, spec_generation=5, served=4, generation_since=LONG_AGO, spec_since=LONG_AGO)
SUSPEND = {"spec": {"suspend": True}, **WAS_READY}

# One row for each trap that a real core sets: what it says, phase, message, condition, what to do, why.
TRAPS: list[tuple[object, dict[str, Any], str, str, str | None, str, str]] = [
    (
        (BROKEN,),
        {},
        "Provisioning",
        "failing, and tried again: ReconcileError",
        "Synced",
        "function says why",
        "first failure before any success: Ready is absent",
    ),
    (
        (condition("Ready", "True", 1), condition("Synced", "False", 2, "ReconcileError", FATAL)),
        WAS_READY,
        "Degraded",
        "serving generation 1; update failing: ReconcileError",
        "Synced",
        "If it names a field of the spec, ask for a change",
        "a fatal result after it was healthy: Ready=True stays, of an older generation (cases 5 and 6)",
    ),
    (
        (condition("Ready", "True", 1), condition("Synced", "False", 2, "ReconcilePaused")),
        WAS_READY,
        "Degraded",
        "serving generation 1; reconciling is paused",
        "Synced",
        "takes the annotation crossplane.io/paused off",
        "paused, then edited: the same stale Ready",
    ),
    (
        (condition("Ready", "True", 2), condition("Synced", "True", 2)),
        {"generation": 3, "past": Past(was_ready=True, generation_since=LONG_AGO)},
        "Updating",
        "serving generation 2; the control plane has not looked at generation 3 for 3 min",
        "Synced",
        "looks whether the control plane and its composition function run",
        "function down, first two minutes: nothing changes",
    ),
    (
        (SYNCED, condition("Ready", "False", 2, "Creating")),
        {"generation": 3, "past": Past(generation_since=LONG_AGO)},
        "Provisioning",
        "not ready; the control plane has not looked at generation 3 for 3 min",
        "Synced",
        "composition function run",
        "function down before it was ever ready",
    ),
    (
        (),
        {"created_minutes_ago": 4},
        "Pending",
        "hasn't looked at the claim yet, for 4 min",
        None,
        "composition function run",
        "function, or core, down when the claim was made: no condition at all",
    ),
    (
        (),
        {"created_minutes_ago": 45},
        "Stuck",
        "hasn't looked at the claim yet, for 45 min",
        None,
        "composition function run",
        "and for longer than it may",
    ),
    (
        (condition("Ready", "True", 2), condition("Synced", "False", 3, "ReconcileError", TIMED_OUT)),
        {"generation": 3, **WAS_READY},
        "Degraded",
        "serving generation 2; update failing: ReconcileError: cannot compose resources",
        "Synced",
        "starts the composition function again",
        "function down, then DeadlineExceeded",
    ),
    (
        (READY, SYNCED, condition("Cheap", "False", None, "Dear", "twice the price")),
        WAS_READY,
        "Ready",
        "ready; Cheap is False: Dear: twice the price",
        "Ready",
        "",
        "a custom condition without observedGeneration: said, and not taken for the claim's own",
    ),
    (
        (condition("Ready", "True", 1), condition("Synced", "True", 2), condition("Placed", "False", None, "Full", "")),
        WAS_READY,
        "Updating",
        "serving generation 1; updating to 2; Placed is False: Full",
        "Ready",
        "",
        "a custom condition says nothing of which generation it is about: the standard ones decide",
    ),
    (
        (condition("Synced", "False", 2, "ReconcileError", "Unsynced resources: inference"),),
        {"composed": (POD,)},
        "Provisioning",
        "Unsynced resources: inference; LLMInferenceService chat-x is not ready: no GPU free; the cause is in",
        "Synced",
        "The Events below hold the cause",
        "an invalid composed resource: the cause is only in an Event",
    ),
    (
        (WAITING, V1_SYNCED),
        {"spec": V1_SPEC, "composed": (xr(condition("Synced", "False", 3, "ReconcileError", FATAL)),)},
        "Provisioning",
        "XModel chat-7xk: not ready yet; failing, and tried again: ReconcileError",
        "Synced",
        "function says why",
        "a v1 claim over a failing XR: the cause, from the XR",
    ),
    (
        (condition("Ready", "True", None), V1_SYNCED),
        {
            "spec": V1_SPEC,
            "composed": (xr(condition("Ready", "True", 2), condition("Synced", "False", 3, "ReconcileError", FATAL)),),
            **WAS_READY,
        },
        "Degraded",
        "XModel chat-7xk: serving generation 2; update failing: ReconcileError",
        "Synced",
        "function says why",
        "a v1 claim that says Ready and Synced, over an XR whose update fails",
    ),
    (
        (WAITING, V1_SYNCED),
        {"spec": V1_SPEC},
        "Provisioning",
        "not ready yet: Waiting; the cause is on XModel chat-7xk, the composite resource behind the claim",
        "Ready",
        "reads the conditions of the composite resource",
        "a v1 claim whose XR can't be read",
    ),
    (
        (WAITING, V1_SYNCED),
        {"spec": V1_SPEC, "composed": (xr(condition("Synced", "True", 3)),)},
        "Provisioning",
        "not ready yet: Waiting",
        "Ready",
        "",
        "a v1 claim over an XR that is fine so far",
    ),
    (
        (condition("Ready", "True", 3), condition("Synced", "True", 3)),
        {"generation": 4},
        "Provisioning",
        "ready as of generation 3; the control plane itself made it 4",
        "Synced",
        "",
        "a new XR: its generation goes 1, 3, 4 while the core writes spec.crossplane",
    ),
    (
        (condition("Ready", "True", 3), condition("Synced", "True", 3)),
        {"generation": 4, "past": Past(was_ready=True, spec_generation=3, served=3)},
        "Updating",
        "ready as of generation 3; the control plane itself made it 4",
        "Synced",
        "",
        "the same later: nobody changed the spec, and it isn't healthy for this generation yet",
    ),
    (
        (condition("Synced", "False", 2, "ReconcileError", MISSES),),
        {},
        "Provisioning",
        "missing required capabilities: composition",
        "Synced",
        "package says it can compose",
        "function misses the capability",
    ),
    (
        (condition("Synced", "False", 1, "ReconcileError", UNCOMPOSED),),
        {"generation": 1},
        "Provisioning",
        "cannot get Composition",
        "Synced",
        "installs the Composition that the claim names",
        "an XRD without a Composition",
    ),
    (
        (READY, SYNCED, condition("Responsive", "False", None, "WatchCircuitOpen", "Too many watch events from x")),
        WAS_READY,
        "Ready",
        "ready; Responsive is False: WatchCircuitOpen: Too many watch events",
        "Ready",
        "Nothing to do for five minutes",
        "Responsive=False: too many changes, wait",
    ),
    # What the composition function of this repository adds.
    (
        (READY, SYNCED, APPROVED_NOT),
        SERVED_2,
        "Degraded",
        "serving what was approved before; not changed: Approved is False: ApprovalExceeded: gpu.l4: 4 is above",
        "Approved",
        "Ask for a change in the portal",
        "an edit that no approval covers: what runs is kept",
    ),
    (
        (condition("Ready", "False", 3, "Creating"), condition("Synced", "True", 3), APPROVED_NOT),
        {"generation": 3, **SERVED_2},
        "Degraded",
        "serving generation 2; not changed: Approved is False",
        "Approved",
        "Ask for a change in the portal",
        "the same where the function says not ready",
    ),
    (
        (condition("Ready", "True", 2), condition("Synced", "True", 2), APPROVED_NOT),
        {"generation": 3, **WAS_READY},
        "Updating",
        "serving generation 2; updating to 3; Approved is False",
        "Synced",
        "Ask for a change",
        "Approved is of a generation before, and has no number of its own",
    ),
    (
        (condition("Ready", "False", 2), SYNCED, condition("Approved", "False", None, "ApprovalMissing", "unsigned")),
        {},
        "Provisioning",
        "refused, nothing was made: Approved is False: ApprovalMissing: unsigned",
        "Approved",
        "it signs what was approved",
        "a new claim that nobody approved",
    ),
    (
        (
            condition("Ready", "False", 2),
            SYNCED,
            condition("Approved", "False", None, "ApprovalKeyUnknown", "key k2", minutes_ago=45),
        ),
        {},
        "Stuck",
        "stuck: refused for 45 min, nothing was made: Approved is False: ApprovalKeyUnknown: key k2",
        "Approved",
        "public keys reach the control plane",
        "and for longer than it may",
    ),
    (
        (READY, SYNCED, condition("Approved", "False", None, "ApprovalMissing", "would be refused: unsigned")),
        SERVED_2,
        "Ready",
        "ready; Approved is False: ApprovalMissing: would be refused",
        "Ready",
        "it signs what was approved",
        "approvals are only warned of",
    ),
    (
        (READY, SYNCED, condition("Approved", "False", None, "ApprovalExpired", "ended 2 days ago")),
        SERVED_2,
        "Ready",
        "ready; Approved is False: ApprovalExpired: ended 2 days ago",
        "Ready",
        "signing_key resign",
        "an approval that ended under what runs as it was approved",
    ),
    (
        (
            condition("Ready", "True", 3),
            condition("Synced", "True", 3),
            condition("Approved", "False", None, "ApprovalExpired", "ended 2 days ago"),
        ),
        {"generation": 3, "past": Past(was_ready=True, spec_generation=3, served=2)},
        "Degraded",
        "serving generation 2; not changed: Approved is False: ApprovalExpired",
        "Approved",
        "signing_key resign",
        "and under what was changed since",
    ),
    (
        (READY, SYNCED, APPROVED_NOT, condition("Suspended", "True", None, "Suspended", "no replicas")),
        SUSPEND,
        "Suspended",
        "suspended: no replicas; Approved is False",
        "Suspended",
        "Ask for a change",
        "suspended by hand: stopping needs no approval",
    ),
    (
        (READY, SYNCED, APPROVED_NOT, condition("Suspended", "True", None, "Suspended", "no replicas")),
        WAS_READY,
        "Suspended",
        "suspended, as was approved; not changed: Approved is False",
        "Approved",
        "Ask for a change",
        "resumed by hand: that needs an approval, and it stays as it was",
    ),
    (
        (condition("Ready", "False", 2), SYNCED, condition("Suspended", "False", None, "Stopping", "1 pod left")),
        SUSPEND,
        "Updating",
        "not ready while suspending",
        "Ready",
        "goes on by itself",
        "on its way to suspended, seen for the first time",
    ),
    (
        (
            condition("Ready", "False", 3, "Creating"),
            condition("Synced", "True", 3),
            condition("Placed", "False", None, "HeldBack", "eu-1/l4 has no room for 4 x 1"),
            condition("WorkloadReady", "False", None, "HeldBack", "it runs as it was before the change"),
        ),
        {"generation": 3, **SERVED_2},
        "Degraded",
        "serving generation 2; not changed: Placed is False: HeldBack: eu-1/l4 has no room",
        "Placed",
        "a change that fits where it runs",
        "no room for the change: it runs as it was",
    ),
    (
        (condition("Ready", "False", 2, "Creating"), SYNCED, condition("Placed", "False", None, "NoCapacity", "full")),
        {},
        "Provisioning",
        "not ready yet: Creating; Placed is False: NoCapacity: full",
        "Ready",
        "Wait until a cluster has room",
        "no room anywhere",
    ),
    (
        (READY, SYNCED, condition("Suspended", "True", None, "Suspended", "no replicas; the weights are kept")),
        SUSPEND,
        "Suspended",
        "suspended: no replicas; the weights are kept",
        "Suspended",
        "",
        "suspended, by the function's word",
    ),
    ((READY, SYNCED), SUSPEND, "Suspended", "suspended: nothing runs", "Suspended", "", "suspended, by the spec"),
    (
        (READY, SYNCED, condition("Suspended", "False", None, "Suspending", "1 replica left")),
        SUSPEND,
        "Updating",
        "suspending: Suspending: 1 replica left",
        "Suspended",
        "goes on by itself",
        "on its way to suspended",
    ),
    (
        (condition("Ready", "True", 2), condition("Synced", "True", 2)),
        {"generation": 3, **SUSPEND},
        "Updating",
        "serving generation 2; suspending to 3",
        "Synced",
        "",
        "suspended, and not looked at yet",
    ),
    (
        (READY, SYNCED, condition("Suspended", "True", None, "Suspended")),
        WAS_READY,
        "Updating",
        "resuming: Suspended",
        "Suspended",
        "goes on by itself",
        "on its way back",
    ),
    (
        (condition("Ready", "False", 5, "Creating", "1 of 2"), condition("Synced", "True", 5)),
        {"generation": 5, "past": Past(True, True, LONG_AGO, 5, LONG_AGO, 4)},
        "Updating",
        "not ready while resuming to generation 5: Creating: 1 of 2",
        "Ready",
        "goes on by itself",
        "on its way back, and not ready yet",
    ),
    (
        (READY, SYNCED, condition("Suspended", "False", None, "Running")),
        WAS_READY,
        "Ready",
        "ready",
        "Ready",
        "",
        "Suspended is False where nobody asked for it: no trouble",
    ),
    # An update's way.
    (
        (condition("Ready", "False", 5, "Creating", "1 of 2"), condition("Synced", "True", 5)),
        {"generation": 5, "past": TO_5},
        "Updating",
        "not ready while updating to generation 5: Creating: 1 of 2",
        "Ready",
        "goes on by itself",
        "not ready for the new spec, for a short time",
    ),
    (
        (condition("Ready", "False", 5, "Creating", "1 of 2"), condition("Synced", "True", 5)),
        {"generation": 5, "past": Past(True, False, LONG_AGO, 5, NOW - dt.timedelta(minutes=45), 4)},
        "Degraded",
        "not ready after 45 min of updating to generation 5: Creating: 1 of 2",
        "Ready",
        "Show this message to the platform team",
        "and for too long",
    ),
    (
        (condition("Ready", "False", 5, "Unavailable", "pod died"), condition("Synced", "True", 5)),
        {"generation": 5, "past": Past(True, False, LONG_AGO, 5, LONG_AGO, 5)},
        "Degraded",
        "no longer ready: Unavailable: pod died",
        "Ready",
        "Show this message to the platform team",
        "the same spec was healthy before",
    ),
    # A deletion that doesn't end (case 7).
    (
        (READY, SYNCED),
        {
            "deleted_minutes_ago": 45,
            "finalizers": ("foregroundDeletion",),
            "composed": (
                on_its_way_out("chat-llm", 44, condition("Synced", "False", 1, "ReconcileError", "cannot reach eu-1")),
                composed("chat-ns"),
            ),
        },
        "Stuck",
        "stuck: deleting for 45 min; waiting for finalizer foregroundDeletion because Kubernetes removes what belongs "
        "to it first; still there: Object chat-llm, Object chat-ns; Object chat-llm (asked to go 44 min ago) keeps "
        "finalizer finalizer.managedresource.crossplane.io because its provider removes what it stands for, in the "
        "workload cluster or at the cloud, first, and says: ReconcileError: cannot reach eu-1",
        "deletionTimestamp",
        "the finalizer of Object chat-llm",
        "the objects that hold it, by what, and what they say",
    ),
    (
        (READY, SYNCED),
        {"deleted_minutes_ago": 1, "past": Past(was_ready=True, deletion_is_ours=False)},
        "Deleting",
        "deleting for 60 s, asked by somebody other than the portal",
        "deletionTimestamp",
        "ask who deleted the claim",
        "kubectl delete",
    ),
]


@pytest.mark.parametrize(
    ("conditions", "more", "phase", "message", "decided_by", "todo", "reason"), TRAPS, ids=[row[-1] for row in TRAPS]
)
def test_a_trap_of_the_core_is_named_with_what_to_do(
    conditions: object,
    more: dict[str, Any],
    phase: str,
    message: str,
    decided_by: str | None,
    todo: str,
    reason: str,
) -> None:
    found = look(conditions, more)
    assert (found.phase, found.condition) == (phase, decided_by), f"{reason}: {found.message}"
    assert message in found.message, reason
    assert todo in found.advice, reason
    if phase not in ("Ready", "Suspended", "Updating", "Provisioning"):
        assert found.advice, f"{reason}: nobody is told what to do"


def test_a_lag_of_seconds_is_an_update_and_no_silence() -> None:
    """The core looks at a change within a second, as a rule; only after two minutes something is down."""
    past = Past(was_ready=True, generation_since=NOW - dt.timedelta(seconds=119))
    found = assess(claim((READY, SYNCED), generation=3), NOW, STUCK_AFTER, past)
    assert (found.phase, found.message) == ("Updating", "serving generation 2; updating to 3")


@pytest.mark.parametrize("said", ["", "some words of a controller that nobody knows"])
def test_trouble_of_no_known_kind_goes_to_the_platform_team(said: str) -> None:
    found = assess(claim((READY, condition("Synced", "False", 2, "ReconcileError", said))), NOW, STUCK_AFTER)
    assert found.advice == advice.UNKNOWN
