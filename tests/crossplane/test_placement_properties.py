"""Placement under all interleavings: many claims, each placed by its own calls with its own, often old, view.

The model is a control plane: a call reads a snapshot of all statuses, and its answer is written some time later, after
any number of other reads and writes. Claims appear and go at any time, and not in the order of their creation times.
Only two things are taken for granted, as a control plane gives them: calls for one claim follow each other, and a
claim's next call sees what its last one wrote.
"""

from dataclasses import dataclass, field, replace
from random import Random

import pytest
from composition_function.placement import place
from composition_function.slots import Claim, Cluster, Code, Need, Placement, Pool, Slot, Step
from hypothesis import given, settings
from hypothesis import strategies as st

REGIONS = ["eu-west", "us-east"]
CLASSES = ["public", "internal"]
RESOURCES = ["l4", "h100"]
NODES = st.sampled_from([None, (), ((1, 6),), ((2, 3),), ((4, 1), (2, 1))])
REFUSALS = {
    Code.NO_SUCH_POOL,
    Code.NODE_TOO_SMALL,
    Code.REGION_EXCLUDED,
    Code.CLASSIFICATION_EXCLUDED,
    Code.NO_BACKUP_STORE,
    Code.CORDONED,
    Code.UNREACHABLE,
    Code.NO_FREE_CAPACITY,
    Code.NODES_UNKNOWN,
}


@st.composite
def fleets(draw: st.DrawFn) -> list[Cluster]:
    """Up to three clusters, small enough to be fought over."""
    clusters = []
    for number in range(draw(st.integers(1, 3))):
        pools = tuple(
            Pool(f"{resource}-pool", resource, draw(st.integers(0, 6)), draw(NODES))
            for resource in RESOURCES
            if draw(st.booleans())
        )
        cleared = frozenset(draw(st.lists(st.sampled_from(CLASSES), min_size=1)))
        flags = {name: draw(st.integers(0, 5)) == 0 for name in ("cordoned", "unreachable")}
        clusters.append(
            Cluster(
                name=f"cluster-{number}",
                region=draw(st.sampled_from(REGIONS)),
                classifications=cleared,
                pools=pools,
                cordoned=flags["cordoned"],
                reachable=not flags["unreachable"],
            )
        )
    return clusters


@st.composite
def contenders(draw: st.DrawFn) -> list[Claim]:
    """Claims without a slot; several may be created in the same second."""
    claims = []
    for number in range(draw(st.integers(1, 6))):
        piece, pieces = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        need = Need(
            resource=draw(st.sampled_from(RESOURCES)),
            units=piece * pieces,
            piece=piece,
            pieces=pieces,
            regions=frozenset(draw(st.lists(st.sampled_from(REGIONS), max_size=1))),
            classification=draw(st.sampled_from(CLASSES)),
        )
        created = f"2026-12-01T12:00:0{draw(st.integers(0, 2))}Z"
        claims.append(Claim(f"uid-{number}", f"team/claim-{number}", created, need))
    return draw(st.permutations(claims))


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Cluster], list[Claim]]:
    """One or two pools of one kind, and more claims than fit, all made in one second."""
    capacity = draw(st.integers(1, 4))
    everywhere = frozenset(CLASSES)
    fleet = [
        Cluster(f"cluster-{number}", "eu-west", everywhere, (Pool("l4", "l4", capacity),))
        for number in range(draw(st.integers(1, 2)))
    ]
    units = draw(st.lists(st.integers(1, capacity), min_size=2, max_size=5))
    claims = [
        Claim(f"uid-{number}", f"team/{number}", "2026-12-01T12:00:00Z", Need("l4", size, 1, size))
        for number, size in enumerate(units)
    ]
    return fleet, claims


