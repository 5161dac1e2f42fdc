"""A spec judged as the API server would judge it, in sentences for people."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.schema import MAX_PROBLEMS, SchemaError, SchemaValidator, validator_for

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["model", "replicas"],
    "properties": {
        "model": {
            "type": "object",
            "required": ["source", "revision"],
            "properties": {
                "source": {
                    "type": "string",
                    "pattern": "^hf://[a-z]+/[a-z]+$",
                    "maxLength": 40,
                    "description": "Where the weights are, as hf://OWNER/NAME.",
                },
                "revision": {"type": "string", "minLength": 1, "default": "main"},
            },
        },
        "replicas": {
            "type": "object",
            "default": {"min": 1},
            "properties": {
                "min": {"type": "integer", "minimum": 1, "maximum": 8, "default": 1},
                "max": {"type": "integer", "minimum": 1, "maximum": 8, "default": 1},
            },
            "x-kubernetes-validations": [
                {"rule": "self.min <= self.max", "message": "min must be at most max", "fieldPath": ".min"},
            ],
        },
        "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
        "count": {"type": "integer"},
        "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 1},
        "step": {"type": "integer", "multipleOf": 4},
        "until": {"type": "string", "format": "date-time"},
        "note": {"type": "string", "nullable": True},
        "regions": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "set",
            "items": {"type": "string"},
        },
        "mounts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "path": {"type": "string", "default": "/data"}},
                "x-kubernetes-validations": [
                    {
                        "rule": "self.path.startsWith('/')",
                        "messageExpression": "'mount ' + self.name + ' needs a path that begins with /'",
                        "fieldPath": ".path",
                    }
                ],
            },
        },
        "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string", "maxLength": 5}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "port": {"x-kubernetes-int-or-string": True},
        "odd/name~": {"type": "boolean"},
        "either": {
            "type": "object",
            "description": "By name or by url.",
            "properties": {"name": {"type": "string"}, "url": {"type": "string"}},
            "oneOf": [{"required": ["name"]}, {"required": ["url"]}],
        },
    },
}
VALID: dict[str, Any] = {"model": {"source": "hf://a/b", "revision": "main"}, "replicas": {"min": 1, "max": 2}}
VALIDATOR = SchemaValidator(SCHEMA)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, "the least"),
        ({"replicas": {}}, "defaults are applied first"),
        ({"count": 2**53 + 1}, "case 11: above 2^53"),
        ({"count": 2**63 - 1}, "the largest int64"),
        ({"ratio": 1}, "an integer is a number"),
        ({"ratio": 0.5}, "a fraction"),
        ({"step": 8}, "a multiple"),
        ({"until": "2026-12-01T00:00:00Z"}, "format"),
        ({"note": None}, "nullable"),
        ({"free": {"x": [1, {"y": None}]}}, "unknown fields are preserved here"),
        ({"port": 80}, "int or string"),
        ({"port": "http"}, "int or string"),
        ({"labels": {"any": "name"}}, "additionalProperties"),
        ({"odd/name~": True}, "odd name"),
        ({"mounts": [{"name": "a"}, {"name": "b", "path": "/b"}]}, "distinct keys"),
        ({"free": {"text": "{{7*7}} ${{ secrets.X }} <script> '; drop table"}}, "case 18: a text is a text"),
    ],
)
def test_valid(change: dict[str, Any], reason: str) -> None:
    assert VALIDATOR.validate({**VALID, **change}) == [], reason


@pytest.mark.parametrize(
    ("change", "pointer", "code", "part", "reason"),
    [
        ({"replcas": 1}, "/replcas", "unknown-field", "did you mean 'replicas'?", "unknown at the top"),
        (
            {"model": {"source": "hf://a/b", "x": 1}},
            "/model/x",
            "unknown-field",
            "there are: source, revision",
            "nested",
        ),
        ({"model": {}}, "/model/source", "missing-field", "'source' is required; add it, a text", "required"),
        ({"count": "2"}, "/count", "wrong-type", "write it without quotes", "a number sent as a string"),
        ({"count": 2.0}, "/count", "wrong-type", "got 2.0; write 2", "case 11: 2.0 is no integer"),
        (
            {"count": 1e18},
            "/count",
            "wrong-type",
            "without a fraction or an exponent",
            "case 11: above 2^53 it lost digits",
        ),
        ({"count": 2.5}, "/count", "wrong-type", "must be an integer, got 2.5", "a fraction"),
        ({"count": True}, "/count", "wrong-type", "got true", "a bool is no integer"),
        ({"count": None}, "/count", "wrong-type", "leave the field out instead", "null"),
        ({"count": 2**63}, "/count", "out-of-range", "9223372036854775808", "past int64"),
        ({"count": 10**500}, "/count", "out-of-range", "400 digits", "a huge integer"),
        ({"ratio": float("nan")}, "/ratio", "out-of-range", "no number that JSON can hold", "NaN"),
        ({"ratio": 0}, "/ratio", "out-of-range", "above 0 and at most 1", "exclusive minimum"),
        (
            {"replicas": {"max": 9}},
            "/replicas/max",
            "out-of-range",
            "9 is out of range; use a value from 1 to 8",
            "maximum",
        ),
        ({"replicas": {"max": -(10**30)}}, "/replicas/max", "out-of-range", "from 1 to 8", "far below"),
        ({"step": 6}, "/step", "out-of-range", "6 is no multiple of 4", "multipleOf"),
        ({"size": "smal"}, "/size", "not-one-of", "not one of: small, large; did you mean small?", "enum"),
        ({"size": 1}, "/size", "wrong-type", "write it in quotes", "a number for a text"),
        (
            {"model": {"source": "x"}},
            "/model/source",
            "bad-format",
            "Where the weights are",
            "a pattern shows what it is for",
        ),
        (
            {"model": {"source": "hf://a/b", "revision": ""}},
            "/model/revision",
            "too-short",
            "at least 1 is",
            "minLength",
        ),
        ({"until": "tomorrow"}, "/until", "bad-format", "no valid date-time", "format"),
        ({"regions": ["a", "b", "a"]}, "/regions", "duplicate", '"a" is there twice', "a set"),
        ({"regions": ["a", "b", "c", "d"]}, "/regions", "too-many", "has 4 items, at most 3 are accepted", "maxItems"),
        ({"regions": [1]}, "/regions/0", "wrong-type", "must be a text", "an item"),
        ({"regions": "a"}, "/regions", "wrong-type", "must be a list", "a text for a list"),
        (
            {"mounts": [{"name": "a"}, {"name": "a"}]},
            "/mounts/1",
            "duplicate",
            "name 'a' is there twice",
            "a list's keys",
        ),
        ({"labels": {"a": "toolong"}}, "/labels/a", "too-long", "has 7 characters, at most 5", "a map's value"),
        ({"labels": {"a": "", "b": "", "c": ""}}, "/labels", "too-many", "has 3 fields", "maxProperties"),
        ({"odd/name~": 1}, "/odd~1name~0", "wrong-type", "true or false", "a pointer escapes / and ~"),
        ({"either": {"name": "a", "url": "b"}}, "/either", "no-alternative", "By name or by url", "oneOf"),
        ({"either": {}}, "/either", "no-alternative", "fits none", "oneOf"),
        ({"port": 1.5}, "/port", "wrong-type", "an integer or a text", "int or string is neither a fraction"),
        ({"replicas": {"min": 2, "max": 1}}, "/replicas/min", "rule-broken", "min must be at most max", "a CEL rule"),
        (
            {"mounts": [{"name": "x", "path": "y"}]},
            "/mounts/0/path",
            "rule-broken",
            "mount x needs a path",
            "its own message",
        ),
        ({"note": "a\x00"}, "/note", "bad-text", "U+0000", "no database or claim holds it"),
        ({"note": "\ud800"}, "/note", "bad-text", "surrogate", "not UTF-8"),
        ({"free": nested(200)}, "/free/a/a", "too-deep", "64 levels", "nesting 200 deep, where anything goes"),
        ({"free": nested(100_000)}, "/free/a/a", "too-deep", "64 levels", "no recursion error"),
        ({"free": {"x": [0] * 30_000}}, "", "too-large", "20000 values", "huge"),
        ({"free": {1: "x"}}, "/free", "wrong-type", "write it in quotes", "a key that is no text"),
    ],
)
def test_each_problem_names_field_value_and_way_out(
    change: dict[str, Any], pointer: str, code: str, part: str, reason: str
) -> None:
    (problem,) = VALIDATOR.validate({**VALID, **change})
    assert (problem.pointer, problem.code) == (pointer, code), reason
    assert part in problem.message, reason
    assert len(problem.message) < 600, "a message stays readable whatever was sent"


@pytest.mark.parametrize("value", [None, [], "x", 1, True])
def test_a_spec_that_is_no_object(value: Any) -> None:
    (problem,) = VALIDATOR.validate(value)
    assert (problem.pointer, problem.code) == ("", "wrong-type")


def test_all_problems_are_named_and_not_only_the_first() -> None:
    found = VALIDATOR.validate({"model": {"source": 1, "y": 2}, "replicas": {"min": 0, "max": "3"}, "x": 1})
    assert {problem.pointer for problem in found} == {
        "/model/source",
        "/model/y",
        "/replicas/min",
        "/replicas/max",
        "/x",
    }


def test_the_number_of_problems_is_bounded() -> None:
    assert len(VALIDATOR.validate({f"f{number}": 1 for number in range(500)})) == MAX_PROBLEMS


def test_defaults_are_nested_and_never_touch_what_was_given() -> None:
    value = {"model": {"source": "hf://a/b"}, "mounts": [{"name": "a"}]}
    before = copy.deepcopy(value)
    filled = VALIDATOR.with_defaults(value)
    assert filled == {
        "model": {"source": "hf://a/b", "revision": "main"},
        "mounts": [{"name": "a", "path": "/data"}],
        "replicas": {"min": 1, "max": 1},
        "size": "small",
    }
    filled["replicas"]["min"] = 7
    assert value == before
    assert VALIDATOR.with_defaults(value)["replicas"]["min"] == 1, "the schema's default is copied"


def test_defaults_of_a_value_that_is_too_deep() -> None:
    with pytest.raises(ValueError, match="64 levels"):
        VALIDATOR.with_defaults({"free": nested(5_000)})


def rule(**members: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {"type": "integer"}}, "x-kubernetes-validations": [members]}


STRING = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "pointer", "part", "reason"),
    [
        ({"title": "x"}, "", "type is missing", "no type"),
        ({"type": "text"}, "", "type is 'text'", "unknown type"),
        ({"type": "object", "properties": {"a": {"typ": "string"}}}, "/properties/a", "typ can't be used", "typo"),
        ({"type": "object", "properties": {"a": {**STRING, "minLenght": 1}}}, "/properties/a", "minLenght", "typo"),
        ({"type": "object", "properties": {"a": {"$ref": "#/x"}}}, "/properties/a", "$ref", "reference"),
        ({"type": "array"}, "", "an array needs items", "array without items"),
        ({"type": "object", "properties": {}, "additionalProperties": STRING}, "", "exclude each other", "both"),
        ({"type": "object", "additionalProperties": False}, "", "must be a schema", "additionalProperties: false"),
        (
            {"type": "object", "required": ["a"], "properties": {"b": STRING}},
            "",
            "names a, which is no property",
            "required",
        ),
        (
            {"type": "object", "properties": {"a": {**STRING, "default": 1}}},
            "/properties/a/default",
            "does not fit",
            "default",
        ),
        (
            {"type": "object", "properties": {"a": {**STRING, "pattern": "(a"}}},
            "/properties/a/pattern",
            "regex",
            "pattern",
        ),
        ({"type": "object", "properties": {"a": {**STRING, "pattern": "(?=a)b"}}}, "", "", "no look-around in RE2"),
        (
            {"type": "object", "properties": {"a": {**STRING, "maxLength": "1"}}},
            "/properties/a/maxLength",
            "",
            "keyword's type",
        ),
        (
            {"type": "object", "anyOf": [{"$ref": "https://example.org/x"}]},
            "/anyOf/0",
            "$ref can't be used",
            "no schema reaches out",
        ),
        (
            {"type": "object", "not": {"allOf": [{"default": 1}]}},
            "/not/allOf/0",
            "default can't be used",
            "nested deeper",
        ),
        ({"type": "object", "oneOf": ["x"]}, "/oneOf/0", "must be an object", "an alternative that is no schema"),
        (rule(rule="self.b > 1"), "/x-kubernetes-validations/0", "self has no field 'b'", "a rule's wrong path"),
        (rule(rule="self.a"), "/x-kubernetes-validations/0", "must be bool", "a rule is a bool"),
        (rule(rule="has(self.typo)"), "/x-kubernetes-validations/0", "no field 'typo'", "in has()"),
        (
            rule(rule="true", messageExpression="1"),
            "/x-kubernetes-validations/0",
            "must be string",
            "messageExpression",
        ),
        (rule(rule="true", fieldPath=".b"), "/x-kubernetes-validations/0", ".b is not in the schema", "fieldPath"),
        (rule(rule="true", fieldPath="b["), "/x-kubernetes-validations/0", "no path like", "fieldPath's form"),
        (
            rule(rule="self.a > oldSelf.b"),
            "/x-kubernetes-validations/0",
            "self has no field 'b'",
            "a transition rule",
        ),
        (
            {
                "type": "object",
                "properties": {
                    "a": {
                        "type": "array",
                        "items": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
                    }
                },
            },
            "/properties/a/items/x-kubernetes-validations/0",
            "oldSelf can't be used below a list",
            "nobody knows which item was which",
        ),
        (rule(rule="true", optionalOldSelf="x"), "/x-kubernetes-validations/0", "optionalOldSelf", "not supported"),
        (rule(message="x"), "/x-kubernetes-validations/0", "CEL expression", "no rule"),
        ({"type": "object", "properties": []}, "", "properties must be an object", "a list"),
        (nested(1), "", "a can't be used", "no schema at all"),
    ],
)
def test_schemas_that_can_not_be_used(schema: dict[str, Any], pointer: str, part: str, reason: str) -> None:
    with pytest.raises(SchemaError) as caught:
        SchemaValidator(schema)
    where, message = caught.value.problems[0]
    assert where.startswith(pointer), reason
    assert part in message, reason


def test_a_schema_nested_too_deep() -> None:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(2_000):
        schema = {"type": "object", "properties": {"a": schema}}
    with pytest.raises(SchemaError, match="levels deep"):
        SchemaValidator(schema)


def test_a_transition_rule_does_not_stop_a_create() -> None:
    validator = SchemaValidator(rule(rule="self.a == oldSelf.a"))
    assert validator.validate({"a": 1}) == []


NAMED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "grows"}]},
        },
    },
}
WHOLE = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
TRANSITIONS = [
    (rule(rule="self.a == oldSelf.a", message="a stays"), {"a": 1}, {"a": 1}, [], "as it was"),
    (
        rule(rule="self.a == oldSelf.a", message="a stays", fieldPath=".a"),
        {"a": 1},
        {"a": 2},
        [("/a", "a stays")],
        "no",
    ),
    (
        {**WHOLE, "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "all of it stays"}]},
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        [("", "all of it stays")],
        "objects are compared as a whole",
    ),
    (
        {"type": "object", "properties": {"l": NAMED}},
        {"l": [{"name": "x", "size": 2}, {"name": "y", "size": 9}]},
        {"l": [{"name": "y", "size": 9}, {"name": "z", "size": 0}, {"name": "x", "size": 1}]},
        [("/l/2/size", "grows")],
        "items of a list of type map are found by their keys, and a new one has no past",
    ),
    (
        {"type": "object", "properties": {"l": NAMED}},
        {"l": []},
        {"l": [{"name": "y", "size": 9}]},
        [],
        "nothing was there before",
    ),
    (
        {
            "type": "object",
            "properties": {
                "m": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "integer",
                        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}],
                    },
                }
            },
        },
        {"m": {"a": 1, "b": 2}},
        {"m": {"a": 2, "c": 3}},
        [("/m/a", "stays")],
        "values of a map by their names",
    ),
    (
        {
            "type": "object",
            "properties": {
                "a": {
                    "type": "integer",
                    "default": 1,
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}],
                }
            },
        },
        {"a": 1},
        {},
        [],
        "defaults count, before and after",
    ),
]


@pytest.mark.parametrize(("schema", "old", "new", "problems", "reason"), TRANSITIONS)
def test_a_transition_rule_is_asked_of_what_was_there_before(
    schema: dict[str, Any], old: dict[str, Any], new: dict[str, Any], problems: list[tuple[str, str]], reason: str
) -> None:
    validator = SchemaValidator(schema)
    assert validator.validate(new) == []
    assert [(each.pointer, each.message) for each in validator.validate_change(old, new)] == problems, reason


def test_a_rule_that_can_not_be_evaluated_refuses() -> None:
    (problem,) = SchemaValidator(rule(rule="self.a > 1")).validate({})
    assert (problem.code, problem.pointer) == ("rule-error", "")
    assert "absent" in problem.message


def test_equal_schemas_share_a_validator() -> None:
    assert validator_for(SCHEMA) is validator_for(copy.deepcopy(SCHEMA))
    assert validator_for(SCHEMA) is not validator_for({"type": "object"})


_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from([*SCHEMA["properties"], "x"]), inner)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "x"]), _json))
def test_any_value_is_judged_without_a_crash(value: dict[str, Any]) -> None:
    problems = VALIDATOR.validate(value)
    assert len(problems) <= MAX_PROBLEMS
    for problem in problems:
        assert problem.pointer == "" or problem.pointer.startswith("/")


@given(st.integers(1, 8), st.integers(1, 8), st.lists(st.text(max_size=3), max_size=3, unique=True))
def test_a_valid_value_stays_valid_with_its_defaults(low: int, high: int, regions: list[str]) -> None:
    value = {**VALID, "replicas": {"min": min(low, high), "max": max(low, high)}, "regions": regions}
    if VALIDATOR.validate(value):
        assert any("\x00" in region for region in regions)
        return
    assert VALIDATOR.validate(VALIDATOR.with_defaults(value)) == []
    assert VALIDATOR.with_defaults(VALIDATOR.with_defaults(value)) == VALIDATOR.with_defaults(value)
