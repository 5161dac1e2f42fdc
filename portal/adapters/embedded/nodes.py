"""The simulator's part of observing nodes: what a provider would find on a workload cluster, and write of it.

An InferenceCluster composes an ObservedObjectCollection of nodes. There is neither cluster nor node here, so nodes are
made up from the InferenceCluster's own pools (portal.running.crossplane.nodes), and each gets the Object that
provider-kubernetes v1.0.0 would make for it (controller/namespaced/observedobjectcollection, read 2026-12-01): capacity
comes the same way as on a real control plane. Everything carries `…/simulated: "true"`.
"""

from __future__ import annotations

import hashlib
from typing import Any

from portal.adapters.embedded import store
from portal.adapters.embedded.conditions import available, merged, reconciled
from portal.adapters.embedded.names import MANAGED_FINALIZER, SIMULATED_ANNOTATION, GroupKind
from portal.models.embedded import EmbeddedObject
from portal.running.crossplane.nodes import nodes_of

LOOK_SECONDS = 10.0  # as often as a local control plane's provider looks
MEMBER_LABEL = "kubernetes.crossplane.io/owned-by-collection"
_COLLECTION = GroupKind("kubernetes.m.crossplane.io", "ObservedObjectCollection")
_CLASS = GroupKind("aiplatform.example.org", "AcceleratorClass")


def is_collection(row: EmbeddedObject) -> bool:
    """Whether it observes objects of a kind."""
    return GroupKind(row.group, row.kind) == _COLLECTION


def is_member(row: EmbeddedObject) -> bool:
    """Whether a collection made it: its status is written with the collection's."""
    return row.owner is not None and is_collection(row.owner)


def observe(writer: store.Writer, collection: EmbeddedObject) -> float | None:
    """One look at the cluster: an Object per node, none for nodes that are gone. Seconds until the next look."""
    members = {row.name: row for row in store.objects().filter(owner=collection)}
    gone = collection.deletion_requested_at is not None
    wanted = {} if gone else {_name(collection, node): node for node in _nodes(collection)}
    for name in members.keys() - wanted.keys():
        writer.ask_deletion(members[name])
    if gone:
        writer.drop_finalizers(collection, [MANAGED_FINALIZER])
        return None
    for name, node in wanted.items():
        row = members.get(name) or writer.create(_member(collection, name, node))
        _report(writer, row, {"atProvider": {"manifest": node}})
    _report(writer, collection, {"membershipLabel": {MEMBER_LABEL: collection.name}})
    return LOOK_SECONDS


def _nodes(collection: EmbeddedObject) -> list[dict[str, Any]]:
    """The nodes of the InferenceCluster that composed the collection; no other collection finds any."""
    cluster = collection.owner
    observed = collection.body.get("spec", {}).get("observeObjects", {})
    if cluster is None or cluster.kind != "InferenceCluster" or observed.get("kind") != "Node":
        return []
    classes = {row.name: row.body for row in store.of_kind(_CLASS)}
    return list(nodes_of(cluster.body, classes))


def _report(writer: store.Writer, row: EmbeddedObject, status: dict[str, Any]) -> None:
    new = [reconciled(row.generation), available(row.generation)]
    conditions = merged(row.status.get("conditions", []), new, writer.now)
    marked = {**row.annotations, SIMULATED_ANNOTATION: "true"}
    writer.change(row, status={**status, "conditions": conditions}, annotations=marked)


def _name(collection: EmbeddedObject, node: dict[str, Any]) -> str:
    """As the provider names it: the collection, and a hash of what is observed."""
    digest = hashlib.sha256(f"/v1, Kind=Node//{node['metadata']['name']}".encode()).hexdigest()
    return f"{collection.name}-{digest[:7]}"


def _member(collection: EmbeddedObject, name: str, node: dict[str, Any]) -> EmbeddedObject:
    spec = collection.body.get("spec", {})
    template = spec.get("objectTemplate", {}).get("metadata", {})
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node["metadata"]["name"]}}
    body = {
        "spec": {
            "providerConfigRef": spec.get("providerConfigRef", {}),
            "managementPolicies": ["Observe"],
            "forProvider": {"manifest": manifest},
        }
    }
    return EmbeddedObject(
        group=collection.group,
        version=collection.version,
        kind="Object",
        namespace=collection.namespace,
        name=name,
        manager="provider-kubernetes",
        labels={**template.get("labels", {}), MEMBER_LABEL: collection.name},
        annotations=template.get("annotations", {}),
        body=body,
        owner=collection,
    )