@dataclass
class Plane:
    """Statuses as written so far, and the composed workloads by slot."""

    fleet: list[Cluster]
    unborn: dict[str, Claim]
    claims: dict[str, Claim] = field(default_factory=dict)
    composed: dict[str, Slot] = field(default_factory=dict)
    under_way: dict[str, Placement] = field(default_factory=dict)

    def read(self, uid: str) -> None:
        """A call begins: it sees everything as written now."""
        me = self.claims[uid]
        me = replace(me, bound=self.composed.get(uid) == me.held and me.held is not None)
        granted = me.need.units if me.bound else None
        self.under_way[uid] = place(me, list(self.claims.values()), self.fleet, granted)

    def write(self, uid: str) -> None:
        """The call's answer takes effect: first what it composes, then its status, as Crossplane does it."""
        placement = self.under_way.pop(uid)
        bound = placement.step is Step.BOUND
        if bound and placement.slot is not None:
            self.composed[uid] = placement.slot
        else:
            self.composed.pop(uid, None)
        self.claims[uid] = replace(self.claims[uid], held=placement.slot, bound=bound)

    def turn(self, uid: str) -> None:
        """Create the claim, begin a call for it, or finish the one that is under way."""
        if uid in self.unborn:
            self.claims[uid] = self.unborn.pop(uid)
        elif uid in self.under_way:
            self.write(uid)
        elif uid in self.claims and not self.claims[uid].deleting:
            self.read(uid)

    def delete(self, uid: str) -> None:
        """Mark it, or, if it is marked and no call is under way, let it go with all that it composed."""
        if uid not in self.claims or uid in self.under_way:
            return
        if not self.claims[uid].deleting:
            self.claims[uid] = replace(self.claims[uid], deleting=True)
        else:
            del self.claims[uid]
            self.composed.pop(uid, None)

    def settle(self) -> None:
        """Whole calls, one after the other, until nothing changes any more."""
        for uid in list(self.under_way):
            self.write(uid)
        for _ in range(40):
            before = (dict(self.claims), dict(self.composed))
            for uid in sorted(uid for uid, claim in self.claims.items() if not claim.deleting):
                self.read(uid)
                self.write(uid)
            if (self.claims, self.composed) == before:
                return
        raise AssertionError("placement never settles")

    def check(self) -> None:
        """What is composed fits, in total and by the claims' own terms."""
        for cluster in self.fleet:
            for pool in cluster.pools:
                slot = Slot(cluster.name, pool.name)
                here = [self.claims[uid].need for uid, taken in self.composed.items() if taken == slot]
                assert sum(need.units for need in here) <= pool.capacity, f"{slot} is promised twice"
                assert all(need.resource == pool.resource for need in here)
                assert all(not need.regions or cluster.region in need.regions for need in here)
                assert all(need.classification in cluster.classifications for need in here)
                assert not here or (not cluster.cordoned and cluster.reachable)


# One in eight events deletes; the others let a claim take its turn.
EVENTS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 7).map(lambda roll: roll == 0)), max_size=80)


@settings(max_examples=250, deadline=None)
@given(st.one_of(crowds(), st.tuples(fleets(), contenders())), EVENTS)
def test_a_slot_is_never_composed_twice_whatever_the_interleaving(
    crowd: tuple[list[Cluster], list[Claim]], events: list[tuple[int, bool]]
) -> None:
    fleet, claims = crowd
    plane = Plane(fleet, {claim.uid: claim for claim in claims})
    where: dict[str, Slot] = {}
    for number, deletes in events:
        uid = claims[number % len(claims)].uid
        plane.delete(uid) if deletes else plane.turn(uid)
        plane.check()
        gone = where.keys() - plane.claims.keys()
        assert where.keys() - gone <= plane.composed.keys(), "what ran was taken away"
        assert all(plane.composed[uid] == where[uid] for uid in where.keys() - gone), "what runs has moved"
        where = dict(plane.composed)
    plane.settle()
    plane.check()
    assert all(plane.composed[uid] == slot for uid, slot in where.items())


