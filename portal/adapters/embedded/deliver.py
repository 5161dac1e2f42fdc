"""The writing half of the embedded control plane, and what an administrator applies: XRDs, Compositions, fleet objects.

In charge of: apply and delete as an API server does them. Not in charge of: what follows (reconcile).
"""

from __future__ import annotations

from typing import Any

from portal.adapters.embedded import admission, ownership, revisions, store
from portal.adapters.embedded.manifests import manifest_of, timestamp
from portal.adapters.embedded.names import (
    COMPOSITE_FINALIZER,
    COMPOSITION,
    FOREGROUND_FINALIZER,
    INSTANCE_LABEL,
    NAMESPACE,
    PORTAL_MANAGER,
    SIMULATED_ANNOTATION,
    XRD,
    GroupKind,
    split_api_version,
)
from portal.models.embedded import EmbeddedCompositionRevision, EmbeddedObject
from portal.ports import Applied, ClaimRef, DryRun, RetryableError, TerminalError
from portal.rendering.claim import ADOPTED_UID


def ensure_namespace(namespace: str, create: bool, labels: dict[str, str]) -> None:
    """See ports.Deliver. An existing namespace gets the labels too."""
    with store.port_errors():
        there = store.find(NAMESPACE, "", namespace)
    if there is not None and labels.items() <= there.labels.items():
        return  # the common case, without the writers' lock
    with store.writing() as writer:
        row = store.find(NAMESPACE, "", namespace)
        if row is not None:
            writer.change(row, labels={**row.labels, **labels})
        elif create:
            writer.create(_new("v1", NAMESPACE, "", namespace, PORTAL_MANAGER, labels=labels))
        else:
            raise _namespace_missing(namespace)


def composition_revision(composition: str) -> str:
    """See ports.Deliver."""
    with store.port_errors():
        revision: EmbeddedCompositionRevision | None = revisions.newest(composition)
    if revision is None:
        raise TerminalError("composition-missing", f"no Composition {composition!r}; apply it to the control plane")
    return revision.name


def apply_claim(claim: dict[str, Any], force: bool = False) -> Applied:
    """See ports.Deliver: the portal's claims, which carry an instance label and live in a namespace."""
    kind, namespace, name = admission.identity(claim)
    body = _admitted(claim)
    with store.writing() as writer:
        existing = _ours(claim, store.find(kind, namespace, name))
        if not force:
            _check_owned(existing, body)
        _check_change(claim, existing, body)
        return _applied(_put(writer, claim, body, existing, PORTAL_MANAGER))


def dry_run(claim: dict[str, Any]) -> DryRun:
    """See ports.Deliver. Reads one state of the store, which may have another one by the time of an apply."""
    kind, namespace, name = admission.identity(claim)
    body = _admitted(claim)
    with store.reading():
        existing = _ours(claim, store.find(kind, namespace, name))
        _check_owned(existing, body)
        _check_change(claim, existing, body)
        live = None if existing is None else manifest_of(existing)
    if existing is not None and existing.deletion_requested_at is not None:
        raise _deleting(existing)
    metadata = {**({} if live is None else live["metadata"]), **claim["metadata"]}
    if existing is not None:
        metadata["annotations"] = _annotations(existing, claim["metadata"].get("annotations", {}))
    made = {"apiVersion": claim["apiVersion"], "kind": claim["kind"], "metadata": metadata, **body}
    return DryRun({**made, "status": live["status"]} if live and "status" in live else made, live)


def _admitted(claim: dict[str, Any]) -> dict[str, Any]:
    if not claim["metadata"].get("labels", {}).get(INSTANCE_LABEL):
        raise TerminalError("claim-invalid", f"/metadata/labels: a claim carries the label {INSTANCE_LABEL}")
    with store.port_errors():
        return admission.admitted(claim)


def _check_change(claim: dict[str, Any], existing: EmbeddedObject | None, body: dict[str, Any]) -> None:
    if existing is not None:
        admission.check_change(claim, existing.body, body)


def _ours(claim: dict[str, Any], existing: EmbeddedObject | None) -> EmbeddedObject | None:
    """What is there under a claim's name, if it is this instance's and the namespace is there."""
    metadata = claim["metadata"]
    namespace, name, instance = metadata.get("namespace", ""), metadata["name"], metadata["labels"][INSTANCE_LABEL]
    if not store.of_kind(NAMESPACE).filter(name=namespace).exists():
        raise _namespace_missing(namespace)
    if existing is not None and existing.labels.get(INSTANCE_LABEL) != instance and not _adopts(claim, existing):
        raise TerminalError(
            "claim-name-taken",
            f"{claim['kind']} {name!r} in namespace {namespace!r} exists and belongs to somebody else (its label "
            f"{INSTANCE_LABEL} is {existing.labels.get(INSTANCE_LABEL)!r}); choose another name or have it removed",
        )
    return existing


