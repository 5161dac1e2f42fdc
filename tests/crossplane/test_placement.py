"""Placement, case by case: who gets which slot, and the reason given for every cluster."""

from typing import Any

import pytest
from composition_function.placement import place
from composition_function.slots import Claim, Cluster, Code, Need, Placement, Pool, Slot, Step


def cluster(name: str, capacity: int = 4, **changes: Any) -> Cluster:
    """A cluster with one pool of that many l4, cleared for internal data."""
    pools = (Pool("l4", "l4", capacity, changes.pop("nodes", None)),)
    fields = {"region": "eu-west", "classifications": frozenset({"internal"}), "pools": pools, **changes}
    return Cluster(name, **fields)


def claim(uid: str, units: int = 1, held: str | None = None, **changes: Any) -> Claim:
    """A claim for that many l4, one on each node; its age is its uid."""
    need = Need("l4", units, 1, units, **changes.pop("need", {}))
    slot = Slot(held, "l4") if held else None
    fields = {"created": "2026-12-01T12:00:00Z", **changes}
    return Claim(uid=uid, name=f"team/{uid}", need=need, held=slot, **fields)


def codes(placement: Placement) -> dict[str, list[Code]]:
    """The reasons' codes by cluster."""
    found: dict[str, list[Code]] = {}
    for reason in placement.reasons:
        assert reason.message
        found.setdefault(reason.cluster, []).append(reason.code)
    return found


@pytest.mark.parametrize(
    ("changes", "need", "code", "reason"),
    [
        ({"cordoned": True}, {}, Code.CORDONED, "a cordoned cluster takes nothing new"),
        ({"reachable": False}, {}, Code.UNREACHABLE, "nobody knows what is there"),
        ({}, {"regions": frozenset({"us-east"})}, Code.REGION_EXCLUDED, "the claim may not go there"),
        ({}, {"classification": "restricted"}, Code.CLASSIFICATION_EXCLUDED, "not cleared, and no order is implied"),
        ({}, {"classification": "public"}, Code.CLASSIFICATION_EXCLUDED, "cleared means listed, also downwards"),
        ({}, {"backups": True}, Code.NO_BACKUP_STORE, "backups were asked for"),
        ({"pools": ()}, {}, Code.NO_SUCH_POOL, "it has none of the class"),
        (
            {"nodes": ((2, 2),), "capacity": 4},
            {"piece": 3, "units": 3},
            Code.NODE_TOO_SMALL,
            "three on one node of two",
        ),
        (
            {"nodes": ((3, 2),), "capacity": 6},
            {"piece": 2, "pieces": 3, "units": 6},
            Code.NODE_TOO_SMALL,
            "six are there, but only two nodes have two to spare",
        ),
        ({"capacity": 0}, {}, Code.NO_FREE_CAPACITY, "a pool without capacity"),
        ({"capacity": 0, "nodes": ()}, {}, Code.NODE_TOO_SMALL, "a pool without nodes that count"),
        ({"pools": (), "counted": False}, {}, Code.NODES_UNKNOWN, "nobody has seen its nodes yet"),
    ],
)
def test_what_keeps_a_claim_out_is_named(
    changes: dict[str, Any], need: dict[str, Any], code: Code, reason: str
) -> None:
    fields = {"resource": "l4", "units": 1, "piece": 1, "pieces": 1, **need}
    me = Claim("me", "team/me", "2026", Need(**fields))
    placement = place(me, [], [cluster("a", **changes)])
    assert (placement.step, placement.slot) == (Step.REFUSED, None), reason
    assert codes(placement) == {"a": [code]}, reason


def test_all_that_keeps_a_claim_out_is_named_at_once() -> None:
    need = {"regions": frozenset({"us-east"}), "classification": "restricted", "backups": True}
    placement = place(claim("me", need=need), [], [cluster("a", cordoned=True, reachable=False)])
    assert codes(placement) == {
        "a": [
            Code.REGION_EXCLUDED,
            Code.CLASSIFICATION_EXCLUDED,
            Code.NO_BACKUP_STORE,
            Code.CORDONED,
            Code.UNREACHABLE,
        ]
    }


