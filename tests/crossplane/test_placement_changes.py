"""Placement while fleet and claims change, and everything that is shown is old: three things hold all the same.

Nothing that is composed moves, unless its own spec forbids where it is; no slot is given twice; each refusal has its
reason for every cluster. Capacity that is taken away under what runs is the one way to be overcommitted.
"""

from __future__ import annotations

from typing import Any

from composition_function.fleet import read_claim
from composition_function.modeldeployment import MAIN
from composition_function.objects import granted, slot_of
from composition_function.slots import Slot, Step
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crossplane.busy_plane import Call, Manifest, Plane, capacity
from tests.crossplane.samples import MODEL, example, fleet

CLASSES = [item for item in fleet() if item["kind"] == "AcceleratorClass"]
REGIONS = ["eu-west", "us-east"]
CHANGES = 100  # of the fleet, in all examples together many more


def cluster(number: int, capacity: int) -> Manifest:
    """An InferenceCluster with one pool of l4, counted."""
    return {
        "kind": "InferenceCluster",
        "metadata": {"name": f"cluster-{number}"},
        "spec": {
            "region": REGIONS[number % 2],
            "dataClassifications": ["internal"],
            "providerConfigName": f"c{number}",
        },
        "status": {"reachable": True, "pools": pools(capacity)},
    }


