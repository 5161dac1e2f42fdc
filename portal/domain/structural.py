"""OpenAPI v3 schemas as an XRD holds them: whether they are structural, and the JSON Schema that judges alike.

In charge of: the rules for structural schemas (https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/
custom-resource-definitions/#specifying-a-structural-schema, read 2026-12), finding a place in a schema, and the
translation to JSON Schema draft 4, whose `exclusiveMinimum` and integers (2.0 is none) are OpenAPI's. Not in charge of:
validating values or CEL rules (schema).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from portal.domain.json_limits import MAX_DEPTH, pointer

Node = Mapping[str, Any]

TYPES = ("object", "array", "string", "integer", "number", "boolean")
PRESERVE = "x-kubernetes-preserve-unknown-fields"
INT_OR_STRING = "x-kubernetes-int-or-string"
EMBEDDED = "x-kubernetes-embedded-resource"
RULES = "x-kubernetes-validations"
_INT_BOUNDS = {"int32": (-(2**31), 2**31 - 1)}
_INT64 = (-(2**63), 2**63 - 1)

_ANNOTATIONS = {"title", "description", "example", "externalDocs", "default", "nullable", "format", "type"}
_VALIDATIONS = {
    *("enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    *("multipleOf", "minItems", "maxItems", "minProperties", "maxProperties", "required"),
}
_JUNCTORS = {"allOf", "anyOf", "oneOf", "not"}
_STRUCTURE = {"properties", "additionalProperties", "items"}
_EXTENSIONS = {
    *(PRESERVE, INT_OR_STRING, EMBEDDED, RULES),
    *("x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type"),
}
_KNOWN = _ANNOTATIONS | _VALIDATIONS | _JUNCTORS | _STRUCTURE | _EXTENSIONS

ITEMS = "*"  # the step to a list's items or a map's values


def children(node: Node) -> Iterator[tuple[str, Node]]:
    """The schemas directly below, with the step that leads to each: a property's name or ITEMS."""
    yield from (node.get("properties") or {}).items()
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), Mapping):
            yield ITEMS, node[keyword]


def find(root: Node, steps: Sequence[str]) -> Node | None:
    """The schema at this place below `root`, or None when the schema has no such place. A list index leads to items."""
    node = root
    for step in steps:
        below = dict(children(node))
        found = below.get(step)
        if found is None and step != ITEMS and "properties" not in node:
            found = below.get(ITEMS) if node.get("type") != "array" or step.isdigit() else None
        if found is None:
            return None
        node = found
    return node


def nodes(root: Node) -> Iterator[tuple[tuple[str, ...], str, Node]]:
    """Every schema in a schema: the steps that lead to its values, its own JSON pointer, and itself."""
    waiting: list[tuple[tuple[str, ...], str, Node]] = [((), "", root)]
    while waiting:
        steps, where, node = waiting.pop()
        yield steps, where, node
        for step, sub in children(node):
            keyword = "items" if node.get("type") == "array" else "additionalProperties"
            below = pointer(keyword) if step == ITEMS and sub is node.get(keyword) else pointer("properties", step)
            waiting.append(((*steps, step), where + below, sub))


def problems(root: Any) -> list[tuple[str, str]]:
    """(JSON pointer into the schema, reason) for everything that makes a schema not structural; empty when it is."""
    found: list[tuple[str, str]] = []
    waiting: list[tuple[Any, tuple[str, ...], bool]] = [(root, (), False)]
    while waiting:
        node, steps, alternative = waiting.pop()
        if not isinstance(node, Mapping):
            found.append((pointer(*steps), "a schema must be an object"))
            continue
        if len(steps) > 2 * MAX_DEPTH:
            found.append((pointer(*steps[:3]), f"nested more than {MAX_DEPTH} levels deep"))
            continue
        reasons = _alternative_problems(node) if alternative else _node_problems(node)
        found += [(pointer(*steps), reason) for reason in reasons]
        waiting += [(sub, (*steps, *step), alternative or step[0] in _JUNCTORS) for step, sub in _below(node)]
    return sorted(found)


