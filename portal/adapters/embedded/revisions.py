"""Composition revisions: one for each content that a Composition ever had, and which of them a composite runs.

As Crossplane does it: a new content gets the next number; with compositionUpdatePolicy Manual a composite stays on the
revision that it names, else it runs the newest.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from portal.adapters.embedded.errors import ReconcileError
from portal.adapters.embedded.names import COMPOSITION, GroupKind, join_api_version
from portal.adapters.embedded.store import Writer, of_kind
from portal.models.embedded import EmbeddedCompositionRevision, EmbeddedObject


def record(writer: Writer, composition: EmbeddedObject) -> EmbeddedCompositionRevision:
    """The revision of the Composition's present content. A content that comes back becomes the newest again."""
    spec = composition.body.get("spec", {})
    digest = hashlib.sha256(json.dumps(spec, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    mine = EmbeddedCompositionRevision.objects.filter(composition=composition.name)
    newest = mine.order_by("-number").first()
    existing = mine.filter(digest=digest).first()
    number = newest.number + 1 if newest else 1
    if existing is not None:
        if existing != newest:
            existing.number = number
            existing.save(update_fields=["number"])
        return existing
    return EmbeddedCompositionRevision.objects.create(
        name=f"{composition.name}-{digest[:7]}",
        composition=composition.name,
        number=number,
        digest=digest,
        spec=spec,
        created_at=writer.now,
    )


def newest(composition: str) -> EmbeddedCompositionRevision | None:
    """The newest revision of a Composition."""
    return EmbeddedCompositionRevision.objects.filter(composition=composition).order_by("-number").first()


def chosen(xr: EmbeddedObject, xrd: EmbeddedObject) -> EmbeddedCompositionRevision:
    """The revision that this composite runs. ReconcileError when there is none, or when it is of another kind."""
    choice = xr.body.get("spec", {}).get("crossplane", {})
    name = choice.get("compositionRef", {}).get("name") or _default(xr, xrd)
    if choice.get("compositionUpdatePolicy") == "Manual" and (
        pinned := choice.get("compositionRevisionRef", {}).get("name")
    ):
        revision = EmbeddedCompositionRevision.objects.filter(composition=name, name=pinned).first()
        if revision is None:
            raise ReconcileError(f"cannot fetch CompositionRevision {pinned!r} of Composition {name!r}: not found")
    else:
        revision = newest(name)
    if revision is None:
        raise ReconcileError(f"cannot fetch Composition {name!r}: not found")
    if revision.spec.get("compositeTypeRef") != _type_of(xr):
        raise ReconcileError(f"Composition {name!r} is not for {xr.kind}: its compositeTypeRef names another kind")
    return revision


def _default(xr: EmbeddedObject, xrd: EmbeddedObject) -> str:
    """The XRD's default Composition, or the only one there is for this kind."""
    named = xrd.body["spec"].get("defaultCompositionRef", {}).get("name")
    if named:
        return str(named)
    fitting = of_kind(COMPOSITION).filter(body__spec__compositeTypeRef=_type_of(xr)).order_by("name")
    first = fitting.first()
    if first is None:
        raise ReconcileError(f"no Composition is compatible with {xr.kind}: apply one whose compositeTypeRef names it")
    return first.name


def _type_of(xr: EmbeddedObject) -> dict[str, Any]:
    return {"apiVersion": join_api_version(xr.group, xr.version), "kind": xr.kind}


def kind_of(spec: dict[str, Any]) -> GroupKind:
    """The composite kind that a Composition is for."""
    ref = spec.get("compositeTypeRef", {})
    return GroupKind(str(ref.get("apiVersion", "")).rpartition("/")[0], str(ref.get("kind", "")))
