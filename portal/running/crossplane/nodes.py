"""In charge of: the nodes that a workload cluster claims to have, made from its InferenceCluster's pools.

No machine is behind them: they are there to be observed. Not in charge of: anything that would run on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SIMULATED = "portal.aiplatform.example.org/simulated"
_READY = {
    "type": "Ready",
    "status": "True",
    "reason": "KubeletReady",
    "message": "simulated: no machine is behind this node",
}


def nodes_of(cluster: Mapping[str, Any], classes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Node manifests, status included, for an InferenceCluster; `classes` are AcceleratorClasses by name."""
    spec = cluster["spec"]
    for pool in spec.get("pools", []):
        hardware = classes[pool["acceleratorClass"]]["spec"]
        per_node = pool["acceleratorsPerNode"]
        labels = hardware.get("nodeSelector", {})
        for number in range(pool["accelerators"] // per_node):
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
