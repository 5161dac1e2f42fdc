"""A value against the spec part of an XRD's schema, as the API server would judge it, with sentences for people.

In charge of: defaults, types, bounds, unknown fields, list keys and CEL rules (`x-kubernetes-validations`), and every
problem of a value, up to MAX_PROBLEMS. Not in charge of: what policies say of a valid value, or whether a cluster would
also admit it.

Where this is stricter than the API server: an integer written 2.0 is refused (the server keeps the 2.0, and a claim
that comes back so looks changed), a null is refused unless nullable, and CEL rules run only on a value that fits
otherwise. Rules that mention `oldSelf` are compiled and never evaluated: they speak of updates.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any

import jsonschema_rs

from portal.domain import structural
from portal.domain.cel import Bindings, CelError, Environment, Program, Result
from portal.domain.json_limits import first_problem, pointer
from portal.domain.schema_messages import Problem, describe
from portal.domain.structural import ITEMS, Node

__all__ = ["Problem", "SchemaError", "SchemaValidator", "validator_for"]

MAX_PROBLEMS = 50
MAX_RULES = 200  # CEL rules of one schema
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['([^']+)'\]")
_RULE_KEYS = {"rule", "message", "messageExpression", "fieldPath", "reason"}


class SchemaError(Exception):
    """A schema that can't be used: (JSON pointer into the schema, reason) for each fault."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{where or '/'}: {reason}" for where, reason in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One CEL rule. `steps` leads to the values it is about, `field` from there to the field it names."""

    steps: tuple[str, ...]
    field: tuple[str, ...]
    environment: Environment
    program: Program
    message: str
    message_program: Program | None

    def check(self, value: Any, steps: tuple[str | int, ...]) -> Problem | None:
        """The Problem when `value`, found at `steps`, breaks the rule. A rule that fails to evaluate is broken."""
        where = pointer(*steps, *self.field)
        try:
            bindings = self.environment.bind({"self": value})
            if self.program.evaluate(bindings):
                return None
        except CelError as error:
            return Problem(where, "rule-error", f"a rule of the schema can't be evaluated on this value: {error}")
        return Problem(where, "rule-broken", self._say(bindings))

    def _say(self, bindings: Bindings) -> str:
        if self.message_program is None:
            return self.message
        try:
            return str(self.message_program.evaluate(bindings)) or self.message
        except CelError:
            return self.message  # as the API server does


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
        self._rules, faults = _compile_rules(schema)
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
            for steps, item in _at(value, rule.steps):
                problem = rule.check(item, steps)
                if problem:
                    yield problem


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


def _at(value: Any, steps: Sequence[str]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The values below `value` at `steps` (ITEMS: each of a list or map) that are there and not null."""
    found: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    for step in steps:
        deeper: list[tuple[tuple[str | int, ...], Any]] = []
        for place, item in found:
            if step == ITEMS and isinstance(item, list):
                deeper += [((*place, index), inner) for index, inner in enumerate(item)]
            elif step == ITEMS and isinstance(item, dict):
                deeper += [((*place, key), inner) for key, inner in item.items()]
            elif isinstance(item, dict) and step in item:
                deeper.append(((*place, step), item[step]))
        found = deeper
    return ((place, item) for place, item in found if item is not None)


def _compile_rules(schema: Node) -> tuple[tuple[_Rule, ...], list[tuple[str, str]]]:
    rules: list[_Rule] = []
    faults: list[tuple[str, str]] = []
    for steps, place, node in structural.nodes(schema):
        declared = node.get(structural.RULES) or []
        if not isinstance(declared, list):
            faults.append((place + pointer(structural.RULES), "must be a list"))
            continue
        for index, rule in enumerate(declared):
            where = place + pointer(structural.RULES, index)
            if len(rules) >= MAX_RULES:
                return (), [(where, f"more than {MAX_RULES} CEL rules in one schema")]
            try:
                made = _compile_rule(node, steps, rule)
            except (CelError, SchemaError) as error:
                faults.append((where, str(error)))
            else:
                rules += [made] if made else []
    return tuple(rules), faults


def _compile_rule(node: Node, steps: tuple[str, ...], rule: Any) -> _Rule | None:
    """The rule, or None for one that speaks of updates. Raises CelError or SchemaError."""
    if not isinstance(rule, Mapping) or not isinstance(rule.get("rule"), str):
        raise SchemaError([("rule", "must be an object with a CEL expression in `rule`")])
    unknown = sorted(set(rule) - _RULE_KEYS)
    if unknown:
        raise SchemaError([(unknown[0], f"not supported; a rule has {', '.join(sorted(_RULE_KEYS))}")])
    text = rule["rule"]
    transition = re.search(r"\boldSelf\b", text) is not None
    # Below an optional parent the value is there when the rule runs, so `self` is typed as a root of its own.
    environment = Environment({"self": node, "oldSelf": node} if transition else {"self": node})
    program = environment.compile(text, Result.BOOL)
    expression = rule.get("messageExpression")
    message_program = environment.compile(expression, Result.STRING) if expression else None
    field = _field_steps(node, rule.get("fieldPath"))
    if transition:
        return None
    message = rule.get("message") or f"breaks the rule {text}"
    return _Rule(steps, field, environment, program, str(message), message_program)


def _field_steps(node: Node, path: Any) -> tuple[str, ...]:
    if not path:
        return ()
    if not isinstance(path, str) or not re.fullmatch(rf"({_STEP.pattern})+", path):
        raise SchemaError([("fieldPath", f"{path!r} is no path like .replicas.max or ['a-b']")])
    steps = tuple(dotted or quoted for dotted, quoted in _STEP.findall(path))
    if structural.find(node, steps) is None:
        raise SchemaError([("fieldPath", f"{path} is not in the schema")])
    return steps
