"""Applying what a pipeline wants: the composed objects, named, labelled and owned as Crossplane does it.

In charge of: which composed object is which, what is created, changed and deleted. Not in charge of: conditions
(reconcile).
"""

from __future__ import annotations

import hashlib
from typing import Any

from portal.adapters.embedded import admission, store
from portal.adapters.embedded.errors import ReconcileError
from portal.adapters.embedded.functions import Desired, State
from portal.adapters.embedded.manifests import OUTSIDE_BODY, manifest_of
from portal.adapters.embedded.names import (
    COMPOSITE_FINALIZER,
    COMPOSITE_LABEL,
    CORE_MANAGER,
    FOREGROUND_FINALIZER,
    MANAGED_FINALIZER,
    RESOURCE_NAME_ANNOTATION,
    SIMULATED_ANNOTATION,
    GroupKind,
    join_api_version,
    split_api_version,
)
from portal.models.embedded import EmbeddedObject
from portal.ports import TerminalError

MAX_NAME = 63


def observed(xr: EmbeddedObject) -> State:
    """The composite and its composed objects as they are in the store now."""
    composed = {resource_name(row): Desired(manifest_of(row)) for row in _owned(xr)}
    return State(Desired(manifest_of(xr)), composed)


def apply(writer: store.Writer, xr: EmbeddedObject, desired: State) -> None:
    """Create and change what is desired, ask for deletion of what no longer is. ReconcileError: none of it is done."""
    existing = {resource_name(row): row for row in _owned(xr)}
    for name, resource in sorted(desired.resources.items()):
        row = existing.get(name)
        try:
            made = _apply_one(writer, xr, name, resource.resource, row)
        except (ReconcileError, TerminalError) as error:
            raise ReconcileError(f"cannot apply composed resource {name!r}: {error}") from error
        if made is row:
            existing.pop(name, None)
    # What is left is no longer desired, or is desired under another kind or name.
    for row in existing.values():
        delete(writer, row)


def delete(writer: store.Writer, row: EmbeddedObject) -> None:
    """Ask for deletion of a composed object; it goes when its controller lets go."""
    composite = writer.is_composite(GroupKind(row.group, row.kind))
    writer.ask_deletion(row, [FOREGROUND_FINALIZER] if composite else [])


def resource_name(row: EmbeddedObject) -> str:
    """The name that the function gave this composed object."""
    return str(row.annotations.get(RESOURCE_NAME_ANNOTATION, row.name))


def _owned(xr: EmbeddedObject) -> list[EmbeddedObject]:
    return list(store.objects().filter(owner=xr))


def _apply_one(
    writer: store.Writer, xr: EmbeddedObject, name: str, manifest: dict[str, Any], row: EmbeddedObject | None
) -> EmbeddedObject:
    wanted = _rendered(xr, name, manifest, row)
    if writer.is_composite(GroupKind(wanted.group, wanted.kind)):
        wanted.body = admission.admitted(_as_manifest(wanted))
    if row is None or _identity(row) != _identity(wanted):
        other = store.find(GroupKind(wanted.group, wanted.kind), wanted.namespace, wanted.name)
        if other is not None:
            raise ReconcileError(f"{wanted.kind} {wanted.name!r} exists and is not controlled by {xr.kind} {xr.name!r}")
        composite = writer.is_composite(GroupKind(wanted.group, wanted.kind))
        wanted.finalizers = [COMPOSITE_FINALIZER if composite else MANAGED_FINALIZER]
        return writer.create(wanted)
    # Not ours: the simulator's mark.
    kept = {key: value for key, value in row.annotations.items() if key == SIMULATED_ANNOTATION}
    writer.change(row, labels=wanted.labels, annotations={**wanted.annotations, **kept}, body=wanted.body)
    return row


def _rendered(xr: EmbeddedObject, name: str, manifest: dict[str, Any], row: EmbeddedObject | None) -> EmbeddedObject:
    """The row that a desired manifest asks for. A namespaced composite composes in its own namespace only."""
    if not manifest.get("apiVersion") or not manifest.get("kind"):
        raise ReconcileError("the function returned a resource without apiVersion or kind")
    metadata = manifest.get("metadata", {})
    group, version = split_api_version(manifest["apiVersion"])
    return EmbeddedObject(
        group=group,
        version=version,
        kind=manifest["kind"],
        namespace=xr.namespace or metadata.get("namespace", ""),
        name=metadata.get("name") or _generated(xr, name, metadata, row),
        manager=CORE_MANAGER,
        labels={**metadata.get("labels", {}), COMPOSITE_LABEL: xr.name},
        annotations={**metadata.get("annotations", {}), RESOURCE_NAME_ANNOTATION: name},
        body={key: value for key, value in manifest.items() if key not in OUTSIDE_BODY},
        owner=xr,
    )


def _generated(xr: EmbeddedObject, name: str, metadata: dict[str, Any], row: EmbeddedObject | None) -> str:
    """The name it has, or one made of the composite's name and a hash: always the same for the same composite."""
    if row is not None:
        return row.name
    prefix = str(metadata.get("generateName") or f"{xr.name}-")
    suffix = hashlib.sha256(f"{xr.uid}/{name}".encode()).hexdigest()[:12]
    return prefix[: MAX_NAME - len(suffix)] + suffix


def _as_manifest(row: EmbeddedObject) -> dict[str, Any]:
    metadata = {"name": row.name, "labels": row.labels, "annotations": row.annotations}
    if row.namespace:
        metadata["namespace"] = row.namespace
    return {"apiVersion": join_api_version(row.group, row.version), "kind": row.kind, "metadata": metadata, **row.body}


def _identity(row: EmbeddedObject) -> tuple[str, str, str, str]:
    return row.group, row.kind, row.namespace, row.name
