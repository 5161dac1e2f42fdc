"""Composed manifests wrapped for provider-kubernetes, and what was observed of them.

A workload lives on another cluster than its claim, so it is composed as a namespaced ``Object`` of provider-kubernetes
(v1.0: group ``kubernetes.m.crossplane.io``) that carries the manifest out and the observed state back.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from composition_function import naming
from composition_function.contract import Manifest, Selector, at, text
from composition_function.slots import Claim, Slot

API_VERSION = "kubernetes.m.crossplane.io/v1alpha1"
OWN = "own-objects"
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


def own_selector(composite: Manifest) -> Selector:
    """All Objects of a claim, also those that it doesn't compose any more and that are not gone yet."""
    label = ("crossplane.io/composite", text(composite, "metadata", "name"))
    return Selector(OWN, API_VERSION, "Object", (label,), at(composite, "metadata", "namespace"))


def owned(composite: Manifest, found: Iterable[Manifest]) -> list[Manifest]:
    """Those objects that a claim owns."""
    uid = at(composite, "metadata", "uid")
    return [
        item
        for item in found
        if any(at(owner, "uid") == uid for owner in at(item, "metadata", "ownerReferences", default=[]))
    ]


def left_behind(found: Iterable[Manifest], slot: Slot | None) -> dict[Slot, int]:
    """Units of Objects that are in another slot than this one."""
    left: dict[Slot, int] = {}
    for item in found:
        where = slot_of(item)
        if where is not None and where != slot:
            left[where] = max(left.get(where, 0), granted(item) or 0)
    return left


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


def forget(desired: Manifest, observed: Manifest | None) -> None:
    """Name what the manifest had before and hasn't any more as null. provider-kubernetes merges (RFC 7386; v1.0.0,
    internal/controller/namespaced/object/syncer.go, read 2026-12-01) and would leave it where it is: a model server
    would have both a fixed number of replicas and a range, which KServe refuses."""
    if not workload(observed):
        return  # it will be created, and a null is none of a label's values
    before, now = (at(item, "spec", "forProvider", "manifest") for item in (observed, desired))
    if before and now:
        desired["spec"]["forProvider"]["manifest"] = _with_nulls(now, before)


def _with_nulls(now: Manifest, before: Manifest) -> Manifest:
    gone = {key: None for key in before if key not in now}
    kept = {
        key: _with_nulls(value, before[key]) if isinstance(value, dict) and isinstance(before.get(key), dict) else value
        for key, value in now.items()
    }
    return kept | gone


def _without_nulls(manifest: object) -> object:
    if not isinstance(manifest, dict):
        return manifest
    return {key: _without_nulls(value) for key, value in manifest.items() if value is not None}


def applied(observed: Manifest | None, desired: Manifest) -> str | None:
    """None if the workload cluster has what is desired; else why not.

    A ready workload says nothing about the newest desired state while that has not arrived there.
    """
    if observed is None or not workload(observed):
        return problem(observed) or "it is being created"
    carried, wanted = (at(item, "spec", "forProvider", "manifest") for item in (observed, desired))
    if _without_nulls(carried) != _without_nulls(wanted):
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