@pytest.mark.parametrize(
    ("clusters", "others", "expected", "reason"),
    [
        ([cluster("a"), cluster("b")], [], "a", "equally empty: by name"),
        ([cluster("a"), cluster("b")], [claim("x", 1, "a")], "b", "the emptier"),
        ([cluster("a", 8), cluster("b", 4)], [claim("x", 4, "a"), claim("y", 1, "b")], "b", "3/4 beats 4/8"),
        ([cluster("a", 2), cluster("b", 8)], [], "b", "equal share: the one with more"),
        ([cluster("a", 8), cluster("b", 4)], [claim("x", 7, "a", deleting=True)], "b", "what is being deleted holds"),
        ([cluster("a", 8), cluster("b", 4)], [claim("x", 2, "gone")], "a", "held in a cluster that is gone: no matter"),
    ],
)
def test_it_spreads_over_the_emptiest(clusters: list[Cluster], others: list[Claim], expected: str, reason: str) -> None:
    placement = place(claim("me"), others, clusters)
    assert (placement.step, placement.slot) == (Step.RESERVED, Slot(expected, "l4")), reason
    assert codes(placement)[expected] == [Code.CHOSEN]
    assert all(code == [Code.NOT_EMPTIEST] for name, code in codes(placement).items() if name != expected)


@pytest.mark.parametrize(
    ("me", "others", "expected", "reason"),
    [
        (claim("2"), [claim("1", 4)], Step.REFUSED, "an older one chooses first and takes all"),
        (claim("1"), [claim("2", 4)], Step.RESERVED, "a later one does not"),
        (claim("2", 4), [claim("1", 5)], Step.RESERVED, "an older one that fits nowhere blocks nobody"),
        (claim("2"), [claim("1", 4, deleting=True)], Step.RESERVED, "a deleted one without a slot wants none"),
        (
            claim("1"),
            [claim("0", 4, created="2026-12-01T12:00:01Z")],
            Step.RESERVED,
            "age counts before uid",
        ),
    ],
)
def test_older_contenders_choose_first(me: Claim, others: list[Claim], expected: Step, reason: str) -> None:
    assert place(me, others, [cluster("a")]).step == expected, reason


@pytest.mark.parametrize(
    ("me", "others", "expected", "slot", "reason"),
    [
        (claim("1", 4, "a"), [], Step.BOUND, "a", "alone: bind"),
        (claim("1", 2, "a"), [claim("2", 2, "a")], Step.BOUND, "a", "both fit: bind"),
        (claim("1", 4, "a"), [claim("2", 4, "a")], Step.WAITING, "a", "the later one has to give up first"),
        (claim("2", 4, "a"), [claim("1", 4, "a")], Step.REFUSED, None, "the later one yields, and nothing else fits"),
        (claim("1", 4, "a"), [claim("2", 4, "a", bound=True)], Step.REFUSED, None, "a bound one outranks an older one"),
        (claim("1", 4, "a"), [claim("2", 4, "a", deleting=True)], Step.REFUSED, None, "what is being deleted holds"),
        (claim("3", 1, "a"), [claim("1", 3, "a"), claim("2", 2, "a")], Step.WAITING, "a", "fits once 2 has yielded"),
        (claim("2", 2, "a"), [claim("1", 3, "a"), claim("3", 1, "a")], Step.REFUSED, None, "does not fit beside 1"),
        (claim("1", 4, "gone"), [], Step.RESERVED, "a", "its reservation is in a cluster that is gone"),
    ],
)
def test_a_reservation_binds_waits_or_yields(
    me: Claim, others: list[Claim], expected: Step, slot: str | None, reason: str
) -> None:
    placement = place(me, others, [cluster("a")])
    assert (placement.step, placement.slot) == (expected, Slot(slot, "l4") if slot else None), reason


