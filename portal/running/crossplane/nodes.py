"""In charge of: the nodes that a simulated workload cluster has, made from its InferenceCluster's pools.

Test doubles: no machine is behind them, and each says so in an annotation and in its Ready condition. They are there to
be observed, by provider-kubernetes on a local control plane and by the embedded one's simulator. Not in charge of:
anything that would run on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SIMULATED = "portal.aiplatform.example.org/simulated"
UNBOUNDED = 8  # accelerators of the only node of a pool without bounds
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "simulated: no machine is behind this node",
}


def nodes_of(cluster: Mapping[str, Any], classes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Node manifests, status included, for an InferenceCluster; `classes` are AcceleratorClasses by name.

    A pool has what its bounds allow; one without bounds has one node of 8.
    """
    spec = cluster["spec"]
    for pool in spec.get("pools", []):
        if pool["acceleratorClass"] not in classes:
            continue
        hardware = classes[pool["acceleratorClass"]]["spec"]
        per_node = pool.get("acceleratorsPerNode", UNBOUNDED)
        labels = {**hardware.get("nodeSelector", {}), **pool.get("nodeSelector", {})}
        for number in range(pool.get("accelerators", per_node) // per_node):
            yield _node(f"{pool['name']}-{number}", labels, {hardware["resourceName"]: str(per_node)}, "512Gi")
    storage = spec.get("vectorStorage")
    if storage:
        per_node = storage.get("memoryGiBPerNode", storage["memoryGiB"])
        for number in range(storage["memoryGiB"] // per_node):
            yield _node(f"vector-storage-{number}", {}, {}, f"{per_node}Gi")


def _node(name: str, labels: Mapping[str, str], devices: Mapping[str, str], memory: str) -> dict[str, Any]:
    amounts = {"cpu": "64", "memory": memory, "pods": "110", **devices}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **labels},
            "annotations": {SIMULATED: "true"},
        },
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [_READY]},
    }
