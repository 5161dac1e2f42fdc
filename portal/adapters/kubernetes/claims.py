"""A claim's JSON as the port's shapes.

Not in charge of: fetching it (observe), or what was composed for it (objects).
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from portal.adapters.kubernetes.pointers import of_managed_fields
from portal.ports import ClaimRef, ComposedObject, FieldManager, ObservedClaim


def observed_claim(manifest: dict[str, Any], ref: ClaimRef, composed: tuple[ComposedObject, ...]) -> ObservedClaim:
    """A claim of the kind of `ref`. Items of a list don't have to carry their kind."""
    metadata = manifest["metadata"]
    return ObservedClaim(
        ref=ClaimRef(ref.api_version, ref.kind, ref.plural, metadata.get("namespace", ""), metadata["name"]),
        uid=metadata["uid"],
        generation=int(metadata.get("generation", 1)),
        resource_version=metadata["resourceVersion"],
        created_at=time_of(metadata["creationTimestamp"]) or dt.datetime.fromtimestamp(0, dt.UTC),
        deletion_requested_at=time_of(metadata.get("deletionTimestamp")),
        finalizers=tuple(metadata.get("finalizers") or ()),
        labels=metadata.get("labels") or {},
        annotations=metadata.get("annotations") or {},
        spec=manifest.get("spec") or {},
        status=manifest.get("status") or {},
        composed=composed,
        managers=managers(metadata),
    )


def managers(metadata: dict[str, Any]) -> tuple[FieldManager, ...]:
    """Who set which fields."""
    return tuple(
        FieldManager(
            manager=str(entry.get("manager") or ""),
            operation=str(entry.get("operation") or ""),
            subresource=str(entry.get("subresource") or ""),
            at=time_of(entry.get("time")),
            fields=of_managed_fields(entry.get("fieldsV1") or {}),
        )
        for entry in metadata.get("managedFields") or ()
    )


def references(manifest: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """(apiVersion, kind, namespace, name) of what was composed: of an XR of v2, of one of v1, or the XR behind a claim
    of v1."""
    spec = manifest.get("spec") or {}
    listed = (spec.get("crossplane") or {}).get("resourceRefs") or spec.get("resourceRefs") or ()
    behind = [spec["resourceRef"]] if isinstance(spec.get("resourceRef"), dict) else []
    own = manifest["metadata"].get("namespace", "")
    return [
        (str(ref.get("apiVersion", "")), str(ref.get("kind", "")), str(ref.get("namespace") or own), str(ref["name"]))
        for ref in [*listed, *behind]
        if isinstance(ref, dict) and ref.get("name")
    ]


def time_of(text: object) -> dt.datetime | None:
    """A metav1.Time or MicroTime; None for what is none (case 8)."""
    if not isinstance(text, str):
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None