def _check_owned(existing: EmbeddedObject | None, body: dict[str, Any]) -> None:
    """Raise TerminalError `field-conflict` when the portal would change what somebody else has set."""
    owned = [] if existing is None else ownership.conflicts(existing.body, body, existing.set_by)
    if existing is not None and owned:
        fields = "; ".join(f"{place} is set by field manager {manager!r}" for place, manager in owned)
        raise TerminalError(
            "field-conflict",
            f"{existing.kind} {existing.name!r} was changed by somebody else: {fields}. Have them take their value "
            "back, or take the field back as the portal's; nothing was written",
        )


def _adopts(claim: dict[str, Any], existing: EmbeddedObject) -> bool:
    """Whether it is nobody's yet, and the very object that this claim adopts."""
    adopted = claim["metadata"].get("annotations", {}).get(ADOPTED_UID)
    return INSTANCE_LABEL not in existing.labels and adopted == str(existing.uid)


def delete(ref: ClaimRef, uid: str | None) -> None:
    """See ports.Deliver. Another uid under that name is another object: it is left alone."""
    kind = GroupKind(split_api_version(ref.api_version)[0], ref.kind)
    with store.writing() as writer:
        row = store.find(kind, ref.namespace, ref.name)
        if row is not None and (uid is None or str(row.uid) == uid):
            writer.ask_deletion(row, [FOREGROUND_FINALIZER])


def apply_object(manifest: dict[str, Any], manager: str) -> Applied:
    """Create or change any object, as an administrator would with kubectl. TerminalError `claim-invalid` names the
    field."""
    kind, namespace, name = admission.identity(manifest)
    with store.port_errors():
        body = admission.admitted(manifest)
    with store.writing() as writer:
        if namespace and not store.of_kind(NAMESPACE).filter(name=namespace).exists():
            raise _namespace_missing(namespace)
        row = _put(writer, manifest, body, store.find(kind, namespace, name), manager)
        if kind == COMPOSITION:
            revisions.record(writer, row)
            _reconcile_all(writer, revisions.kind_of(row.body["spec"]))
        elif kind == XRD:
            _reconcile_all(writer, GroupKind(row.body["spec"]["group"], row.body["spec"]["names"]["kind"]))
        return _applied(row)


def _reconcile_all(writer: store.Writer, kind: GroupKind) -> None:
    for row in store.of_kind(kind):
        writer.enqueue(row, store.RECONCILE)
    writer.wake()


def _put(
    writer: store.Writer, manifest: dict[str, Any], body: dict[str, Any], existing: EmbeddedObject | None, manager: str
) -> EmbeddedObject:
    metadata = manifest["metadata"]
    labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
    kind = GroupKind(*_group_and_kind(manifest))
    if existing is None:
        version = split_api_version(manifest["apiVersion"])[1]
        row = _new(version, kind, metadata.get("namespace", ""), metadata["name"], manager, labels=labels)
        row.annotations, row.body = annotations, body
        if writer.is_composite(kind):
            row.finalizers = [COMPOSITE_FINALIZER]
        return writer.create(row)
    if existing.deletion_requested_at is not None:
        raise _deleting(existing)
    set_by = existing.set_by
    if writer.is_composite(kind):
        set_by = ownership.after_write(existing.body, body, set_by, manager, timestamp(writer.now))
    writer.change(existing, labels=labels, annotations=_annotations(existing, annotations), body=body, set_by=set_by)
    return existing


def _annotations(existing: EmbeddedObject, applied: dict[str, str]) -> dict[str, str]:
    """An apply keeps what the control plane itself has noted."""
    kept = {key: value for key, value in existing.annotations.items() if key == SIMULATED_ANNOTATION}
    return {**kept, **applied}


def _deleting(existing: EmbeddedObject) -> RetryableError:
    return RetryableError(
        "claim-deleting", f"{existing.kind} {existing.name!r} is being deleted; apply again when it is gone"
    )


def _group_and_kind(manifest: dict[str, Any]) -> tuple[str, str]:
    return split_api_version(manifest["apiVersion"])[0], manifest["kind"]


def _new(
    version: str, kind: GroupKind, namespace: str, name: str, manager: str, labels: dict[str, str]
) -> EmbeddedObject:
    return EmbeddedObject(
        group=kind.group,
        version=version,
        kind=kind.kind,
        namespace=namespace,
        name=name,
        manager=manager,
        labels=labels,
    )


def _applied(row: EmbeddedObject) -> Applied:
    return Applied(str(row.uid), row.generation, str(row.resource_version))


def _namespace_missing(namespace: str) -> TerminalError:
    return TerminalError(
        "namespace-missing",
        f"namespace {namespace!r} is not there; create it, or let the Environment create namespaces",
    )
