"""Which slot of the fleet a claim gets, and why: filter, keep, spread, explain.

Pure: no clock, no I/O, no Crossplane. It is in charge of capacity never being promised twice; not of reading objects
(``fleet``) and not of what is composed in a slot.

Every claim is placed by its own call, with its own, possibly old, view of all others, and several calls run at once.
So a claim takes a slot in two steps, and what makes it safe is that each step is visible to all others before the next:

1. *reserve*: the slot is written into the claim's status; nothing is composed;
2. *bind*: a later call sees its own reservation, and composes only if everything held in that pool, by claims before
   and after it, fits. When it doesn't, an order that all agree on decides (bound first, then the oldest, then the
   smallest uid): who fits in that order waits until the others have gone, who doesn't yields and starts again.

Of two claims that reserved the same last slot, at least one sees the other's reservation when it wants to bind, and
then it either waits or yields. A claim without a slot lets all older ones without a slot choose first, so it never
reserves what an older one would take.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from composition_function.slots import (
    Claim,
    Cluster,
    Code,
    Need,
    Placement,
    Pool,
    Reason,
    Room,
    Slot,
    Step,
    room_left,
)


def place(me: Claim, others: Iterable[Claim], clusters: Sequence[Cluster], granted: int | None = None) -> Placement:
    """Place one claim among all others.

    ``granted`` is how many units its composed workload has now (None if it has none): a bound claim that wants more
    than that and doesn't fit keeps its slot with ``held_back`` set; compose it as it was. The same goes for a bound
    claim whose slot its spec now excludes, as long as no other slot fits. Nothing that is bound moves for any other
    reason: not when its cluster is cordoned, can't be reached, or has lost capacity.
    """
    others = [other for other in others if other.uid != me.uid]
    fleet = {cluster.name: cluster for cluster in clusters}
    if me.held is not None and me.bound:
        return _keep(me, me.held, others, fleet, granted or 0)
    if me.held is not None and not _exclusions(me.need, fleet.get(me.held.cluster), me.held.pool):
        rank = _rank(me, me.held, others, fleet)
        if rank is not None:
            return _held(rank, me.held, fleet, me.need)
    return _choose(me, others, fleet)


def _keep(me: Claim, slot: Slot, others: list[Claim], fleet: Mapping[str, Cluster], granted: int) -> Placement:
    """A bound claim: stay, grow if there is room, leave only if its own spec excludes the slot and another fits."""
    cluster = fleet.get(slot.cluster)
    if cluster is None or not any(pool.name == slot.pool for pool in cluster.pools):
        why = f"its slot {slot.cluster}/{slot.pool} is no longer in the fleet; bring it back, or delete this claim"
        return Placement(Step.BOUND, slot, None, (), why)
    excluded = [message for code, message in _exclusions(me.need, cluster, slot.pool) if code in _SPEC_EXCLUDES]
    if excluded:
        return _leave(me, slot, cluster, "; ".join(excluded), others, fleet)
    placement = _held(Step.BOUND, slot, fleet, me.need)
    free = room_left(fleet, others).free(slot)
    if me.need.units <= max(granted, free):
        return placement
    why = (
        f"it has {granted} {me.need.resource} in {slot.cluster}/{slot.pool} and wants {me.need.units}, but others "
        f"leave at most {max(free, 0)}; it runs as it was. Ask for less, or wait until others are gone"
    )
    return replace(placement, held_back=why)


def _leave(
    me: Claim, slot: Slot, cluster: Cluster, excluded: str, others: list[Claim], fleet: Mapping[str, Cluster]
) -> Placement:
    """A bound claim whose spec was changed so that it may not run where it runs: go if it can, else stay as it was."""
    why = f"its spec now excludes {slot.cluster}/{slot.pool} ({excluded})"
    if not me.movable:
        why += (
            ", but its data would be lost if it moved; it runs as it was. Undo the change, or create another and copy"
        )
        return Placement(Step.BOUND, slot, cluster.region, (), why)
    elsewhere = _choose(me, others, fleet)
    if elsewhere.slot is not None:
        return elsewhere
    why += ", and no other slot fits; until one does it runs as it was"
    return Placement(Step.BOUND, slot, cluster.region, elsewhere.reasons, why)


def _rank(me: Claim, slot: Slot, others: list[Claim], fleet: Mapping[str, Cluster]) -> Step | None:
    """Whether a reservation may bind, waits, or (None) has to yield."""
    capacity = room_left(fleet, ()).free(slot)
    if sum(other.takes_of(slot) for other in others) + me.need.units <= capacity:
        return Step.BOUND
    # What is on its way out of the slot is still there.
    capacity -= sum(other.takes_of(slot) for other in others if other.held != slot)
    holders = [other for other in others if other.held == slot]
    in_order = sorted([*holders, me], key=lambda claim: (not (claim.bound or claim.deleting), claim.age))
    for claim in in_order:
        takes = claim.need.units if claim is me else claim.takes_of(slot)
        fits = takes <= capacity
        if claim is me:
            return Step.WAITING if fits else None
        # A bound claim is there, whether it fits or not.
        if fits or claim.bound or claim.deleting:
            capacity -= takes
    raise AssertionError("the claim itself is among the holders")


def _choose(me: Claim, others: list[Claim], fleet: Mapping[str, Cluster]) -> Placement:
    """The emptiest slot that fits, after all older claims without a slot have chosen theirs."""
    room = room_left(fleet, others)
    contenders = [other for other in others if _chooses_before(other, me)]
    takers = 0
    for contender in sorted(contenders, key=lambda claim: claim.age):
        if not room.any_free(me.need.resource):
            break
        slot = _emptiest(contender.need, fleet, room)
        if slot is not None:
            room.take(slot, contender.need.units)
            takers += 1
    slot = _emptiest(me.need, fleet, room)
    reasons = tuple(reason for name in sorted(fleet) for reason in _explain(me.need, fleet[name], room, slot, takers))
    if slot is None:
        return Placement(Step.REFUSED, None, None, reasons, ahead=len(contenders))
    return Placement(Step.RESERVED, slot, fleet[slot.cluster].region, reasons, ahead=len(contenders))


def _chooses_before(other: Claim, me: Claim) -> bool:
    """Whether a claim without a slot wants what ``me`` wants, and is older."""
    wants = other.held is None and not other.deleting and other.need.units > 0
    return wants and other.need.resource == me.need.resource and other.age < me.age


def _emptiest(need: Need, fleet: Mapping[str, Cluster], room: Room) -> Slot | None:
    """Among the slots that fit, the one with the largest free share; then the most units, then by name."""
    fitting = [
        Slot(cluster.name, pool.name)
        for cluster in fleet.values()
        for pool in cluster.pools
        if not _exclusions(need, cluster, pool.name) and need.units <= room.free(Slot(cluster.name, pool.name))
    ]
    return min(
        fitting,
        key=lambda slot: (-Fraction(room.free(slot), max(room.capacity[slot], 1)), -room.free(slot), slot),
        default=None,
    )


# Reasons that lie in the claim's own spec, rather than in the state of the cluster: nodes come and go.
_SPEC_EXCLUDES = frozenset(
    {Code.NO_SUCH_POOL, Code.REGION_EXCLUDED, Code.CLASSIFICATION_EXCLUDED, Code.NO_BACKUP_STORE}
)


def _exclusions(need: Need, cluster: Cluster | None, pool_name: str | None = None) -> list[tuple[Code, str]]:
    """Everything but free capacity that keeps ``need`` out of a cluster, or out of one pool of it."""
    if cluster is None:
        return [(Code.NO_SUCH_POOL, "the cluster is not in the fleet")]
    found = []
    if not cluster.counted:
        found.append((Code.NODES_UNKNOWN, "its nodes have not been counted yet"))
    elif not _pools(need, cluster, pool_name):
        found.append(_no_pool(need, cluster, pool_name))
    if need.regions and cluster.region not in need.regions:
        allowed = ", ".join(sorted(need.regions))
        found.append((Code.REGION_EXCLUDED, f"it is in region {cluster.region}; the claim allows {allowed}"))
    if need.classification not in cluster.classifications:
        cleared = ", ".join(sorted(cluster.classifications)) or "nothing"
        found.append((Code.CLASSIFICATION_EXCLUDED, f"it is cleared for {cleared}, not for {need.classification} data"))
    if need.backups and not cluster.backups:
        found.append((Code.NO_BACKUP_STORE, "it has no backup store, and the claim wants backups"))
    if cluster.cordoned:
        found.append((Code.CORDONED, "it is cordoned and takes nothing new"))
    if not cluster.reachable:
        found.append((Code.UNREACHABLE, "it can't be reached and takes nothing new"))
    return found


def _pools(need: Need, cluster: Cluster, pool_name: str | None) -> list[Pool]:
    """The pools of a cluster whose kind and nodes suit; free capacity is another question."""
    return [
        pool
        for pool in cluster.pools
        if pool.resource == need.resource and (pool_name is None or pool.name == pool_name) and _fits_nodes(need, pool)
    ]


def _fits_nodes(need: Need, pool: Pool) -> bool:
    """Whether each piece fits on a node, and all pieces fit on as many nodes as the pool has."""
    if pool.nodes is None:
        return True
    return need.pieces <= sum(count * (size // need.piece) for size, count in pool.nodes)


def _no_pool(need: Need, cluster: Cluster, pool_name: str | None) -> tuple[Code, str]:
    of_kind = [p for p in cluster.pools if p.resource == need.resource and (pool_name is None or p.name == pool_name)]
    if not of_kind:
        return Code.NO_SUCH_POOL, f"it has no {need.resource}"
    nodes = ", ".join(f"{pool.name} has {_sizes(pool)}" for pool in of_kind)
    return Code.NODE_TOO_SMALL, f"{need.pieces} x {need.piece} {need.resource} don't fit on its nodes: {nodes}"


def _sizes(pool: Pool) -> str:
    return " and ".join(f"{count} of {size}" for size, count in pool.nodes or ()) or "none that counts"


def _explain(need: Need, cluster: Cluster, room: Room, chosen: Slot | None, ahead: int) -> list[Reason]:
    """All that keeps ``need`` out of a cluster, or why it went in, or why another was better."""
    exclusions = _exclusions(need, cluster)
    if exclusions:
        return [Reason(cluster.name, code, message) for code, message in exclusions]
    slots = [Slot(cluster.name, pool.name) for pool in _pools(need, cluster, None)]
    free = ", ".join(
        f"{room.free(slot)} of {room.capacity[slot]} {need.resource} free in {slot.pool}" for slot in slots
    )
    if chosen is not None and chosen.cluster == cluster.name:
        return [Reason(cluster.name, Code.CHOSEN, f"emptiest that fits: {free}; takes {need.units}")]
    if any(need.units <= room.free(slot) for slot in slots):
        return [Reason(cluster.name, Code.NOT_EMPTIEST, f"fits, but another is emptier: {free}")]
    older = f" after {ahead} older claims" if ahead else ""
    return [Reason(cluster.name, Code.NO_FREE_CAPACITY, f"{free}{older}; {need.units} needed")]


def _held(step: Step, slot: Slot, fleet: Mapping[str, Cluster], need: Need) -> Placement:
    """Stay in a slot. The other clusters are not considered, which is a reason too."""
    reasons = []
    for name in sorted(fleet):
        if name == slot.cluster:
            reasons.append(Reason(name, Code.KEPT, f"it already holds {need.units} {need.resource} in {slot.pool}"))
            continue
        exclusions = _exclusions(need, fleet[name])
        code_and_message = exclusions or [(Code.NOT_CONSIDERED, f"the claim stays in {slot.cluster}")]
        reasons += [Reason(name, *pair) for pair in code_and_message]
    return Placement(step, slot, fleet[slot.cluster].region, tuple(reasons))
