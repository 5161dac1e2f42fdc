"""The labelled simulator: plays the providers and workload clusters that the embedded control plane does not have.

It writes the status of composed objects, and lets go of those that are to be deleted. It never touches a composite: a
claim becomes Ready through its function or not at all. Everything it writes carries the annotation `…/simulated:
"true"`. Not in charge of: what each kind reports (workloads).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from portal.adapters.embedded import nodes, store
from portal.adapters.embedded.conditions import Condition, available, creating, merged, reconciled
from portal.adapters.embedded.manifests import timestamp
from portal.adapters.embedded.names import MANAGED_FINALIZER, SIMULATED_ANNOTATION, GroupKind
from portal.adapters.embedded.workloads import Outcome, Workload, reported
from portal.models.embedded import EmbeddedObject

_OBJECT_KINDS = frozenset(
    (GroupKind("kubernetes.crossplane.io", "Object"), GroupKind("kubernetes.m.crossplane.io", "Object"))
)


@dataclass(frozen=True, slots=True)
class Simulator:
    """Plays along with every composed object, except those of the claims named in `faults`.

    `faults` maps a claim's name to "fail" (a believable reason), "hang" (nothing more is ever reported) or "keep" (its
    objects come up, but are never let go: a stuck finalizer).
    """

    faults: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, object_id: int) -> float | None:
        """One object's turn. None: the next turn comes with the object's next change; else seconds until then."""
        with store.writing() as writer:
            row = store.objects().filter(pk=object_id).first()
            if row is None or row.owner is None or writer.is_composite(GroupKind(row.group, row.kind)):
                return None
            if nodes.is_member(row):
                return None
            if nodes.is_collection(row):
                return nodes.observe(writer, row)
            fault = self.faults.get(_claim_name(row))
            if row.deletion_requested_at is not None:
                if fault != "keep":
                    writer.drop_finalizers(row, [MANAGED_FINALIZER])
                return None
            outcome: Outcome = "fail" if fault == "fail" else "hang" if fault == "hang" else "ok"
            status = _status(row, outcome, writer.now)
            writer.change(row, status=status, annotations={**row.annotations, SIMULATED_ANNOTATION: "true"})
        return None


def _claim_name(row: EmbeddedObject) -> str:
    """The name of the composite at the top: a composite may be composed by another."""
    owner = row.owner
    while owner is not None and owner.owner is not None:
        owner = owner.owner
    return "" if owner is None else owner.name


def _status(row: EmbeddedObject, outcome: Outcome, now: dt.datetime) -> dict[str, Any]:
    if GroupKind(row.group, row.kind) in _OBJECT_KINDS:
        return _object_status(row, outcome, now)
    new = [reconciled(row.generation), _ready(row.generation, outcome == "ok", "simulated fault")]
    return {**row.status, "conditions": merged(row.status.get("conditions", []), new, now)}


def _object_status(row: EmbeddedObject, outcome: Outcome, now: dt.datetime) -> dict[str, Any]:
    """An `Object` of provider-kubernetes (v1.0.0): what it observes is in status.atProvider.manifest."""
    spec = row.body.get("spec", {})
    cluster = str(spec.get("providerConfigRef", {}).get("name", "default"))
    remote = _remote(row, spec.get("forProvider", {}).get("manifest", {}))
    # Equal input gives an equal status, so that nothing is written again: conditions date from the last one.
    since = _since(row) or timestamp(now)
    report = reported(Workload(remote, cluster, outcome, since))
    if report.status:
        remote["status"] = report.status
    ready = report.ready or spec.get("readiness", {}).get("policy", "SuccessfulCreate") == "SuccessfulCreate"
    new = [reconciled(row.generation), _ready(row.generation, ready, report.message)]
    return {"atProvider": {"manifest": remote}, "conditions": merged(row.status.get("conditions", []), new, now)}


def _remote(row: EmbeddedObject, manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as the workload cluster would have it."""
    metadata = manifest.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), SIMULATED_ANNOTATION: "true"}
    return {**manifest, "metadata": {**metadata, "annotations": annotations, "generation": row.generation}}


def _ready(generation: int, ready: bool, message: str) -> Condition:
    return available(generation) if ready else creating(generation, message)


def _since(row: EmbeddedObject) -> str | None:
    for condition in row.status.get("conditions", []):
        if condition.get("type") == "Synced":
            return str(condition["lastTransitionTime"])
    return None