@settings(max_examples=100, deadline=None)
@given(st.one_of(crowds(), st.tuples(fleets(), contenders())), EVENTS)
def test_when_all_is_settled_nobody_waits_and_whoever_is_out_did_not_fit(
    crowd: tuple[list[Cluster], list[Claim]], events: list[tuple[int, bool]]
) -> None:
    fleet, claims = crowd
    plane = Plane(fleet, {claim.uid: claim for claim in claims})
    for number, _ in events:
        plane.turn(claims[number % len(claims)].uid)
    plane.settle()
    for uid, claim in plane.claims.items():
        plane.read(uid)
        placement = plane.under_way.pop(uid)
        assert placement.step in (Step.BOUND, Step.REFUSED)
        if placement.step is Step.REFUSED:
            assert claim.held is None
            by_cluster: dict[str, set[Code]] = {cluster.name: set() for cluster in fleet}
            for reason in placement.reasons:
                by_cluster[reason.cluster].add(reason.code)
            assert all(codes and codes <= REFUSALS for codes in by_cluster.values()), by_cluster


@settings(max_examples=100, deadline=None)
@given(fleets(), contenders(), st.randoms(use_true_random=False))
def test_a_view_in_another_order_gives_the_same_answer(
    fleet: list[Cluster], claims: list[Claim], random: Random
) -> None:
    shuffled_fleet, shuffled_claims = fleet[:], claims[:]
    random.shuffle(shuffled_fleet)
    random.shuffle(shuffled_claims)
    for me in claims:
        assert place(me, claims, fleet) == place(me, shuffled_claims, shuffled_fleet)


@settings(max_examples=100, deadline=None)
@given(fleets(), contenders())
def test_of_claims_that_see_the_same_no_two_reserve_one_slot(fleet: list[Cluster], claims: list[Claim]) -> None:
    taken: dict[Slot, int] = {}
    for me in claims:
        slot = place(me, claims, fleet).slot
        if slot is not None:
            taken[slot] = taken.get(slot, 0) + me.need.units
    capacity = {Slot(cluster.name, pool.name): pool.capacity for cluster in fleet for pool in cluster.pools}
    assert all(units <= capacity[slot] for slot, units in taken.items())


def _reachable(start: Plane, uids: list[str]) -> list[Plane]:
    """Every state that any interleaving of turns and deletions can lead to."""
    seen = {repr(start): start}
    frontier = [start]
    while frontier:
        state = frontier.pop()
        for uid in uids:
            for event in (Plane.turn, Plane.delete):
                after = Plane(
                    state.fleet, dict(state.unborn), dict(state.claims), dict(state.composed), dict(state.under_way)
                )
                event(after, uid)
                after.claims, after.composed = dict(sorted(after.claims.items())), dict(sorted(after.composed.items()))
                after.under_way = dict(sorted(after.under_way.items()))
                if repr(after) not in seen:
                    seen[repr(after)] = after
                    frontier.append(after)
    return list(seen.values())


@pytest.mark.parametrize(
    ("capacities", "units", "reason"),
    [
        ([1], [1, 1], "two for one slot"),
        ([2], [1, 2], "a small and a large one"),
        ([2], [2, 1], "the same, by age"),
        ([1, 1], [1, 1], "room for both, in two places"),
        ([3], [2, 2], "neither fits beside the other"),
        ([2], [1, 1, 1], "three for two slots"),
    ],
)
def test_no_interleaving_at_all_composes_a_slot_twice_or_gets_stuck(
    capacities: list[int], units: list[int], reason: str
) -> None:
    """Not a sample: all of them. From each state that can be reached, running on without disturbance comes to rest."""
    fleet = [
        Cluster(f"cluster-{number}", "eu-west", frozenset({"internal"}), (Pool("l4", "l4", capacity),))
        for number, capacity in enumerate(capacities)
    ]
    claims = {
        f"uid-{n}": Claim(f"uid-{n}", f"team/{n}", "2026-12-01T12:00:00Z", Need("l4", size, 1, size))
        for n, size in enumerate(units)
    }
    states = _reachable(Plane(fleet, claims), list(claims))
    assert len(states) > 50, "the model explores nothing"
    for state in states:
        state.check()
        state.settle()
        state.check()
        waiting = [c.uid for c in state.claims.values() if c.held and not c.deleting and c.uid not in state.composed]
        assert waiting == [], "waits for ever"
