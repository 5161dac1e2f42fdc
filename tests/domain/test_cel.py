"""CEL behind its wrapper: typed by a schema, bounded, and failing closed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.cel import POLICY_SCHEMAS, CelError, Environment, Result
from portal.domain.cel_limits import MAX_LENGTH

SPEC: Mapping[str, Any] = {
    "type": "object",
    "required": ["accelerator", "replicas"],
    "properties": {
        "accelerator": {
            "type": "object",
            "required": ["class", "count"],
            "properties": {"class": {"type": "string"}, "count": {"type": "integer"}},
        },
        "replicas": {"type": "object", "properties": {"max": {"type": "integer", "default": 1}}},
        "backup": {"type": "object", "required": ["days"], "properties": {"days": {"type": "integer"}}},
        "note": {"type": "string"},
        "factor": {"type": "number"},
        "regions": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"size": {"type": "integer"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "foo-bar": {"type": "integer", "default": 4},
        "namespace": {"type": "string", "default": "x"},
        "3x": {"type": "string"},
    },
}
VALUE: Mapping[str, Any] = {
    "accelerator": {"class": "l4", "count": 2},
    "replicas": {"max": 3},
    "regions": ["eu-west", "eu-central"],
    "labels": {"tier": "dev"},
    "parts": [{"size": 1}, {}],
    "free": {"anything": {"at": "all"}},
    "foo-bar": 4,
    "namespace": "x",
}
REQUEST = {
    "kind": "Create",
    "requester": "ann",
    "groups": ["search"],
    "team": "search",
    "environment": "dev",
    "labels": {"tier": "dev"},
    "reason": "a demo",
}
VARIABLES = {"spec": SPEC, **POLICY_SCHEMAS}
VALUES = {
    "spec": VALUE,
    "request": REQUEST,
    "usage": {"gpu.l4": {"before": 1, "after": 7, "limit": 8}, "gpu.free": {"before": 0, "after": 1, "limit": None}},
    "takes": {"gpu.l4": {"before": 0, "after": 1}},
    "cost": {"before": 100, "after": 350, "delta": 250, "monthly": 250},
}
ENVIRONMENT = Environment(VARIABLES)
BINDINGS = ENVIRONMENT.bind(VALUES)


@pytest.mark.parametrize(
    ("expression", "result", "value", "reason"),
    [
        ("spec.accelerator.count * spec.replicas.max", Result.INT, 6, "metering"),
        ('"gpu." + spec.accelerator.class', Result.STRING, "gpu.l4", "a dimension"),
        ("spec.regions", Result.STRINGS, ["eu-west", "eu-central"], "a list field"),
        ("[]", Result.STRINGS, [], "an empty list has no item type and is a list of texts"),
        ("spec.accelerator.count > 1 ? spec.regions : []", Result.STRINGS, ["eu-west", "eu-central"], "conditional"),
        ("has(spec.backup)", Result.BOOL, False, "an absent object"),
        ("has(spec.note)", Result.BOOL, False, "an absent text"),
        ("has(spec.backup.days)", Result.BOOL, False, "below an absent object"),
        ("has(spec.note) && spec.note == ''", Result.BOOL, False, "guarded by has"),
        ("spec.backup.days == 7", Result.BOOL, False, "an absent value equals nothing"),
        ("spec.regions.all(r, r.startsWith('eu-'))", Result.BOOL, True, "macro"),
        ("spec.regions.exists(r, r == 'us-east')", Result.BOOL, False, "macro"),
        ("spec.parts.exists(p, has(p.size) && p.size > 0)", Result.BOOL, True, "objects in a list"),
        ("'tier' in spec.labels && spec.labels.tier == 'dev'", Result.BOOL, True, "map of texts"),
        ("spec.foo__dash__bar", Result.INT, 4, "a name that needs escaping, as Kubernetes does it"),
        ("spec.__namespace__", Result.STRING, "x", "a reserved word"),
        ("usage['gpu.l4'].after > usage['gpu.l4'].limit", Result.BOOL, False, "usage"),
        ("has(usage['gpu.free'].limit)", Result.BOOL, False, "no quota for that dimension"),
        ("cost.delta", Result.INT, 250, "cost"),
        ("request.labels.tier == 'dev' && 'search' in request.groups", Result.BOOL, True, "request"),
        ("'regions: ' + spec.regions.join(', ')", Result.STRING, "regions: eu-west, eu-central", "messages"),
        (
            "'up to 1; you asked for ' + string(spec.accelerator.count)",
            Result.STRING,
            "up to 1; you asked for 2",
            "text",
        ),
    ],
)
def test_evaluation(expression: str, result: Result, value: Any, reason: str) -> None:
    assert ENVIRONMENT.compile(expression, result).evaluate(BINDINGS) == value, reason


@pytest.mark.parametrize(
    ("expression", "result", "part", "reason"),
    [
        (
            "spec.typo",
            Result.BOOL,
            "spec has no field 'typo'; it has: __namespace__, accelerator,",
            "a wrong path names the right ones",
        ),
        ("has(spec.backup.typo)", Result.BOOL, "spec.backup has no field 'typo'", "a typo in has() must not fail open"),
        ("spec.parts.all(p, p.typo > 1)", Result.BOOL, "spec.parts[] has no field 'typo'", "in a macro"),
        ("request.labls.tier == 'x'", Result.BOOL, "request has no field 'labls'", "in request"),
        ("usage['x'].limits > 1", Result.BOOL, "no field 'limits'", "in usage"),
        ("old.count > 1", Result.BOOL, "unknown name 'old", "a variable that is not there"),
        ("has(dyn(spec).typo)", Result.BOOL, "without a type", "dyn() would hide a typo"),
        ("has([spec, 1][0].typo)", Result.BOOL, "without a type", "so would a mixed list"),
        ("[spec, 1].exists(x, has(x.typo))", Result.BOOL, "without a type", "in a macro too"),
        ("spec.free.anything == 1", Result.BOOL, "spec.free can't be used in CEL: it is free form", "free form"),
        ("spec.port == 1", Result.BOOL, "int-or-string", "int or string"),
        ("spec.matrix.size() > 1", Result.BOOL, "nests lists", "list of lists"),
        ("spec.accelerator.count * 2.0 > 1.0", Result.BOOL, "no matching overload", "int x double"),
        ("spec.accelerator.count > '1'", Result.BOOL, "no matching overload", "int > string"),
        (
            "spec.accelerator.count",
            Result.BOOL,
            "must be bool, but the expression gives int",
            "a guardrail needs a bool",
        ),
        ("'true'", Result.BOOL, "must be bool, but the expression gives string", "a text is no bool"),
        ("spec.factor", Result.INT, "must be int, but the expression gives double", "a double is no int"),
        ("[1]", Result.STRINGS, "list<int>", "regions are texts"),
        ("spec", Result.STRING, "gives spec", "an object is no text"),
        ("1 +", Result.INT, "Syntax error", "syntax"),
        ("", Result.INT, "empty", "nothing"),
        (" \n", Result.INT, "empty", "blank"),
        ("'" + "a" * MAX_LENGTH + "'", Result.STRING, f"at most {MAX_LENGTH}", "length"),
        ("(" * 60 + "1" + ")" * 60, Result.INT, "recursion limit", "nesting"),
        ("[1].map(a, a).map(a, a).map(a, a).map(a, a) == []", Result.BOOL, "4 deep", "memory: chained macros"),
        (
            "['a'].map(a, " + "+".join(["a"] * 25) + ").map(a, " + "+".join(["a"] * 26) + ") == []",
            Result.BOOL,
            "uses of",
            "+",
        ),
        ("'a'.replace('a', 'aa')", Result.STRING, "replace() is not available", "memory: replace"),
        ("'%d'.format([1])", Result.STRING, "format() is not available", "memory: format"),
    ],
)
def test_refused_when_compiled(expression: str, result: Result, part: str, reason: str) -> None:
    with pytest.raises(CelError) as caught:
        ENVIRONMENT.compile(expression, result)
    assert part in str(caught.value), reason


def test_a_compile_error_has_line_and_column() -> None:
    with pytest.raises(CelError) as caught:
        ENVIRONMENT.compile("spec.accelerator.count > 1 &&\n  spec.replicas.maximum > 2", Result.BOOL)
    assert (caught.value.line, caught.value.column) == (2, 16)
    assert caught.value.message == "spec.replicas has no field 'maximum'; it has: max"


@pytest.mark.parametrize(
    ("expression", "result", "part", "reason"),
    [
        ("spec.backup.days > 1", Result.BOOL, "absent", "an absent integer is not 0"),
        ("spec.note + '!'", Result.STRING, "absent", "an absent text is not empty"),
        ("spec.backup.days", Result.INT, "absent", "nor as a result"),
        ("spec.note", Result.STRING, "absent", "nor as a result"),
        ("9223372036854775807 + spec.accelerator.count", Result.INT, "overflow", "overflow is no small number"),
        ("spec.accelerator.count / (spec.replicas.max - 3)", Result.INT, "divide by zero", "division"),
        ("spec.regions[7]", Result.STRING, "index", "index out of range"),
        ("request.labels.nope == 'x'", Result.BOOL, "Key not found", "a label that is not there"),
        ("usage['gpu.free'].after > usage['gpu.free'].limit", Result.BOOL, "absent", "no quota is not 0"),
        ("int(request.team) > 1", Result.BOOL, "", "no number"),
        ("'a'.matches('(')", Result.BOOL, "regular expression", "a pattern that is none"),
        ("['a', 1]", Result.STRINGS, "must be list(string)", "mixed items"),
    ],
)
def test_an_evaluation_error_is_raised_and_never_a_value(
    expression: str, result: Result, part: str, reason: str
) -> None:
    program = ENVIRONMENT.compile(expression, result)
    with pytest.raises(CelError) as caught:
        program.evaluate(BINDINGS)
    assert part.lower() in str(caught.value).lower(), reason


@pytest.mark.parametrize(
    ("change", "part", "reason"),
    [
        ({"accelerator": {"class": "l4"}}, "spec.accelerator.count: required", "required and absent is not 0"),
        ({"accelerator": None}, "spec.accelerator: required", "null is absent"),
        ({"accelerator": {"class": "l4", "count": "2"}}, "spec.accelerator.count", "a number sent as a string"),
        ({"accelerator": {"class": "l4", "count": 2.0}}, "spec.accelerator.count", "case 11: an integer is an integer"),
        ({"accelerator": {"class": "l4", "count": True}}, "spec.accelerator.count", "a bool is no integer"),
        ({"accelerator": {"class": "l4", "count": 2**63}}, "64 bits", "does not wrap around"),
        ({"accelerator": {"class": "\ud800", "count": 1}}, "UTF-8", "half a surrogate pair"),
        ({"accelerator": ["l4"]}, "an object is wanted", "wrong shape"),
        ({"regions": "eu"}, "a list is wanted", "a text is no list"),
        ({"regions": ["eu", 1]}, "spec.regions[1]", "an item of the wrong type"),
        ({"labels": {"a": 1}}, "spec.labels.a", "a map's value of the wrong type"),
        ({"parts": [{"size": "1"}]}, "spec.parts[0].size", "in an object in a list"),
    ],
)
def test_data_that_does_not_fit_its_type_is_not_bound(change: dict[str, Any], part: str, reason: str) -> None:
    with pytest.raises(CelError) as caught:
        ENVIRONMENT.bind({**VALUES, "spec": {**VALUE, **change}})
    assert part in str(caught.value), reason


def test_variables_must_be_the_declared_ones() -> None:
    with pytest.raises(CelError, match="values are wanted for"):
        ENVIRONMENT.bind({"spec": VALUE})


def test_iterations_are_bounded() -> None:
    value = {**VALUE, "regions": [f"r{number}" for number in range(200)]}
    program = ENVIRONMENT.compile("spec.regions.all(a, spec.regions.all(b, a != b || true))", Result.BOOL)
    with pytest.raises(CelError, match="Iteration budget"):
        program.evaluate(ENVIRONMENT.bind({**VALUES, "spec": value}))


@pytest.mark.parametrize(
    ("schema", "part"),
    [
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "variable spec can't be used in CEL"),
        ({"x-kubernetes-int-or-string": True}, "variable spec can't be used in CEL"),
        (
            {"type": "object", "properties": {name: SPEC["properties"]["labels"] for name in ("tags", "Tags")}},
            "can't all be used together",
        ),
        (
            {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(5_001)}},
            "5000 fields",
        ),
    ],
)
def test_schemas_without_a_type(schema: dict[str, Any], part: str) -> None:
    with pytest.raises(CelError) as caught:
        Environment({"spec": schema})
    assert part in str(caught.value)


NAMES = [
    "Clear",
    "CopyFrom",
    "Extensions",
    "HasField",
    "self",
    "None",
    "value",
    "in",
    "null",
    "a__b",
    "x.y",
    "x/y",
    "-a",
]


@pytest.mark.parametrize("name", [*NAMES, "has", "size", "int", "spec", "foo_bar", "fooBar", "true", "while"])
def test_odd_field_names_are_read_right(name: str) -> None:
    from portal.domain.cel_types import escape

    schema = {"type": "object", "properties": {other: {"type": "string"} for other in {*NAMES, name}}}
    environment = Environment({"spec": schema})
    program = environment.compile(f"spec.{escape(name)} == 'here' && has(spec.{escape(name)})", Result.BOOL)
    assert program.evaluate(environment.bind({"spec": {name: "here"}})) is True
    assert program.evaluate(environment.bind({"spec": {"self" if name != "self" else "size": "here"}})) is False


@pytest.mark.parametrize(
    "name", ["labels", "foo-bar", "foo_bar", "fooBar", "_x", "x1_2", "ALL_CAPS", "x.y", "in", "__a"]
)
def test_maps_may_have_odd_names_too(name: str) -> None:
    from portal.domain.cel_types import escape

    environment = Environment({"spec": {"type": "object", "properties": {name: SPEC["properties"]["labels"]}}})
    program = environment.compile(f"spec.{escape(name)}.tier == 'dev'", Result.BOOL)
    assert program.evaluate(environment.bind({"spec": {name: {"tier": "dev"}}})) is True


def test_a_name_that_can_not_be_written_says_so() -> None:
    environment = Environment({"spec": {"type": "object", "properties": {"DESCRIPTOR": {"type": "string"}}}})
    with pytest.raises(CelError, match="its name can't be written in CEL"):
        environment.compile("spec.DESCRIPTOR == ''", Result.BOOL)


def test_a_program_can_be_used_by_many_threads() -> None:
    program = ENVIRONMENT.compile("spec.regions.all(r, r == request.team) && spec.accelerator.count > 0", Result.BOOL)
    wrong: list[str] = []

    def work(number: int) -> None:
        team = f"team-{number}"
        for count in range(200):
            spec = {**VALUE, "accelerator": {"class": "l4", "count": count % 2}, "regions": [team] * 5}
            bindings = ENVIRONMENT.bind({**VALUES, "spec": spec, "request": {**REQUEST, "team": team}})
            if program.evaluate(bindings) is not (count % 2 == 1):
                wrong.append(f"{team} {count}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@given(st.one_of(st.text(max_size=60), st.text("spec.accltorun()[]{}'\"+-*/%<>=!&|?:, \n0123", max_size=60)))
def test_any_text_compiles_or_is_refused(expression: str) -> None:
    try:
        program = ENVIRONMENT.compile(expression, Result.BOOL)
        assert isinstance(program.evaluate(BINDINGS), bool)
    except CelError as error:
        assert str(error)


@given(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False))
def test_values_arrive_unchanged(count: int, note: str, factor: float) -> None:
    spec = {**VALUE, "accelerator": {"class": note, "count": count}, "note": note, "factor": factor}
    bindings = ENVIRONMENT.bind({**VALUES, "spec": spec})
    assert ENVIRONMENT.compile("spec.accelerator.count", Result.INT).evaluate(bindings) == count
    assert ENVIRONMENT.compile("spec.accelerator.class", Result.STRING).evaluate(bindings) == note
    same = ENVIRONMENT.compile("has(spec.note) && spec.note == spec.accelerator.class", Result.BOOL)
    assert same.evaluate(bindings) is True