def _below(node: Node) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Whatever stands where a schema is expected, with the keywords that lead there."""
    for name, sub in _mapping(node.get("properties")).items():
        yield ("properties", str(name)), sub
    for keyword in ("items", "additionalProperties"):
        if isinstance(node.get(keyword), Mapping):
            yield (keyword,), node[keyword]
    if "not" in node:
        yield ("not",), node["not"]
    for keyword in ("allOf", "anyOf", "oneOf"):
        alternatives = node.get(keyword)
        for index, sub in enumerate(alternatives if isinstance(alternatives, list) else ()):
            yield (keyword, str(index)), sub


def _alternative_problems(node: Node) -> Iterator[str]:
    """Below allOf, anyOf, oneOf and not a schema may only say what validates; a $ref could even reach out."""
    unknown = sorted(set(node) - (_VALIDATIONS | _JUNCTORS | _STRUCTURE | {"type", "format", INT_OR_STRING}))
    if unknown:
        yield f"{', '.join(unknown)} can't be used below allOf, anyOf, oneOf or not"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _node_problems(node: Node) -> Iterator[str]:
    unknown = sorted(set(node) - _KNOWN)
    if unknown:
        yield f"{', '.join(unknown)} can't be used in a structural schema"
    kind = node.get("type")
    free = node.get(INT_OR_STRING) or node.get(PRESERVE)
    if kind is None and not free:
        yield f"type is missing; it is one of {', '.join(TYPES)}"
    if kind is not None and kind not in TYPES:
        yield f"type is {kind!r}; it is one of {', '.join(TYPES)}"
    if node.get(INT_OR_STRING) and kind is not None:
        yield f"type must be left out beside {INT_OR_STRING}"
    yield from _structure_problems(node, kind)
    yield from _required_problems(node)


def _structure_problems(node: Node, kind: Any) -> Iterator[str]:
    if "items" in node and kind != "array":
        yield "items belongs to type array"
    if kind == "array" and not isinstance(node.get("items"), Mapping):
        yield "an array needs items, one schema for all of them"
    if "properties" in node and "additionalProperties" in node:
        yield "properties and additionalProperties exclude each other"
    if "additionalProperties" in node and not isinstance(node["additionalProperties"], Mapping):
        yield f"additionalProperties must be a schema; free form is {PRESERVE}: true"
    if "properties" in node and not isinstance(node["properties"], Mapping):
        yield "properties must be an object"
    if {"properties", "additionalProperties"} & node.keys() and kind != "object":
        yield "properties and additionalProperties belong to type object"


def _required_problems(node: Node) -> Iterator[str]:
    required = node.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        yield "required must be a list of property names"
    elif "properties" in node and not node.get(PRESERVE):
        missing = sorted(set(required) - set(_mapping(node["properties"])))
        if missing:
            yield f"required names {', '.join(missing)}, which is no property: no value could be valid"


def json_schema(node: Node) -> dict[str, Any]:
    """A JSON Schema (draft 4) that accepts what the API server accepts, save CEL rules and list-map keys.

    Unknown fields are refused wherever the schema doesn't preserve them; a null only where it is nullable. Integers are
    bounded by int64, or what `format` says, as Kubernetes stores them.
    """
    made = {key: value for key, value in node.items() if key in _ANNOTATIONS | _VALIDATIONS | _JUNCTORS}
    made.pop("nullable", None)
    kind = node.get("type")
    if node.get(INT_OR_STRING):
        made["type"] = ["integer", "string"]
    elif kind == "integer":
        low, high = _INT_BOUNDS.get(str(node.get("format")), _INT64)
        made.setdefault("minimum", low)
        made.setdefault("maximum", high)
    elif kind == "array":
        made["items"] = json_schema(node["items"])
        if node.get("x-kubernetes-list-type") == "set":
            made["uniqueItems"] = True
    elif kind == "object":
        _object_schema(node, made)
    if node.get("nullable"):
        _accept_null(made)
    return made


def _object_schema(node: Node, made: dict[str, Any]) -> None:
    if isinstance(node.get("additionalProperties"), Mapping):
        made["additionalProperties"] = json_schema(node["additionalProperties"])
        return
    made["properties"] = {name: json_schema(sub) for name, sub in (node.get("properties") or {}).items()}
    if node.get(EMBEDDED) or node.get(PRESERVE):
        return
    made["additionalProperties"] = False


def _accept_null(made: dict[str, Any]) -> None:
    kind = made.get("type")
    if isinstance(kind, str):
        made["type"] = [kind, "null"]
    elif isinstance(kind, list):
        made["type"] = [*kind, "null"]
    if "enum" in made:
        made["enum"] = [*made["enum"], None]
