"""A value against the spec part of an XRD's schema, as the API server would judge it, with sentences for people.

In charge of: defaults, types, bounds, unknown fields, list keys and CEL rules (`x-kubernetes-validations`), and every
problem of a value, up to MAX_PROBLEMS. Not in charge of: what policies say of a valid value, or whether a cluster would
also admit it.

Where this is stricter than the API server: an integer written 2.0 is refused (the server keeps the 2.0, and a claim
that comes back so looks changed), a null is refused unless nullable, and CEL rules run only on a value that fits
otherwise.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from portal.domain import structural
from portal.domain.json_limits import first_problem, pointer
from portal.domain.schema_messages import Problem, describe
from portal.domain.schema_rules import SchemaError, compile_rules
from portal.domain.structural import ITEMS, Node

__all__ = ["Problem", "SchemaError", "SchemaValidator", "validator_for"]

MAX_PROBLEMS = 50


class SchemaValidator:
    """Judges values of one schema. Immutable after construction; safe to share between threads.

    Raises SchemaError when the schema is not structural, a default does not fit it, a pattern is not one that RE2 and
    ECMA both know, or a CEL rule does not compile.
    """

    def __init__(self, schema: Node) -> None:
        self._schema = schema
        faults = structural.problems(schema)
        if faults:
            raise SchemaError(faults)
        self._json_schema = structural.json_schema(schema)
        try:
            self._validator = _draft4(self._json_schema)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            where = pointer(*getattr(error, "instance_path", ()))
            raise SchemaError([(where, str(getattr(error, "message", error))[:300])]) from error
        self._rules, faults = compile_rules(schema)
        faults = [*_default_faults(schema), *faults]
        if faults:
            raise SchemaError(faults)

    def with_defaults(self, value: Any) -> Any:
        """A copy of `value` with the schema's defaults filled in, nested ones too. ValueError when it is too deep."""
        problem = first_problem(value)
        if problem:
            raise ValueError(f"{problem[0] or 'the value'}: {problem[2]}")
        return _defaulted(self._schema, value)

    def validate(self, value: Any) -> list[Problem]:
        """Every problem of `value` after defaults, at most MAX_PROBLEMS; empty when the API server would take it."""
        unfit = first_problem(value)
        if unfit:
            return [Problem(*unfit)]
        value = _defaulted(self._schema, value)
        found = list(islice(self._form_problems(value), MAX_PROBLEMS))
        return found or list(islice(self._rule_problems(value), MAX_PROBLEMS))

    def validate_change(self, old: Any, new: Any) -> list[Problem]:
        """What may not change so (rules that mention `oldSelf`), of two values after defaults, at most MAX_PROBLEMS.

        `new` is valid. `old` need not be: a rule that can't be evaluated on it is broken, as it is for the API server.
        """
        old, new = _defaulted(self._schema, old), _defaulted(self._schema, new)
        rules = (rule for rule in self._rules if rule.transition)
        return list(islice((found for rule in rules for found in rule.changes(self._schema, old, new)), MAX_PROBLEMS))

    def _form_problems(self, value: Any) -> Iterator[Problem]:
        mistyped: set[str] = set()
        errors = sorted(self._validator.iter_errors(value), key=lambda error: error.kind.name != "type")
        for error in errors:
            where = pointer(*error.instance_path)
            if error.kind.name == "type":
                mistyped.add(where)
            elif where in mistyped:
                continue  # what a value of the wrong type also breaks helps nobody
            holder: Any = self._json_schema
            for step in list(error.schema_path)[:-1]:
                holder = holder[step]
            yield from describe(error, holder if isinstance(holder, Mapping) else {})
        for steps, node, item in _places(self._schema, value):
            if node.get("x-kubernetes-list-type") == "map" and isinstance(item, list):
                yield from _repeated_keys(node, item, steps)

    def _rule_problems(self, value: Any) -> Iterator[Problem]:
        for rule in self._rules:
            if not rule.transition:
                yield from rule.problems(value)


@lru_cache(maxsize=256)
def _validator_for(canonical: str) -> SchemaValidator:
    return SchemaValidator(json.loads(canonical))


def validator_for(schema: Node) -> SchemaValidator:
    """The validator of a schema; one for all that are equal. Raises SchemaError."""
    return _validator_for(json.dumps(schema, sort_keys=False, ensure_ascii=False))


def _draft4(schema: Mapping[str, Any]) -> jsonschema_rs.Draft4Validator:
    # Rust's regex engine: linear time, and close to the RE2 that the API server uses.
    return jsonschema_rs.Draft4Validator(
        dict(schema), validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
    )


def _defaulted(node: Node, value: Any) -> Any:
    if isinstance(value, dict):
        properties = node.get("properties") or {}
        made = dict(value)
        for name, sub in properties.items():
            if name not in made and "default" in sub:
                made[name] = copy.deepcopy(sub["default"])
        below = node.get("additionalProperties")
        for name, item in made.items():
            sub = properties.get(name, below)
            made[name] = _defaulted(sub, item) if isinstance(sub, Mapping) else copy.deepcopy(item)
        return made
    if isinstance(value, list) and isinstance(node.get("items"), Mapping):
        return [_defaulted(node["items"], item) for item in value]
    return copy.deepcopy(value)


def _default_faults(schema: Node) -> Iterator[tuple[str, str]]:
    for _, where, node in structural.nodes(schema):
        if "default" in node:
            validator = _draft4(structural.json_schema(node))
            for error in validator.iter_errors(_defaulted(node, node["default"])):
                yield f"{where}/default", f"the default does not fit: {error.message[:200]}"


def _places(schema: Node, value: Any) -> Iterator[tuple[tuple[str | int, ...], Node, Any]]:
    """Every value that the schema knows of, with its place and its schema."""
    waiting: list[tuple[tuple[str | int, ...], Node, Any]] = [((), schema, value)]
    while waiting:
        steps, node, item = waiting.pop()
        yield steps, node, item
        below = dict(structural.children(node))
        pairs = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        for key, inner in pairs:
            sub = below.get(ITEMS) if isinstance(key, int) else below.get(key, below.get(ITEMS))
            if sub is not None:
                waiting.append(((*steps, key), sub, inner))


def _repeated_keys(node: Node, items: list[Any], steps: tuple[str | int, ...]) -> Iterator[Problem]:
    keys = node.get("x-kubernetes-list-map-keys") or []
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            continue
        key = json.dumps([item.get(name) for name in keys], default=str)
        if key in seen:
            named = ", ".join(f"{name} {item.get(name)!r}" for name in keys)
            message = f"{named} is there twice (also at index {seen[key]}); keep one"
            yield Problem(pointer(*steps, index), "duplicate", message)
        seen.setdefault(key, index)
