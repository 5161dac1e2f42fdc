"""What placement talks about: clusters and their pools, claims and what they need, and the answer it gives.

Plain frozen data. In charge of the words only; who gets which slot is ``placement``'s matter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

VECTOR_MEMORY = "GiB of vector memory"  # the resource of pools for vector databases, as messages say it


class Code(StrEnum):
    """Why a cluster was taken or not. Stable: others match on these."""

    KEPT = "Kept"
    CHOSEN = "Chosen"
    NOT_EMPTIEST = "NotEmptiest"
    NOT_CONSIDERED = "NotConsidered"
    NO_SUCH_POOL = "NoSuchPool"
    NODE_TOO_SMALL = "NodeTooSmall"
    REGION_EXCLUDED = "RegionExcluded"
    CLASSIFICATION_EXCLUDED = "ClassificationExcluded"
    NO_BACKUP_STORE = "NoBackupStore"
    CORDONED = "Cordoned"
    UNREACHABLE = "Unreachable"
    NO_FREE_CAPACITY = "NoFreeCapacity"
    NODES_UNKNOWN = "NodesUnknown"


@dataclass(frozen=True, order=True)
class Slot:
    """A pool of a cluster."""

    cluster: str
    pool: str


@dataclass(frozen=True)
class Pool:
    """Capacity of one kind in a cluster, in units of ``resource``.

    ``resource`` is an accelerator class (units: accelerators) or ``VECTOR_MEMORY`` (units: GiB). ``nodes`` are its
    nodes by size, (units of one node, how many such nodes); None means that nodes set no limit of their own.
    """

    name: str
    resource: str
    capacity: int
    nodes: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Cluster:
    """One InferenceCluster as placement sees it. Not ``counted``: nobody has seen its nodes yet."""

    name: str
    region: str
    classifications: frozenset[str]
    pools: tuple[Pool, ...]
    cordoned: bool = False
    reachable: bool = True
    backups: bool = False
    counted: bool = True


@dataclass(frozen=True)
class Need:
    """What a claim takes at its maximum: ``pieces`` of ``piece`` units, each on one node, ``units`` in all."""

    resource: str
    units: int
    piece: int
    pieces: int
    regions: frozenset[str] = frozenset()
    classification: str = "internal"
    backups: bool = False


@dataclass(frozen=True)
class Claim:
    """A claim that holds a slot or wants one.

    ``held`` is the slot in its status, ``bound`` whether its workload was composed there, with ``composed`` units. A
    claim that shrinks takes what it had until that is given back, and one that moves also takes what it is ``leaving``.
    One that is being deleted holds its slot until it is gone, and wants none. Not ``movable`` means that its data stays
    behind when it moves.
    """

    uid: str
    name: str
    created: str
    need: Need
    held: Slot | None = None
    bound: bool = False
    deleting: bool = False
    movable: bool = True
    composed: int = 0
    leaving: tuple[tuple[Slot, int], ...] = ()

    @property
    def takes(self) -> int:
        """Units that it takes of its slot. What needs nothing any more was seen to have given all back."""
        return max(self.need.units, self.composed) if self.need.units else 0

    @property
    def slots(self) -> frozenset[Slot]:
        """All slots that it takes something of."""
        held = () if self.held is None else (self.held,)
        return frozenset((*held, *(slot for slot, _ in self.leaving)))

    def takes_of(self, slot: Slot) -> int:
        """Units that it takes of any slot."""
        left = sum(units for other, units in self.leaving if other == slot)
        return left + (self.takes if self.held == slot else 0)

    @property
    def age(self) -> tuple[str, str]:
        """Sorts the oldest first. RFC 3339 times in UTC sort as text."""
        return (self.created, self.uid)


@dataclass(frozen=True)
class Reason:
    """Why ``cluster`` was taken or not."""

    cluster: str
    code: Code
    message: str


class Step(StrEnum):
    """How far a claim got."""

    REFUSED = "Refused"  # no slot fits; ask again later
    RESERVED = "Reserved"  # the slot is to be written to the status; compose nothing yet
    WAITING = "Waiting"  # holds its slot, but others who hold it too must yield first; compose nothing yet
    BOUND = "Bound"  # compose in this slot


@dataclass(frozen=True)
class Placement:
    """The answer for one claim: a slot unless refused, and a reason for every cluster of the fleet."""

    step: Step
    slot: Slot | None
    region: str | None = None
    reasons: tuple[Reason, ...] = ()
    # What it may not do although it keeps its slot, in a sentence; see place().
    held_back: str | None = None
    # How many older claims without a slot want the same resource and choose first.
    ahead: int = 0


@dataclass
class Room:
    """Units free per slot while contenders choose one after the other."""

    capacity: Mapping[Slot, int]
    by_resource: Mapping[str, tuple[Slot, ...]]
    used: dict[Slot, int] = field(default_factory=dict)

    def take(self, slot: Slot, units: int) -> None:
        self.used[slot] = self.used.get(slot, 0) + units

    def free(self, slot: Slot) -> int:
        return self.capacity.get(slot, 0) - self.used.get(slot, 0)

    def any_free(self, resource: str) -> bool:
        return any(self.free(slot) > 0 for slot in self.by_resource.get(resource, ()))


def room_left(fleet: Mapping[str, Cluster], holders: Iterable[Claim]) -> Room:
    """Units free once every holder has taken what it takes."""
    pools = [(Slot(cluster.name, pool.name), pool) for cluster in fleet.values() for pool in cluster.pools]
    by_resource: dict[str, tuple[Slot, ...]] = {}
    for slot, pool in pools:
        by_resource[pool.resource] = (*by_resource.get(pool.resource, ()), slot)
    room = Room({slot: pool.capacity for slot, pool in pools}, by_resource)
    for holder in holders:
        if holder.held is not None:
            room.take(holder.held, holder.takes)
        for slot, units in holder.leaving:
            room.take(slot, units)
    return room