def pools(capacity: int) -> list[Manifest]:
    """What a status says of `capacity` accelerators, two on each node."""
    nodes = [{"size": 2, "count": capacity // 2}, {"size": 1, "count": capacity % 2}]
    return [{"name": "l4", "resource": "l4", "capacity": capacity, "used": 0, "free": 0, "nodes": nodes}]


def model(number: int, amount: int) -> Manifest:
    """A claim for some l4; those that come later may be the older ones."""
    claim = example(MODEL)
    claim["metadata"] |= {"uid": f"uid-{number}", "name": f"chat-{number}"}
    claim["spec"] |= {"regions": [], "dataClassification": "internal", **SIZES[amount]}
    return claim


def size(count: int, replicas: int) -> dict[str, Any]:
    """So many replicas of so many l4."""
    return {"accelerator": {"class": "l4", "count": count}, "replicas": {"min": 1, "max": replicas}}


SIZES = [size(1, 1), size(1, 2), size(1, 1), size(2, 1), size(1, 3)]

# What happens next: (what, to which claim or cluster, how much).
EVENTS = st.lists(st.tuples(st.integers(0, 29), st.integers(0, 3), st.integers(0, 4)), min_size=40, max_size=160)
LAGS = (1, 2, 4, 10, 10_000)  # writes that the cache takes in at a time


def happen(plane: Plane, event: tuple[int, int, int]) -> Call | None:
    """One event; the call whose answer took effect, if that was it."""
    what, whom, amount = event
    plane.now += 0.5
    uid = f"uid-{whom}"
    if what >= 6:
        return progress(plane, what, uid, amount)
    if what >= 3:
        change_fleet(plane, what, whom % len(plane.fleet), amount)
    elif uid in plane.claims:
        change_claim(plane, what, uid, amount)
    return None


def progress(plane: Plane, what: int, uid: str, amount: int) -> Call | None:
    """The control plane and its providers get on."""
    if uid not in plane.claims:
        plane.create(model(int(uid[-1]), amount))
    if what < 13:
        plane.catch_up(LAGS[amount])
    elif what < 15:
        plane.read(uid)
    elif what < 18:
        return plane.write(uid)
    elif what < 21:
        plane.report(uid)
        plane.let_go(uid)
    elif what < 27 or uid in plane.under_way:
        plane.read(uid)
        return plane.write(uid)
    else:
        plane.read(uid)  # and others come in between
    return None


def change_fleet(plane: Plane, what: int, number: int, amount: int) -> None:
    """Nodes come, are lost or cordoned; a cluster is cordoned, or stops answering and comes back."""
    if what == 3:
        plane.alter_cluster(number, {}, {"pools": pools(amount * 2)})
    elif what == 4:
        plane.alter_cluster(number, {"cordoned": amount > 2}, {})
    else:
        plane.alter_cluster(number, {}, {"reachable": amount < 3})


def change_claim(plane: Plane, what: int, uid: str, amount: int) -> None:
    """People ask for something else."""
    if what == 0:
        plane.change(uid, **SIZES[amount])
    elif what == 1:
        plane.change(uid, suspend=amount > 1)
    elif amount < 3:
        plane.change(uid, regions=REGIONS[: amount % 3])
    else:
        plane.delete(uid)


def check_answer(plane: Plane, uid: str, before: dict[Slot, int], call: Call) -> None:
    """What an answer made of the fleet."""
    after = plane.running.get(uid, {})
    for slot, units in after.items():
        if units > before.get(slot, 0):
            # What was there when the call began may have been taken away since, and what was not may be there now.
            room = max(capacity(fleet, slot) for fleet in plane.fleets[call.fleet :])
            assert plane.taken(slot) <= room, f"{slot} of {room} is given to {plane.running}"
    placement = call.outcome.placement
    if placement is not None and placement.step is Step.REFUSED:
        told = {reason.cluster for reason in placement.reasons if reason.message}
        assert told == {item["metadata"]["name"] for item in plane.fleet}, "a reason for every cluster"
    if placement is not None and placement.step is not Step.BOUND:
        assert MAIN not in plane.objects.get(uid, {}), f"{uid} is composed, and nobody knows"


def may_stay(plane: Plane, call: Call, slot: Slot) -> bool:
    """Whether a claim's own spec lets it be where it is."""
    (home,) = [item for item in plane.fleet if item["metadata"]["name"] == slot.cluster]
    regions = call.claim["spec"]["regions"]
    return not regions or home["spec"]["region"] in regions


@settings(max_examples=CHANGES, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=2), EVENTS)
def test_nothing_moves_is_doubled_or_refused_without_reason(
    capacities: list[int], events: list[tuple[int, int, int]]
) -> None:
    plane = Plane([cluster(number, units) for number, units in enumerate(capacities)], CLASSES)
    for event in events:
        uid = f"uid-{event[1]}"
        main = plane.objects.get(uid, {}).get(MAIN)
        home, before = slot_of(main), dict(plane.running.get(uid, {}))
        call = happen(plane, event)
        if call is None:
            continue
        check_answer(plane, uid, before, call)
        if home not in (None, slot_of(plane.objects.get(uid, {}).get(MAIN))):
            # What was told to stop has given its place back.
            assert not may_stay(plane, call, home) or granted(main) == 0, f"{uid} left {home}"


@settings(max_examples=CHANGES, deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=2), EVENTS)
def test_once_nothing_changes_any_more_all_come_to_rest(
    capacities: list[int], events: list[tuple[int, int, int]]
) -> None:
    plane = Plane([cluster(number, units) for number, units in enumerate(capacities)], CLASSES)
    for event in events:
        happen(plane, event)
    for _ in range(60):
        before = (plane.claims, dict(plane.running))
        for uid in sorted(plane.claims):
            plane.now += 40
            plane.catch_up(10_000)
            plane.write(uid)
            plane.catch_up(10_000)
            plane.read(uid)
            plane.write(uid)
            plane.report(uid)
            plane.let_go(uid)
        if before == (plane.claims, plane.running):
            break
    else:
        raise AssertionError("it never comes to rest")
    for uid, claim in plane.claims.items():
        placement = plane.answers.get(uid)
        if claim["metadata"].get("deletionTimestamp") or claim["spec"].get("suspend") or placement is None:
            continue
        assert placement.step in (Step.BOUND, Step.REFUSED), f"{uid} {placement.step}"
        if placement.step is Step.BOUND and placement.held_back is None:
            assert slot_of(plane.objects[uid][MAIN]) == read_claim(claim).held == placement.slot
