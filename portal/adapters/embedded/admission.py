"""Which objects the control plane accepts, as an API server with Crossplane's CRDs would.

In charge of: form and names of any object, a composite against its XRD (defaults, unknown fields and CEL rules
included), XRDs and Compositions themselves. Not in charge of: whether a claim should exist (the portal), or writing it
(deliver). Every refusal is TerminalError `claim-invalid` and names the field by a JSON pointer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from portal.adapters.embedded import store
from portal.adapters.embedded.manifests import OUTSIDE_BODY
from portal.adapters.embedded.names import COMPOSITION, XRD, GroupKind, split_api_version
from portal.domain.json_limits import first_problem
from portal.domain.schema import Problem, SchemaError, SchemaValidator, validator_for
from portal.models.embedded import EmbeddedObject
from portal.ports import TerminalError

# Kubernetes, "Object Names and IDs", "Labels and Selectors" (read 2026-12-01).
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_MAX_ANNOTATIONS = 256 * 1024  # bytes, of all annotations of an object

_NAME_REF = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
_LABEL_SELECTOR = {
    "type": "object",
    "required": ["matchLabels"],
    "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}},
}
# What Crossplane v2 adds to the spec of every XRD (internal/xcrd/schemas.go, read 2026-12-01), save what it writes
# itself.
_MACHINERY = {
    "type": "object",
    "properties": {
        "compositionRef": _NAME_REF,
        "compositionSelector": _LABEL_SELECTOR,
        "compositionRevisionRef": _NAME_REF,
        "compositionRevisionSelector": _LABEL_SELECTOR,
        "compositionUpdatePolicy": {"type": "string", "enum": ["Automatic", "Manual"]},
    },
}


def identity(manifest: dict[str, Any]) -> tuple[GroupKind, str, str]:
    """Kind, namespace (empty: cluster scope) and name of any object whose form is fit for Kubernetes."""
    unfit = first_problem(manifest)
    if unfit is not None:
        raise invalid([Problem(*unfit)])
    _text(manifest, "apiVersion", "")
    _text(manifest, "kind", "")
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise _refused("/metadata", "is missing; it holds the name")
    _text(metadata, "name", "/metadata")
    for field in ("name", "namespace"):
        value = metadata.get(field, "x")
        if not isinstance(value, str) or not _NAME.match(value):
            raise _refused(f"/metadata/{field}", f"{value!r} is no name: a-z, 0-9, '-' and '.', at most 253 characters")
    _check_labels(metadata.get("labels", {}))
    _check_annotations(metadata.get("annotations", {}))
    kind = GroupKind(split_api_version(manifest["apiVersion"])[0], manifest["kind"])
    return kind, metadata.get("namespace", ""), metadata["name"]


def admitted(manifest: dict[str, Any]) -> dict[str, Any]:
    """The body to be stored, defaults filled in, of an object whose `identity` was taken."""
    kind, namespace, _ = identity(manifest)
    body = {key: value for key, value in manifest.items() if key not in OUTSIDE_BODY}
    if kind == XRD:
        _check_definition(manifest)
    elif kind == COMPOSITION:
        _check_composition(body)
    elif kind.group:
        return _composite_body(kind, manifest, namespace, body)
    return body


def invalid(problems: Iterable[Problem]) -> TerminalError:
    """The refusal that names these problems."""
    return TerminalError("claim-invalid", "; ".join(f"{one.pointer or '/'}: {one.message}" for one in problems))


def check_change(manifest: dict[str, Any], old: dict[str, Any], new: dict[str, Any]) -> None:
    """A composite that is there already: what its XRD's rules about `oldSelf` say of the change."""
    kind, _, _ = identity(manifest)
    xrd = definition(kind)
    if xrd is None:
        return
    problems = _validator(xrd, split_api_version(manifest["apiVersion"])[1]).validate_change(old, new)
    if problems:
        raise invalid(problems)


def check_status(xrd: EmbeddedObject, version: str, status: dict[str, Any]) -> None:
    """A status that a function wants, against the XRD: the core can't write a field that is not in the schema."""
    schema = _version(xrd, version)["schema"]["openAPIV3Schema"].get("properties", {}).get("status")
    if schema is None and not status:
        return
    wrapped = {"type": "object", "properties": {} if schema is None else {"status": schema}}
    problems = validator_for(wrapped).validate({"status": status})
    if problems:
        raise invalid(problems)


def _composite_body(kind: GroupKind, manifest: dict[str, Any], namespace: str, body: dict[str, Any]) -> dict[str, Any]:
    xrd = definition(kind)
    if xrd is None:
        raise _refused("/kind", f"no such kind {kind.kind!r} in group {kind.group!r}; apply its XRD first")
    scope = xrd.body["spec"].get("scope", "LegacyCluster")
    if (scope == "Namespaced") != bool(namespace):
        where = "needs a namespace" if scope == "Namespaced" else "must have none: the kind is cluster-scoped"
        raise _refused("/metadata/namespace", where)
    version = split_api_version(manifest["apiVersion"])[1]
    validator = _validator(xrd, version)
    body = {"spec": {}, **body}
    problems = validator.validate(body)
    if problems:
        raise invalid(problems)
    filled: dict[str, Any] = validator.with_defaults(body)
    return filled


