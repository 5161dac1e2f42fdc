"""Between rows and what others read: a row as a Kubernetes manifest, a manifest as the port's shapes.

Not in charge of: finding or writing rows (store).
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from portal.adapters.composed import readiness, without_secrets
from portal.adapters.embedded.names import join_api_version
from portal.adapters.embedded.ownership import managed_fields, managers
from portal.models.embedded import EmbeddedObject
from portal.ports import ClaimRef, ComposedObject, ObservedClaim

OUTSIDE_BODY = ("apiVersion", "kind", "metadata", "status")


def timestamp(at: dt.datetime) -> str:
    """RFC 3339 in whole seconds, as metav1.Time is written."""
    return at.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def manifest_of(row: EmbeddedObject) -> dict[str, Any]:
    """The object as `kubectl get -o yaml` would show it. Reads `row.owner`: select_related it."""
    metadata: dict[str, Any] = {
        "name": row.name,
        "uid": str(row.uid),
        "generation": row.generation,
        "resourceVersion": str(row.resource_version),
        "creationTimestamp": timestamp(row.created_at),
    }
    if row.namespace:
        metadata["namespace"] = row.namespace
    for key, value in (("labels", row.labels), ("annotations", row.annotations), ("finalizers", row.finalizers)):
        if value:
            metadata[key] = value
    if row.deletion_requested_at is not None:
        metadata["deletionTimestamp"] = timestamp(row.deletion_requested_at)
    if row.owner is not None:
        metadata["ownerReferences"] = [_owner_reference(row.owner)]
    if row.set_by:
        metadata["managedFields"] = managed_fields(row.set_by)
    manifest = {
        "apiVersion": join_api_version(row.group, row.version),
        "kind": row.kind,
        "metadata": metadata,
        **row.body,
    }
    if row.status:
        manifest["status"] = row.status
    return manifest


def _owner_reference(owner: EmbeddedObject) -> dict[str, Any]:
    return {
        "apiVersion": join_api_version(owner.group, owner.version),
        "kind": owner.kind,
        "name": owner.name,
        "uid": str(owner.uid),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def observed_claim(
    manifest: dict[str, Any], plural: str, created_at: dt.datetime, composed: tuple[ComposedObject, ...]
) -> ObservedClaim:
    """The port's view of a claim's manifest. `created_at` is passed because the manifest has whole seconds only."""
    metadata = manifest["metadata"]
    deleted = metadata.get("deletionTimestamp")
    return ObservedClaim(
        ref=ClaimRef(manifest["apiVersion"], manifest["kind"], plural, metadata.get("namespace", ""), metadata["name"]),
        uid=metadata["uid"],
        generation=metadata["generation"],
        resource_version=metadata["resourceVersion"],
        created_at=created_at,
        deletion_requested_at=dt.datetime.fromisoformat(deleted) if deleted else None,
        finalizers=tuple(metadata.get("finalizers", ())),
        labels=metadata.get("labels", {}),
        annotations=metadata.get("annotations", {}),
        spec=manifest.get("spec", {}),
        status=manifest.get("status", {}),
        composed=composed,
        managers=managers(manifest, created_at),
    )


def composed_object(row: EmbeddedObject) -> ComposedObject:
    """The port's view of one composed object: its Ready condition, and Synced's message when that failed."""
    ready, message = readiness(row.status)
    return ComposedObject(
        api_version=join_api_version(row.group, row.version),
        kind=row.kind,
        namespace=row.namespace,
        name=row.name,
        ready=ready,
        message=message,
        manifest=without_secrets(manifest_of(row)),
    )
