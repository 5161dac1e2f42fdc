"""definition.yaml: the XRD (CompositeResourceDefinition) that gives an offering's claims their kind and schema.

In charge of: whether it is an XRD that the portal can serve, which version of it, and its spec and status schemas. Not
in charge of: what the claims cost or how they are governed (offering_file), or what Crossplane further checks.

Both kinds of XRD are served: v2 with `scope: Namespaced`, whose composite resources are namespaced and are the claims;
and v1 with `claimNames`, whose claims are of that kind (https://docs.crossplane.io/latest/composition/
composite-resource-definitions/, read 2026-12).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from portal.domain import structural
from portal.domain.json_limits import pointer
from portal.domain.offering_problems import FileProblem
from portal.domain.schema import SchemaError, SchemaValidator, validator_for
from portal.domain.strict_yaml import StrictYamlError, parse

FILE = "definition.yaml"
V1, V2 = "apiextensions.crossplane.io/v1", "apiextensions.crossplane.io/v2"

# Fields of spec that Crossplane writes itself: the first in v2 composites, the others in v1 claims (see above).
_CROSSPLANES_OWN = {
    V2: {"crossplane"},
    V1: {
        *("compositionRef", "compositionSelector", "compositionRevisionRef", "compositionRevisionSelector"),
        *("compositionUpdatePolicy", "compositeDeletePolicy", "resourceRef", "resourceRefs", "claimRef"),
        *("writeConnectionSecretToRef", "publishConnectionDetailsTo"),
    },
}

_NAMES = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "required": ["kind", "plural"],
    "properties": {
        "kind": {"type": "string", "pattern": "^[A-Z][A-Za-z0-9]{0,62}$"},
        "plural": {"type": "string", "pattern": "^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$"},
    },
}
_SHAPE = {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": True,
    "required": ["apiVersion", "kind", "metadata", "spec"],
    "properties": {
        "apiVersion": {"type": "string", "enum": [V2, V1]},
        "kind": {"type": "string", "enum": ["CompositeResourceDefinition"]},
        "metadata": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["name"],
            "properties": {"name": {"type": "string"}},
        },
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["group", "names", "versions"],
            "properties": {
                "scope": {"type": "string", "enum": ["Namespaced", "Cluster", "LegacyCluster"]},
                "group": {"type": "string", "pattern": r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"},
                "names": _NAMES,
                "claimNames": _NAMES,
                "versions": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                        "required": ["name", "served", "referenceable", "schema"],
                        "properties": {
                            "name": {"type": "string", "pattern": "^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$"},
                            "served": {"type": "boolean"},
                            "referenceable": {"type": "boolean"},
                            "schema": {
                                "type": "object",
                                "required": ["openAPIV3Schema"],
                                "properties": {
                                    "openAPIV3Schema": {
                                        "type": "object",
                                        "x-kubernetes-preserve-unknown-fields": True,
                                        "required": ["type", "properties"],
                                        "properties": {
                                            "type": {"type": "string", "enum": ["object"]},
                                            "properties": {
                                                "type": "object",
                                                "x-kubernetes-preserve-unknown-fields": True,
                                                "required": ["spec"],
                                            },
                                        },
                                    }
                                },
                            },
                        },
                    },
                },
            },
        },
    },
}


class Definition(msgspec.Struct, frozen=True):
    """What the portal takes from an XRD. `kind` and `plural` are the claim's."""

    kind: str
    group: str
    version: str
    plural: str
    spec_schema: dict[str, Any]
    status_schema: dict[str, Any]
    validator: SchemaValidator


def parse_definition(text: str, folder: str) -> tuple[Definition | None, list[FileProblem]]:
    """The definition, or None and every problem. A Definition may come with problems: don't use it then."""
    try:
        xrd = parse(text, FILE, ambiguous="refuse")
    except StrictYamlError as error:
        return None, [FileProblem(FILE, "" if error.line is None else f"{error.line}:{error.column}", error.reason)]
    shape = validator_for(_SHAPE).validate(xrd)
    if shape:
        return None, [FileProblem(FILE, problem.pointer, problem.message) for problem in shape]
    problems = [FileProblem(FILE, path, reason) for path, reason in _name_problems(xrd, folder)]
    index = _version_index(xrd["spec"]["versions"])
    if index is None:
        reason = "one version must be both served and referenceable: claims of it are what the portal applies"
        return None, [*problems, FileProblem(FILE, "/spec/versions", reason)]
    definition, faults = _read_version(xrd, index)
    return definition, problems + [FileProblem(FILE, path, reason) for path, reason in faults]


def _name_problems(xrd: Mapping[str, Any], folder: str) -> list[tuple[str, str]]:
    spec, found = xrd["spec"], []
    names = spec["names"]
    expected = f"{names['plural']}.{spec['group']}"
    if xrd["metadata"]["name"] != expected:
        found.append(("/metadata/name", f"must be {expected} (plural.group), as Crossplane demands"))
    if xrd["apiVersion"] == V2 and spec.get("scope", "Namespaced") != "Namespaced":
        found.append(("/spec/scope", f"{spec['scope']}: a team can only own namespaced resources; use Namespaced"))
    if xrd["apiVersion"] == V1 and "claimNames" not in spec:
        found.append(("/spec/claimNames", "missing: without it an XRD of v1 has nothing namespaced to ask for"))
    part = _claim_part(xrd)
    plural = spec[part]["plural"]
    if plural != folder:
        found.append((f"/spec/{part}/plural", f"{plural} is not the folder's name, {folder}: they must be alike"))
    return found


def _claim_part(xrd: Mapping[str, Any]) -> str:
    """Which part of the XRD's spec names what is claimed."""
    return "claimNames" if xrd["apiVersion"] == V1 and "claimNames" in xrd["spec"] else "names"


def _version_index(versions: list[dict[str, Any]]) -> int | None:
    return next((i for i, version in enumerate(versions) if version["served"] and version["referenceable"]), None)


def _read_version(xrd: Mapping[str, Any], index: int) -> tuple[Definition | None, list[tuple[str, str]]]:
    version = xrd["spec"]["versions"][index]
    root = version["schema"]["openAPIV3Schema"]
    base = pointer("spec", "versions", index, "schema", "openAPIV3Schema")
    spec, status = root["properties"]["spec"], root["properties"].get("status", {"type": "object"})
    found = []
    if root.get(structural.RULES):
        found.append((f"{base}/{structural.RULES}", "the portal doesn't evaluate rules at the root; put them at spec"))
    if isinstance(spec, dict) and spec.get("type") != "object":
        found.append((f"{base}/properties/spec/type", "must be object"))
    own = sorted(_CROSSPLANES_OWN[xrd["apiVersion"]] & set(_properties(spec)))
    found += [(f"{base}/properties/spec/properties/{name}", "Crossplane writes this field itself") for name in own]
    found += [(f"{base}/properties/status{where}", reason) for where, reason in structural.problems(status)]
    try:
        validator = validator_for(spec)
    except SchemaError as error:
        return None, found + [(f"{base}/properties/spec{where}", reason) for where, reason in error.problems]
    names = xrd["spec"][_claim_part(xrd)]
    definition = Definition(
        kind=names["kind"],
        group=xrd["spec"]["group"],
        version=version["name"],
        plural=names["plural"],
        spec_schema=spec,
        status_schema=status,
        validator=validator,
    )
    return definition, found


def _properties(schema: Any) -> Mapping[str, Any]:
    found = schema.get("properties") if isinstance(schema, Mapping) else None
    return found if isinstance(found, Mapping) else {}
