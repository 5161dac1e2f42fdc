"""In charge of: the status that the operators of a workload cluster would write, all being well or not.

Fields and words are the operators' own (sources beside each); each message says that nothing runs. Not in charge of:
writing it (actor.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Report = dict[str, Any]

NOTE = "test-only workload actor: nothing runs behind this"
FAILED = f"0/3 nodes are available: 3 Insufficient nvidia.com/gpu. ({NOTE})"
PHASE_HEALTHY = "Cluster in healthy state"
PHASE_FIRST = "Setting up primary"


_PARTS = ("WorkloadsReady", "RouterReady", "Ready")  # conditions of an LLMInferenceService
_HIBERNATION = "cnpg.io/hibernation"  # annotation and condition of a CloudNativePG cluster


@dataclass(frozen=True)
class Workload:
    """A kind that the actor plays the operator of."""

    api_version: str
    kind: str
    report: Callable[[Mapping[str, Any], str, bool, str], Report]  # object, cluster, fails, now


def _llm_inference_service(found: Mapping[str, Any], cluster: str, fails: bool, now: str) -> Report:
    """KServe v0.20.0, pkg/apis/serving/v1alpha2/llm_inference_service_lifecycle.go (read 2026-12-01): Ready rolls up
    WorkloadsReady and RouterReady; `addresses` is filled, `address` never."""
    meta, spec = found["metadata"], found.get("spec", {})
    if meta.get("annotations", {}).get("serving.kserve.io/stop") == "true":
        return _stopped(found, now)
    states = [(kind, kind == "RouterReady" or not fails) for kind in _PARTS]
    report: Report = {
        "observedGeneration": meta["generation"],
        "conditions": [
            _condition(found, kind, fine, "FailedScheduling", FAILED if not fine else NOTE, now)
            for kind, fine in states
        ],
    }
    if not fails:
        # example.org is reserved for documentation (RFC 2606): nobody can take this address for a real one.
        url = f"http://{cluster}.simulated.example.org/{meta['namespace']}/{meta['name']}"
        replicas = spec.get("replicas") or spec.get("scaling", {}).get("minReplicas", 1)
        primary = {"kind": "Deployment", "name": meta["name"], "readyReplicas": replicas}
        report |= {"url": url, "addresses": [{"url": url}], "workloads": {"primary": primary}}
    return report


def _stopped(found: Mapping[str, Any], now: str) -> Report:
    """Its Deployment is deleted at once, whether that had come up or not; the url stays where it was."""
    conditions = [_condition(found, kind, False, "Stopped", f"Service is stopped ({NOTE})", now) for kind in _PARTS]
    observed = found["metadata"]["generation"]
    return {"observedGeneration": observed, "conditions": conditions, "workloads": None, "addresses": None}


def _cnpg_cluster(found: Mapping[str, Any], cluster: str, fails: bool, now: str) -> Report:
    """CloudNativePG v1.30.0, api/v1/cluster_types.go (read 2026-12-01): the phase is a sentence."""
    name, instances = found["metadata"]["name"], found["spec"].get("instances", 1)
    reason = "ClusterIsNotReady" if fails else "ClusterIsReady"
    conditions = [_condition(found, "Ready", not fails, reason, FAILED if fails else NOTE, now)]
    hibernates = found["metadata"].get("annotations", {}).get(_HIBERNATION) == "on"
    if hibernates:
        asleep = "WaitingForHealthy" if fails else "Hibernated"
        conditions.append(_condition(found, _HIBERNATION, not fails, asleep, NOTE, now))
    ready = 0 if fails or hibernates else instances
    report: Report = {"instances": instances, "readyInstances": ready, "conditions": conditions}
    if fails:
        return report | {"phase": PHASE_FIRST, "phaseReason": FAILED}
    services = {"writeService": f"{name}-rw", "readService": f"{name}-r"}
    return report | services | {"phase": PHASE_HEALTHY, "phaseReason": NOTE, "currentPrimary": f"{name}-1"}


def _stateful_set(found: Mapping[str, Any], cluster: str, fails: bool, now: str) -> Report:
    """apps/v1: counts, and the generation they belong to."""
    replicas = found["spec"].get("replicas", 1)
    ready = 0 if fails else replicas
    counts = {"readyReplicas": ready, "availableReplicas": ready, "updatedReplicas": replicas, "replicas": replicas}
    state = _condition(found, "SimulatedByWorkloadActor", True, "TestOnly", FAILED if fails else NOTE, now)
    return {"observedGeneration": found["metadata"]["generation"], **counts, "conditions": [state]}


def _condition(found: Mapping[str, Any], kind: str, fine: bool, reason: str, message: str, now: str) -> dict[str, str]:
    """A condition; it dates from its last change."""
    status = "True" if fine else "False"
    conditions = found.get("status", {}).get("conditions") or []
    before: Mapping[str, str] = next((c for c in conditions if c.get("type") == kind), {})
    since = before.get("lastTransitionTime", now) if before.get("status") == status else now
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


WORKLOADS = (
    Workload("serving.kserve.io/v1alpha2", "LLMInferenceService", _llm_inference_service),
    Workload("postgresql.cnpg.io/v1", "Cluster", _cnpg_cluster),
    Workload("apps/v1", "StatefulSet", _stateful_set),
)