def test_who_yields_takes_another_slot_if_there_is_one() -> None:
    placement = place(claim("2", 4, "a"), [claim("1", 4, "a")], [cluster("a"), cluster("b")])
    assert (placement.step, placement.slot) == (Step.RESERVED, Slot("b", "l4"))


def test_a_reservation_in_a_cluster_that_was_cordoned_since_goes_elsewhere() -> None:
    placement = place(claim("1", 4, "a"), [], [cluster("a", cordoned=True), cluster("b")])
    assert (placement.step, placement.slot) == (Step.RESERVED, Slot("b", "l4"))


BUSY = [claim("x", 2, "a", bound=True)]


@pytest.mark.parametrize(
    ("home", "units", "granted", "others", "held_back", "reason"),
    [
        (cluster("a", cordoned=True), 1, 1, [], False, "cordoned: stays"),
        (cluster("a", reachable=False), 1, 1, [], False, "unreachable: stays"),
        (cluster("a", 1), 3, 3, [], False, "capacity was taken away: stays"),
        (cluster("a"), 2, 1, BUSY, False, "there is room to grow"),
        (cluster("a"), 3, 1, BUSY, True, "there is no room to grow: stays as it was"),
        (cluster("a"), 1, 3, BUSY, False, "shrinking always goes"),
        (cluster("a"), 3, None, BUSY, True, "how much it has is not known: nothing is assumed"),
    ],
)
def test_what_runs_stays(
    home: Cluster, units: int, granted: int | None, others: list[Claim], held_back: bool, reason: str
) -> None:
    placement = place(claim("me", units, "a", bound=True), others, [home, cluster("b", 100)], granted)
    assert (placement.step, placement.slot) == (Step.BOUND, Slot("a", "l4")), reason
    assert (placement.held_back is not None) == held_back, reason


def test_staying_names_every_cluster_too() -> None:
    placement = place(claim("me", 1, "a", bound=True), [], [cluster("a"), cluster("b"), cluster("c", cordoned=True)], 1)
    assert codes(placement) == {"a": [Code.KEPT], "b": [Code.NOT_CONSIDERED], "c": [Code.CORDONED]}


@pytest.mark.parametrize(
    ("movable", "free_elsewhere", "expected", "reason"),
    [
        (True, 4, Slot("b", "l4"), "a stateless one follows its spec"),
        (True, 0, Slot("a", "l4"), "nowhere to go: stays as it was"),
        (False, 4, Slot("a", "l4"), "data does not move by itself"),
    ],
)
def test_a_spec_that_excludes_where_it_runs(movable: bool, free_elsewhere: int, expected: Slot, reason: str) -> None:
    me = claim("me", 1, "a", bound=True, movable=movable, need={"regions": frozenset({"us-east"})})
    placement = place(me, [], [cluster("a"), cluster("b", free_elsewhere, region="us-east")], 1)
    assert placement.slot == expected, reason
    assert (placement.held_back is not None) == (expected.cluster == "a"), reason


def test_capacity_of_other_kinds_does_not_count() -> None:
    memory = Claim("x", "team/x", "2026", Need("GiB of vector memory", 100, 100, 1), Slot("a", "vector-storage"))
    home = cluster("a", pools=(Pool("l4", "l4", 1), Pool("vector-storage", "GiB of vector memory", 100)))
    assert place(claim("me"), [memory], [home]).step == Step.RESERVED


def test_its_own_entry_among_the_others_is_not_somebody_else() -> None:
    me = claim("me", 4, "a")
    assert place(me, [me], [cluster("a")]).step == Step.BOUND


def test_six_at_once_for_two_slots_of_two() -> None:
    """All see the same: none has a slot. Exactly the two oldest reserve, each its own slot."""
    claims = [claim(str(number), 2) for number in range(6)]
    fleet = [cluster("a", 2), cluster("b", 2)]
    slots = [place(me, claims, fleet).slot for me in claims]
    assert slots == [Slot("a", "l4"), Slot("b", "l4"), None, None, None, None]
