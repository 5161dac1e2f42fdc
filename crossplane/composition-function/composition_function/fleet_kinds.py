"""AcceleratorClass and InferenceCluster: the fleet as the platform team writes it, and as its clusters report it.

An InferenceCluster becomes the provider configuration that reaches it, a probe that tells whether its API answers, and
a collection that observes its nodes. Its status says what claims can have there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from composition_function import fleet, naming, nodes, objects
from composition_function.contract import (
    TTL_NEXT_STEP,
    Composed,
    Condition,
    Manifest,
    Outcome,
    Request,
    Selector,
    at,
    text,
    whole,
)
from composition_function.slots import Slot

PROBE = "probe"
PROVIDER_CONFIG = "provider-config"
NODES = "nodes"
NODES_LABEL = f"{objects.GROUP}/nodes-of"

# Nodes are not watched from here: how old a count may be, on top of the provider's --poll interval.
TTL_CLUSTER = 15
NAMED_NODES = 20  # that don't count, in the status


def nodes_selector(composite: Manifest) -> Selector:
    """The Objects that observe a cluster's nodes; the collection makes them with this label."""
    label = (NODES_LABEL, naming.short(text(composite, "metadata", "name")))
    namespace = text(composite, "spec", "kubeconfigSecretRef", "namespace")
    return Selector(NODES, objects.API_VERSION, "Object", (label,), namespace)


def compose_accelerator_class(request: Request) -> Outcome:
    """A class is only read by others: ready once its fields can be read."""
    text(request.composite, "spec", "resourceName")
    return Outcome(ready=True)


def compose_cluster(request: Request) -> Outcome:
    """An InferenceCluster: ready when its API answers and its nodes are counted."""
    composite = request.composite
    reachable, said = _reachable(request.observed.get(PROBE))
    counts = _count(request, reachable is True)
    held, complaints = _held(request)
    status: Manifest = {} if reachable is None else {"reachable": reachable}
    if counts.pools is not None:
        status["pools"] = _used(composite, counts.pools, held)
    if counts.nodes is not None:
        status["nodes"] = counts.nodes
    return Outcome(
        ready=reachable is True and counts.problem is None,
        resources={
            # Provider configurations have no status to be ready by.
            PROVIDER_CONFIG: Composed(provider_config(composite), ready=True),
            PROBE: Composed(probe_object(composite), ready=reachable is True),
            NODES: Composed(nodes_collection(composite), ready=counts.problem is None),
        },
        status=status,
        conditions=[said, _counted(counts), _schedulable(composite)],
        warnings=complaints + counts.complaints,
        ttl=TTL_NEXT_STEP if counts.pending else TTL_CLUSTER,
    )


def _reachable(probe: Manifest | None) -> tuple[bool | None, Condition]:
    """Whether the API answered the probe, None if it was not asked yet."""
    synced = objects.condition(probe, "Synced").get("status")
    if synced == "True":
        return True, Condition("Reachable", True, "Reachable")
    if synced == "False":
        why = objects.problem(probe) or "it gave no reason"
        advice = "It keeps what it has and gets nothing new; it is asked again by itself"
        return False, Condition("Reachable", False, "Unreachable", f"{why}. {advice}")
    return None, Condition("Reachable", False, "Unknown", "the probe has not reported yet")


@dataclass(frozen=True)
class _Counts:
    """What nodes offer, pool by pool: counted now, or, with ``problem``, as the status had it.

    ``pending``: more will be known in a moment.
    """

    pools: list[Manifest] | None
    nodes: Manifest | None
    problem: str | None = None
    pending: bool = False
    complaints: list[str] = field(default_factory=list)


def _count(request: Request, answers: bool) -> _Counts:
    """Count the nodes that the collection found; while the cluster does not answer, nothing changes."""
    collection = request.observed.get(NODES)
    before, nodes_before = (at(request.composite, "status", key) for key in ("pools", "nodes"))
    synced = objects.condition(collection, "Synced").get("status")
    if not answers or synced != "True":
        why = objects.problem(collection) or "they were not listed yet"
        why = f"{why}; its pools are as they were last counted" if before is not None else why
        return _Counts(before, nodes_before, why, pending=answers and synced is None)
    members = request.required.get(NODES, ())
    found = [node for node in map(nodes.read_node, members) if node is not None]
    classes = {
        str(at(item, "metadata", "name")): item for item in request.required.get(fleet.ACCELERATOR_CLASSES.name, ())
    }
    pools, complaints = _pools(request.composite, classes, found)
    left_out = sorted((node.name, node.left_out) for node in found if node.left_out)
    summary: Manifest = {
        "counted": len(found) - len(left_out),
        "leftOut": [{"name": name, "reason": reason} for name, reason in left_out[:NAMED_NODES]],
    }
    # Their Objects are there a moment after the collection, and what they observe another one later.
    pending = len(found) < len(members) or (not members and nodes_before is None)
    return _Counts(pools, summary, None, pending, complaints)


