"""The CEL rules of an XRD's schema (`x-kubernetes-validations`): compiled once, asked of each value they are about.

In charge of: which values a rule is about, of a new object and of one that changes (rules that mention `oldSelf`), and
the Problem of a broken rule. Not in charge of: the rest of a schema (schema, structural), or the language itself (cel).

A transition rule is asked only where the value was there before too (Kubernetes, "Extend the Kubernetes API with
CustomResourceDefinitions", "Transition rules", read 2026-12): properties and a map's values by their names, items of a
list by their keys if it is a list of type map. In any other list nothing says which item is which, so such a rule is
refused there, as the API server refuses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portal.domain import structural
from portal.domain.cel import Bindings, CelError, Environment, Program, Result
from portal.domain.json_limits import pointer
from portal.domain.schema_messages import Problem
from portal.domain.structural import ITEMS, Node

MAX_RULES = 200  # CEL rules of one schema
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\['([^']+)'\]")
_KEYS = {"rule", "message", "messageExpression", "fieldPath", "reason"}

Steps = tuple[str | int, ...]


class SchemaError(Exception):
    """A schema that can't be used: (JSON pointer into the schema, reason) for each fault."""

    def __init__(self, problems: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{where or '/'}: {reason}" for where, reason in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Rule:
    """One CEL rule. `steps` leads to the values it is about, `field` from there to the field it names. `transition`: it
    compares a value with what it was, so it is asked of changes only."""

    steps: tuple[str, ...]
    field: tuple[str, ...]
    environment: Environment
    program: Program
    message: str
    message_program: Program | None
    transition: bool

    def problems(self, value: Any) -> Iterator[Problem]:
        """What breaks this rule, which is none of transition, in a value with its defaults."""
        for steps, item in _at(value, self.steps):
            if problem := self._check({"self": item}, steps):
                yield problem

    def changes(self, schema: Node, old: Any, new: Any) -> Iterator[Problem]:
        """What breaks this rule of transition when `old` becomes `new`, both with their defaults."""
        for steps, was, item in _pairs(schema, old, new, self.steps):
            if problem := self._check({"self": item, "oldSelf": was}, steps):
                yield problem

    def _check(self, values: Mapping[str, Any], steps: Steps) -> Problem | None:
        """The Problem when the value, found at `steps`, breaks the rule. A rule that fails to evaluate is broken."""
        where = pointer(*steps, *self.field)
        try:
            bindings = self.environment.bind(values)
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


def _at(value: Any, steps: Sequence[str]) -> Iterator[tuple[Steps, Any]]:
    """The values below `value` at `steps` (ITEMS: each of a list or map) that are there and not null."""
    found: list[tuple[Steps, Any]] = [((), value)]
    for step in steps:
        deeper: list[tuple[Steps, Any]] = []
        for place, item in found:
            if step == ITEMS and isinstance(item, list):
                deeper += [((*place, index), inner) for index, inner in enumerate(item)]
            elif step == ITEMS and isinstance(item, dict):
                deeper += [((*place, key), inner) for key, inner in item.items()]
            elif isinstance(item, dict) and step in item:
                deeper.append(((*place, step), item[step]))
        found = deeper
    return ((place, item) for place, item in found if item is not None)


def _pairs(schema: Node, old: Any, new: Any, steps: Sequence[str]) -> Iterator[tuple[Steps, Any, Any]]:
    """(place in `new`, old value, new value) of the values at `steps` that are there, and not null, in both."""
    found: list[tuple[Steps, Any, Any]] = [((), old, new)]
    for index, step in enumerate(steps):
        holder = structural.find(schema, steps[:index]) or {}
        found = [pair for triple in found for pair in _below(holder, step, *triple)]
    return ((place, was, item) for place, was, item in found if was is not None and item is not None)


def _below(holder: Node, step: str, place: Steps, old: Any, new: Any) -> Iterator[tuple[Steps, Any, Any]]:
    if isinstance(old, list) and isinstance(new, list) and step == ITEMS:
        keys = holder.get("x-kubernetes-list-map-keys") or []
        before = {_key(item, keys): item for item in old if isinstance(item, dict)}
        for index, item in enumerate(new):
            if isinstance(item, dict) and _key(item, keys) in before:
                yield (*place, index), before[_key(item, keys)], item
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in new if step == ITEMS else [step]:
            if name in old and name in new:
                yield (*place, name), old[name], new[name]


def _key(item: Mapping[str, Any], keys: Sequence[str]) -> str:
    return json.dumps([item.get(name) for name in keys], default=str)


def compile_rules(schema: Node) -> tuple[tuple[Rule, ...], list[tuple[str, str]]]:
    """All rules of a schema, and (JSON pointer into the schema, reason) for each that can't be used."""
    rules: list[Rule] = []
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
                if made.transition:
                    _check_correlatable(schema, steps)
            except (CelError, SchemaError) as error:
                faults.append((where, str(error)))
            else:
                rules.append(made)
    return tuple(rules), faults


def _check_correlatable(schema: Node, steps: tuple[str, ...]) -> None:
    for index, step in enumerate(steps):
        holder = structural.find(schema, steps[:index]) or {}
        if step == ITEMS and holder.get("type") == "array" and holder.get("x-kubernetes-list-type") != "map":
            reason = (
                "oldSelf can't be used below a list that is not of x-kubernetes-list-type map: which item was which?"
            )
            raise SchemaError([("rule", reason)])


def _compile_rule(node: Node, steps: tuple[str, ...], rule: Any) -> Rule:
    """The rule. Raises CelError or SchemaError."""
    if not isinstance(rule, Mapping) or not isinstance(rule.get("rule"), str):
        raise SchemaError([("rule", "must be an object with a CEL expression in `rule`")])
    unknown = sorted(set(rule) - _KEYS)
    if unknown:
        raise SchemaError([(unknown[0], f"not supported; a rule has {', '.join(sorted(_KEYS))}")])
    text = rule["rule"]
    transition = re.search(r"\boldSelf\b", text) is not None
    # Below an optional parent the value is there when the rule runs, so `self` is typed as a root of its own.
    environment = Environment({"self": node, "oldSelf": node} if transition else {"self": node})
    program = environment.compile(text, Result.BOOL)
    expression = rule.get("messageExpression")
    message_program = environment.compile(expression, Result.STRING) if expression else None
    field = _field_steps(node, rule.get("fieldPath"))
    message = rule.get("message") or f"breaks the rule {text}"
    return Rule(steps, field, environment, program, str(message), message_program, transition)


def _field_steps(node: Node, path: Any) -> tuple[str, ...]:
    if not path:
        return ()
    if not isinstance(path, str) or not re.fullmatch(rf"({_STEP.pattern})+", path):
        raise SchemaError([("fieldPath", f"{path!r} is no path like .replicas.max or ['a-b']")])
    steps = tuple(dotted or quoted for dotted, quoted in _STEP.findall(path))
    if structural.find(node, steps) is None:
        raise SchemaError([("fieldPath", f"{path} is not in the schema")])
    return steps
