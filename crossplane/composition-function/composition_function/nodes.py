"""Nodes as a workload cluster reports them -> what each pool of an InferenceCluster really has.

Labels say which accelerator a node has, never how many: time-slicing and MIG make labels promise more, or other units,
than the device plugin offers (NVIDIA/k8s-device-plugin issues 732 and 1501, read 2026-12-01). So ``status.allocatable``
is counted, of nodes that would take a pod now. In charge of counting only; who observes nodes is ``fleet_kinds``.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from composition_function.contract import Manifest, at, text, whole

GIB = 2**30

# Kubernetes' quantities: api/resource/quantity.go of apimachinery v0.35 (read 2026-12-01).
_QUANTITY = re.compile(r"^([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$")
_FACTORS = {
    suffix: Fraction(1000) ** power for suffix, power in zip("numkMGTPE", (-3, -2, -1, 1, 2, 3, 4, 5, 6), strict=True)
} | {f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}


def quantity(value: object) -> Fraction | None:
    """A Kubernetes quantity such as ``8``, ``1k`` or ``512Gi``; None for what is none."""
    found = _QUANTITY.match(str(value).strip())
    if found is None:
        return None
    number, suffix, exponent = found.groups()
    factor = _FACTORS[suffix] if suffix else Fraction(10) ** int(exponent or 0)
    return Fraction(number) * factor


@dataclass(frozen=True)
class Node:
    """A node. ``left_out`` says why nothing of it counts, None if it would take a pod."""

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, str]
    left_out: str | None

    def whole(self, resource: str, unit: int = 1) -> int:
        """How many whole units of a resource it offers; none if it doesn't say, or says something else."""
        amount = quantity(self.allocatable.get(resource, "0"))
        return max(0, int((amount or Fraction(0)) / unit))


@dataclass(frozen=True)
class PoolSpec:
    """A pool as the InferenceCluster declares it. ``most`` and ``most_per_node`` are upper bounds, None for none."""

    name: str
    accelerator_class: str
    labels: Mapping[str, str] = field(default_factory=dict)
    most: int | None = None
    most_per_node: int | None = None


@dataclass(frozen=True)
class Counted:
    """What a pool has: units in all, and its nodes by size: (units of one node, how many such nodes)."""

    capacity: int
    nodes: tuple[tuple[int, int], ...] = ()


def read_node(item: Manifest) -> Node | None:
    """A node from the Object that observes it; None until it was seen once.

    What was seen last counts even while the Object can't be synced: an outage of the cluster is not an empty cluster,
    and the Object of a node that is gone goes with the next look at the cluster.
    """
    manifest = at(item, "status", "atProvider", "manifest")
    if not isinstance(manifest, dict) or manifest.get("kind") != "Node":
        return None
    return Node(
        name=str(at(manifest, "metadata", "name", default="?")),
        labels=at(manifest, "metadata", "labels", default={}),
        allocatable=at(manifest, "status", "allocatable", default={}),
        left_out=_left_out(manifest),
    )


def _left_out(manifest: Manifest) -> str | None:
    if at(manifest, "metadata", "deletionTimestamp"):
        return "it is being deleted"
    if at(manifest, "spec", "unschedulable", default=False) is True:
        return "it is cordoned"
    conditions = at(manifest, "status", "conditions", default=[])
    ready: Manifest = next((c for c in conditions if at(c, "type") == "Ready"), {})
    if at(ready, "status") == "True":
        return None
    said = ": ".join(str(part) for part in (at(ready, "reason"), at(ready, "message")) if part)
    return f"it is not ready ({said})" if said else "it is not ready"


def pools_of(cluster: Manifest) -> list[PoolSpec]:
    """The accelerator pools that an InferenceCluster declares. Raises SpecError."""
    found = []
    for pool in at(cluster, "spec", "pools", default=[]):
        document = {**cluster, "pool": pool}
        found.append(
            PoolSpec(
                name=text(document, "pool", "name"),
                accelerator_class=text(document, "pool", "acceleratorClass"),
                labels=at(pool, "nodeSelector", default={}),
                most=whole(document, "pool", "accelerators") if "accelerators" in pool else None,
                most_per_node=(
                    whole(document, "pool", "acceleratorsPerNode", minimum=1) if "acceleratorsPerNode" in pool else None
                ),
            )
        )
    return found


def count_pools(
    pools: Sequence[PoolSpec], classes: Mapping[str, Manifest], nodes: Iterable[Node]
) -> tuple[dict[str, Counted], list[str]]:
    """What each pool has, by name, and what is wrong with how they are declared.

    A node counts once, in the first pool that it fits; pools of one class are told apart by their ``nodeSelector``.
    """
    complaints = [
        f"pool {pool.name}: the fleet has no AcceleratorClass {pool.accelerator_class}; nothing of it counts"
        for pool in pools
        if pool.accelerator_class not in classes
    ]
    sizes: dict[str, list[int]] = {pool.name: [] for pool in pools}
    for node in nodes:
        if node.left_out is None:
            fitting = [(pool, size) for pool in pools if (size := _offers(node, pool, classes))]
            if fitting:
                first, size = fitting[0]
                sizes[first.name].append(size)
            if len(fitting) > 1:
                names = ", ".join(pool.name for pool, _ in fitting)
                complaints.append(f"node {node.name} fits the pools {names} and counts in the first; set nodeSelector")
    return {pool.name: _counted(sizes[pool.name], pool.most) for pool in pools}, complaints


def memory_gib(nodes: Iterable[Node]) -> int:
    """Whole GiB of memory that nodes which count can give to pods."""
    return sum(node.whole("memory", GIB) for node in nodes if node.left_out is None)


def _offers(node: Node, pool: PoolSpec, classes: Mapping[str, Manifest]) -> int:
    """How many accelerators of a pool's class a node offers to it; 0 if it is none of the pool's."""
    hardware = classes.get(pool.accelerator_class)
    if hardware is None:
        return 0
    wanted = {**at(hardware, "spec", "nodeSelector", default={}), **pool.labels}
    if not wanted.items() <= node.labels.items():
        return 0
    offered = node.whole(text(hardware, "spec", "resourceName"))
    return offered if pool.most_per_node is None else min(offered, pool.most_per_node)


def _counted(sizes: list[int], most: int | None) -> Counted:
    by_size = tuple((size, sizes.count(size)) for size in sorted(set(sizes), reverse=True))
    total = sum(sizes)
    return Counted(total if most is None else min(total, most), by_size)
