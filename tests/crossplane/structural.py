"""Structural schemas as an API server applies them: unknown fields refused, CEL rules evaluated.

Only what a new object meets: rules about ``oldSelf`` are left out, and so are those with Kubernetes' own CEL functions,
which no library outside it has.
"""

import copy
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs
from cel_expr_python import cel

Schema = dict[str, Any]


def strict(schema: Schema) -> Schema:
    """A JSON Schema that refuses what an API server would refuse with strict field validation."""
    strict_schema = copy.deepcopy(schema)
    for field in ("apiVersion", "kind"):
        strict_schema.setdefault("properties", {}).setdefault(field, {"type": "string"})
    strict_schema["properties"]["metadata"] = {"type": "object"}
    _refuse_unknown(strict_schema)
    return strict_schema


def _refuse_unknown(node: Schema) -> None:
    if node.pop("x-kubernetes-int-or-string", False):
        node.pop("type", None)
        node["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        return
    if node.pop("nullable", False) and "type" in node:
        node["type"] = [node["type"], "null"]
    if "properties" in node and "additionalProperties" not in node:
        node["additionalProperties"] = bool(node.get("x-kubernetes-preserve-unknown-fields"))
    for child in _children(node):
        _refuse_unknown(child)


def _children(node: Schema) -> Iterator[Schema]:
    yield from node.get("properties", {}).values()
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield node[key]


def errors(schema: Schema, document: Any) -> list[str]:
    """Pointer and message of all that the schema refuses, sorted."""
    found = jsonschema_rs.validator_for(schema).iter_errors(document)
    return sorted(f"/{'/'.join(str(step) for step in error.instance_path)}: {error.message}" for error in found)


def broken_rules(schema: Schema, value: Any) -> list[str]:
    """Messages of all CEL rules that ``value`` breaks, in the order of the schema."""
    return [message for node, part in _parts(schema, value) for message in _broken(node, part)]


def _parts(node: Schema, value: Any) -> Iterator[tuple[Schema, Any]]:
    yield node, value
    if isinstance(value, list):
        for item in value:
            yield from _parts(node.get("items", {}), item)
    if isinstance(value, dict):
        others = node.get("additionalProperties")
        for name, part in value.items():
            child = node.get("properties", {}).get(name, others if isinstance(others, dict) else {})
            yield from _parts(child, part)


def _broken(node: Schema, value: Any) -> Iterator[str]:
    for rule in node.get("x-kubernetes-validations", []):
        program = _program(rule["rule"])
        if program is None:
            continue
        result = program.eval(_ENVIRONMENT.Activation({"self": value})).plain_value()
        # An evaluation error comes back as a text; an API server refuses then, too.
        if result is not True:
            yield rule.get("message", rule["rule"]) if result is False else f"{rule['rule']}: {result}"


_ENVIRONMENT = cel.NewEnv(variables={"self": cel.Type.DYN})


@cache
def _program(rule: str) -> Any:
    """A compiled rule, or None for one that is not evaluated here."""
    if "oldSelf" in rule:
        return None
    try:
        return _ENVIRONMENT.compile(rule)
    except RuntimeError:  # how the library says that it doesn't know a function
        return None
