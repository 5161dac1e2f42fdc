"""What the operators in a workload cluster would report of the things that are composed: plausible, and simulated.

In charge of: words and fields as each operator writes them (sources beside each), when all is well, when it fails and
while it hangs. Not in charge of: when, and for which objects (simulator).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

Outcome = Literal["ok", "fail", "hang"]

_NO_GPU = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available."
_NO_MEMORY = "0/3 nodes are available: 3 Insufficient memory. preemption: 0/3 nodes are available."
_NO_IMAGE = (
    "ImagePullBackOff: Back-off pulling image: rpc error: code = NotFound desc = failed to pull and unpack image"
)
_WAITING = "nothing was reported yet"
_HIBERNATION = "cnpg.io/hibernation"  # annotation and condition
_NOT_HEALTHY = "Waiting for the cluster to be healthy before proceeding with hibernation"


@dataclass(frozen=True, slots=True)
class Workload:
    """What is to be simulated: a manifest as it was applied (with metadata.generation), where, and how it goes.

    `since` (RFC 3339) is when its conditions came to be.
    """

    manifest: dict[str, Any]
    cluster: str
    outcome: Outcome
    since: str

    @property
    def name(self) -> str:
        return str(self.manifest.get("metadata", {}).get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.manifest.get("metadata", {}).get("namespace", "default"))

    @property
    def annotations(self) -> dict[str, Any]:
        return self.manifest.get("metadata", {}).get("annotations") or {}

    @property
    def generation(self) -> int:
        return int(self.manifest.get("metadata", {}).get("generation", 1))


@dataclass(frozen=True, slots=True)
class Reported:
    """The status that a workload's operator would write; `ready` is what it would say, `message` why not."""

    status: dict[str, Any]
    ready: bool
    message: str = ""


def reported(workload: Workload) -> Reported:
    """What would be reported of a workload. Kinds that are not known here have no status and are fine when created."""
    kind = str(workload.manifest.get("kind", ""))
    group = str(workload.manifest.get("apiVersion", "")).rpartition("/")[0]
    known = _KINDS.get((group, kind))
    return known(workload) if known is not None else Reported({}, True)


def _llm_inference_service(workload: Workload) -> Reported:
    """KServe, pkg/apis/serving/v1alpha2/llm_inference_service_lifecycle.go (main, read 2026-12-01): Ready rolls up
    PresetsCombined, WorkloadsReady and RouterReady. The url is the gateway's: http://<gateway>/<namespace>/<name>."""
    names = ("WorkloadsReady", "RouterReady", "Ready")
    base = {"observedGeneration": workload.generation}
    combined = _condition(workload, "PresetsCombined", "True")
    if workload.annotations.get("serving.kserve.io/stop") == "true" and workload.outcome != "hang":
        # Its Deployment is deleted at once, whether that had come up or not.
        stopped = [_condition(workload, name, "False", "Stopped", "Service is stopped") for name in names]
        return Reported({**base, "conditions": [combined, *stopped]}, True)
    if workload.outcome == "hang":
        unknown = [_condition(workload, name, "Unknown", "Progressing", _WAITING) for name in names]
        return Reported({**base, "conditions": [combined, *unknown]}, False, _WAITING)
    if workload.outcome == "fail":
        broken = [
            _condition(workload, "WorkloadsReady", "False", "FailedScheduling", _NO_GPU),
            _condition(workload, "RouterReady", "True"),
            _condition(workload, "Ready", "False", "FailedScheduling", _NO_GPU),
        ]
        return Reported({**base, "conditions": [combined, *broken]}, False, _NO_GPU)
    # example.org is reserved for documentation (RFC 2606): nobody can take this address for a real one.
    url = f"http://{workload.cluster}.simulated.example.org/{workload.namespace}/{workload.name}"
    conditions = [combined, *(_condition(workload, name, "True") for name in names)]
    status = {**base, "url": url, "addresses": [{"name": "gateway-external", "url": url}], "conditions": conditions}
    return Reported(status, True)


def _cnpg_cluster(workload: Workload) -> Reported:
    """CloudNativePG v1.30.0, api/v1/cluster_types.go: phase is a sentence."""
    instances = int(workload.manifest.get("spec", {}).get("instances", 1))
    name = workload.name
    base: dict[str, Any] = {"instances": instances, "readyInstances": 0}
    hibernates = workload.annotations.get(_HIBERNATION) == "on"
    if workload.outcome != "ok":
        why = _NO_MEMORY if workload.outcome == "fail" else _WAITING
        conditions = [_condition(workload, "Ready", "False", "ClusterIsNotReady", "Cluster Is Not Ready")]
        if hibernates:
            conditions.append(_condition(workload, _HIBERNATION, "False", "WaitingForHealthy", _NOT_HEALTHY))
        return Reported(
            {**base, "phase": "Setting up primary", "phaseReason": why, "conditions": conditions}, False, why
        )
    healthy: dict[str, Any] = {
        "phase": "Cluster in healthy state",
        "readyInstances": instances,
        "currentPrimary": f"{name}-1",
        "targetPrimary": f"{name}-1",
        "writeService": f"{name}-rw",
        "readService": f"{name}-r",
        "conditions": [_condition(workload, "Ready", "True", "ClusterIsReady", "Cluster is Ready")],
    }
    if hibernates:
        asleep = _condition(workload, _HIBERNATION, "True", "Hibernated", "Cluster has been hibernated")
        healthy |= {"readyInstances": 0, "conditions": [*healthy["conditions"], asleep]}
    return Reported({**base, **healthy}, True)


def _replicated(workload: Workload) -> Reported:
    """StatefulSet and Deployment (apps/v1): counts."""
    replicas = int(workload.manifest.get("spec", {}).get("replicas", 1))
    base = {"observedGeneration": workload.generation, "replicas": replicas}
    if workload.outcome != "ok":
        message = _NO_IMAGE if workload.outcome == "fail" else _WAITING
        return Reported({**base, "readyReplicas": 0, "availableReplicas": 0}, False, message)
    counts = dict.fromkeys(("readyReplicas", "availableReplicas", "updatedReplicas"), replicas)
    return Reported({**base, **counts}, True)


def _condition(workload: Workload, kind: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    entry = {"type": kind, "status": status, "lastTransitionTime": workload.since}
    return entry | ({"reason": reason} if reason else {}) | ({"message": message} if message else {})


_KINDS: dict[tuple[str, str], Callable[[Workload], Reported]] = {
    ("serving.kserve.io", "LLMInferenceService"): _llm_inference_service,
    ("postgresql.cnpg.io", "Cluster"): _cnpg_cluster,
    ("apps", "StatefulSet"): _replicated,
    ("apps", "Deployment"): _replicated,
}