def definition(kind: GroupKind) -> EmbeddedObject | None:
    """The XRD that defines a kind."""
    return store.of_kind(XRD).filter(body__spec__group=kind.group, body__spec__names__kind=kind.kind).first()


def _version(xrd: EmbeddedObject, name: str) -> dict[str, Any]:
    versions: list[dict[str, Any]] = xrd.body["spec"]["versions"]
    for version in versions:
        if version["name"] == name and version.get("served"):
            return version
    served = ", ".join(version["name"] for version in versions if version.get("served"))
    raise _refused("/apiVersion", f"version {name!r} of {xrd.name} is not served; served: {served}")


def _validator(xrd: EmbeddedObject, version: str) -> SchemaValidator:
    return validator_for(_body_schema(_version(xrd, version)["schema"]["openAPIV3Schema"]))


def _body_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """The XRD's schema of everything but status, with Crossplane's own part of the spec in it."""
    properties = {name: node for name, node in schema.get("properties", {}).items() if name not in OUTSIDE_BODY}
    spec = properties.get("spec", {"type": "object"})
    properties["spec"] = {**spec, "properties": {**spec.get("properties", {}), "crossplane": _MACHINERY}}
    return {**schema, "properties": properties}


def _check_definition(manifest: dict[str, Any]) -> None:
    spec = manifest.get("spec", {})
    try:
        group, plural, versions = spec["group"], spec["names"]["plural"], spec["versions"]
        _ = spec["names"]["kind"]
        schemas = [(version["name"], version["schema"]["openAPIV3Schema"]) for version in versions]
    except (KeyError, TypeError) as missing:
        raise _refused("/spec", f"an XRD needs group, names.kind, names.plural and versions: {missing}") from missing
    if manifest["metadata"]["name"] != f"{plural}.{group}":
        raise _refused("/metadata/name", f"must be {plural}.{group}: the plural and the group")
    if spec.get("scope") not in ("Namespaced", "Cluster"):
        raise _refused("/spec/scope", f"{spec.get('scope')!r}; the embedded control plane knows Namespaced and Cluster")
    for index, (name, schema) in enumerate(schemas):
        try:
            validator_for(_body_schema(schema))
        except SchemaError as error:
            raise _refused(f"/spec/versions/{index}/schema/openAPIV3Schema", f"version {name}: {error}") from error


def _check_composition(body: dict[str, Any]) -> None:
    spec = body.get("spec", {})
    if spec.get("mode", "Pipeline") != "Pipeline":
        raise _refused("/spec/mode", f"{spec['mode']!r}; Crossplane v2 knows Pipeline only")
    ref = spec.get("compositeTypeRef", {})
    if not ref.get("apiVersion") or not ref.get("kind"):
        raise _refused("/spec/compositeTypeRef", "needs apiVersion and kind")
    seen: set[str] = set()
    for index, step in enumerate(spec.get("pipeline", [])):
        where = f"/spec/pipeline/{index}"
        if not isinstance(step, dict) or not step.get("step") or not step.get("functionRef", {}).get("name"):
            raise _refused(where, "needs step and functionRef.name")
        if step["step"] in seen:
            raise _refused(f"{where}/step", f"{step['step']!r} is there twice; give each step a name of its own")
        seen.add(step["step"])


def _check_labels(labels: Any) -> None:
    if not isinstance(labels, dict):
        raise _refused("/metadata/labels", "must be an object of texts")
    for key, value in labels.items():
        if not _LABEL_KEY.match(key):
            raise _refused(
                "/metadata/labels", f"{key!r} is no label key: [prefix/]name, the name at most 63 characters"
            )
        if not isinstance(value, str) or not _LABEL_VALUE.match(value):
            raise _refused(
                f"/metadata/labels/{key.replace('/', '~1')}", f"{value!r} is no label value of at most 63 characters"
            )


def _check_annotations(annotations: Any) -> None:
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        raise _refused("/metadata/annotations", "must be an object of texts")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if size > _MAX_ANNOTATIONS:
        raise _refused("/metadata/annotations", f"{size} bytes in all; at most {_MAX_ANNOTATIONS}")


def _text(holder: dict[str, Any], field: str, where: str) -> None:
    if not isinstance(holder.get(field), str) or not holder[field]:
        raise _refused(f"{where}/{field}", "is missing; it must be a text")


def _refused(pointer: str, message: str) -> TerminalError:
    return invalid([Problem(pointer, "invalid", message)])