def _counted(counts: _Counts) -> Condition:
    if counts.problem is not None:
        return Condition("NodesCounted", False, "NodesUnknown", f"its nodes can't be counted: {counts.problem}")
    what = "; ".join(f"{entry['name']}: {entry['reason']}" for entry in at(counts.nodes, "leftOut", default=[])[:3])
    return Condition("NodesCounted", True, "Counted", f"some don't count: {what}" if what else "")


def _pools(
    composite: Manifest, classes: Mapping[str, Manifest], found: list[nodes.Node]
) -> tuple[list[Manifest], list[str]]:
    """The status of all pools without what is used of them, and complaints."""
    declared = nodes.pools_of(composite)
    counted, complaints = nodes.count_pools(declared, classes, found)
    pools: list[Manifest] = [
        {
            "name": pool.name,
            "resource": pool.accelerator_class,
            "capacity": counted[pool.name].capacity,
            "nodes": [{"size": size, "count": count} for size, count in counted[pool.name].nodes],
        }
        for pool in declared
    ]
    storage = at(composite, "spec", "vectorStorage")
    if storage:
        # Set aside by the platform team, on nodes that hold other things too; never more than all nodes have.
        aside = whole(composite, "spec", "vectorStorage", "memoryGiB")
        entry: Manifest = {"name": fleet.VECTOR_POOL, "resource": fleet.VECTOR_RESOURCE}
        entry["capacity"] = capacity = min(aside, nodes.memory_gib(found))
        if "memoryGiBPerNode" in storage:
            size = whole(composite, "spec", "vectorStorage", "memoryGiBPerNode", minimum=1)
            entry["nodes"] = [{"size": size, "count": capacity // size}]
        pools.append(entry)
    return pools, complaints


def _used(composite: Manifest, pools: list[Manifest], held: Mapping[Slot, int]) -> list[Manifest]:
    """Pools with what claims hold of them."""
    name = text(composite, "metadata", "name")
    found = []
    for pool in pools:
        used = held.get(Slot(name, pool["name"]), 0)
        capacity = int(pool["capacity"])
        found.append({**pool, "capacity": capacity, "used": used, "free": capacity - used})
    return found


def _schedulable(composite: Manifest) -> Condition:
    """Its time of transition tells since when a cluster is cordoned."""
    if at(composite, "spec", "cordoned", default=False) is True:
        return Condition("Schedulable", False, "Cordoned", "spec.cordoned: it takes nothing new; what runs there stays")
    return Condition("Schedulable", True, "Schedulable")


def _held(request: Request) -> tuple[dict[Slot, int], list[str]]:
    """Units that claims take, by slot."""
    held: dict[Slot, int] = {}
    complaints: list[str] = []
    for selector in (fleet.MODELS, fleet.DATABASES):
        claims, unreadable = fleet.read_all(request.required.get(selector.name, ()), fleet.read_claim)
        complaints += unreadable
        for claim in claims:
            for slot in claim.slots:
                held[slot] = held.get(slot, 0) + claim.takes_of(slot)
    return held, complaints


def provider_config(composite: Manifest) -> Manifest:
    """provider-kubernetes' cluster-wide configuration, with the kubeconfig that the InferenceCluster points to."""
    reference = {key: text(composite, "spec", "kubeconfigSecretRef", key) for key in ("namespace", "name", "key")}
    return {
        "apiVersion": objects.API_VERSION,
        "kind": "ClusterProviderConfig",
        "metadata": {"name": text(composite, "spec", "providerConfigName")},
        "spec": {"credentials": {"source": "Secret", "secretRef": reference}},
    }


def probe_object(composite: Manifest) -> Manifest:
    """An Object that only looks at the cluster's kube-system namespace, which every cluster has.

    It is never Ready, on purpose: provider-kubernetes looks at an Object that is not every 30 s, at all others when
    its --poll says, 10 minutes by default (v1.0.0, controller/namespaced/object/object.go, read 2026-12-01). What tells
    whether the cluster answers is Synced.
    """
    return {
        "apiVersion": objects.API_VERSION,
        "kind": "Object",
        "metadata": _named(composite, PROBE),
        "spec": {
            "providerConfigRef": _config_ref(composite),
            "managementPolicies": ["Observe"],
            "readiness": {"policy": "DeriveFromCelQuery", "celQuery": "false"},
            "forProvider": {
                "manifest": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
            },
        },
    }


def nodes_collection(composite: Manifest) -> Manifest:
    """A collection that makes an Object, which only observes, for each node of the cluster."""
    (label,) = nodes_selector(composite).labels
    return {
        "apiVersion": objects.API_VERSION,
        "kind": "ObservedObjectCollection",
        "metadata": _named(composite, NODES),
        "spec": {
            "providerConfigRef": _config_ref(composite),
            "observeObjects": {"apiVersion": "v1", "kind": "Node", "selector": {}},
            "objectTemplate": {"metadata": {"labels": dict([label])}},
        },
    }


def _named(composite: Manifest, suffix: str) -> Manifest:
    return {
        "name": naming.child(composite, suffix),
        "namespace": text(composite, "spec", "kubeconfigSecretRef", "namespace"),
    }


def _config_ref(composite: Manifest) -> Manifest:
    return {"kind": "ClusterProviderConfig", "name": text(composite, "spec", "providerConfigName")}
