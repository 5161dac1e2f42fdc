"""Composed manifests wrapped for provider-kubernetes, and what was observed of them.

A workload lives on another cluster than its claim, so it is composed as a namespaced ``Object`` of provider-kubernetes
(v1.0: group ``kubernetes.m.crossplane.io``) that carries the manifest out and the observed state back.
"""

from dataclasses import dataclass

from composition_function import naming
from composition_function.contract import Manifest, at
from composition_function.slots import Claim, Slot

API_VERSION = "kubernetes.m.crossplane.io/v1alpha1"
GROUP = "aiplatform.example.org"
CLUSTER_LABEL = f"{GROUP}/cluster"
POOL_LABEL = f"{GROUP}/pool"
UNITS_ANNOTATION = f"{GROUP}/units"


@dataclass(frozen=True)
class Target:
    """Where to compose: a slot, the provider configuration that reaches its cluster, and how much it takes there."""

    slot: Slot
    provider_config: str
    units: int


def wrap(
    composite: Manifest,
    target: Target,
    suffix: str,
    manifest: Manifest,
    ready_when: str | None = None,
    **spec: object,
) -> Manifest:
    """An Object for ``manifest``. ``ready_when`` is CEL over ``object``; without it, to exist is to be ready."""
    readiness = (
        {"policy": "DeriveFromCelQuery", "celQuery": ready_when} if ready_when else {"policy": "SuccessfulCreate"}
    )
    return {
        "apiVersion": API_VERSION,
        "kind": "Object",
        "metadata": {
            "name": naming.child(composite, suffix),
            "namespace": composite["metadata"]["namespace"],
            "labels": {CLUSTER_LABEL: target.slot.cluster, POOL_LABEL: target.slot.pool},
            "annotations": {UNITS_ANNOTATION: str(target.units)},
        },
        "spec": {
            "providerConfigRef": {"kind": "ClusterProviderConfig", "name": target.provider_config},
            "watch": True,
            "readiness": readiness,
            "forProvider": {"manifest": manifest},
            **spec,
        },
    }


def namespace(composite: Manifest, target: Target, suffix: str) -> Manifest:
    """The claim's namespace on the workload cluster: made if it is missing, never changed, never deleted."""
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": composite["metadata"]["namespace"]}}
    return wrap(composite, target, suffix, manifest, managementPolicies=["Observe", "Create"])


def metadata(composite: Manifest, name: str, annotations: Manifest | None = None) -> Manifest:
    """Metadata of a workload: the claim's namespace, and its labels, so that usage there can be charged to a team."""
    labels = {
        key: value
        for key, value in sorted(at(composite, "metadata", "labels", default={}).items())
        if "crossplane.io/" not in key
    }
    named: Manifest = {"name": name, "namespace": composite["metadata"]["namespace"]}
    named |= {"labels": labels} if labels else {}
    return named | ({"annotations": annotations} if annotations else {})


def slot_of(observed: Manifest | None) -> Slot | None:
    """The slot an observed Object was composed in."""
    cluster = at(observed, "metadata", "labels", CLUSTER_LABEL)
    pool = at(observed, "metadata", "labels", POOL_LABEL)
    return Slot(cluster, pool) if cluster and pool else None


def granted(observed: Manifest | None) -> int | None:
    """How many units an observed Object was composed with."""
    value = at(observed, "metadata", "annotations", UNITS_ANNOTATION, default="")
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def as_it_was(observed: Manifest) -> Manifest:
    """The desired form of an observed resource, to leave it exactly as it is."""
    meta = observed.get("metadata", {})
    kept: Manifest = {key: meta[key] for key in ("name", "namespace", "labels") if key in meta}
    units = at(meta, "annotations", UNITS_ANNOTATION)
    if units:
        kept["annotations"] = {UNITS_ANNOTATION: units}
    content: Manifest = {key: observed[key] for key in ("spec", "data", "type") if key in observed}
    return {"apiVersion": observed["apiVersion"], "kind": observed["kind"], "metadata": kept, **content}


def workload(observed: Manifest | None) -> Manifest:
    """The workload as it is on its cluster, {} as long as it is not there."""
    found: Manifest = at(observed, "status", "atProvider", "manifest", default={})
    return found


def applied(observed: Manifest | None, desired: Manifest) -> str | None:
    """None if the workload cluster has what is desired; else why not.

    A ready workload says nothing about the newest desired state while that has not arrived there.
    """
    if observed is None or not workload(observed):
        return problem(observed) or "it is being created"
    if at(observed, "spec", "forProvider", "manifest") != desired["spec"]["forProvider"]["manifest"]:
        return "an update is on its way to its cluster"
    return problem(observed)


def problem(observed: Manifest | None) -> str | None:
    """What provider-kubernetes says when it can't apply or read the object."""
    synced = condition(observed, "Synced")
    if at(synced, "status") != "False":
        return None
    return f"its cluster can't be brought up to date: {at(synced, 'message', default='no message')}"


def condition(document: Manifest | None, condition_type: str) -> Manifest:
    """A condition of an object, {} if absent."""
    conditions = at(document, "status", "conditions", default=[])
    return next((c for c in conditions if isinstance(c, dict) and c.get("type") == condition_type), {})


def hold(me: Claim, observed: Manifest | None) -> tuple[Slot | None, bool]:
    """The slot a claim holds and whether its workload is composed there. Its own composed object outweighs its status,
    which is lost when the claim is restored from a backup; but one that was stopped and gave its units back holds only
    what its status, and so everybody, says that it holds."""
    composed_in = slot_of(observed)
    if composed_in is not None and granted(observed) == 0:
        return me.held, False
    return composed_in or me.held, composed_in is not None
