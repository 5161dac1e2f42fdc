"""A form from any schema: which field asks for what, and that what is typed comes out with the schema's types."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from portal.web import posted
from portal.web.fields import MAX_DEPTH, MISSING, Field, give_ids, spec_fields

TEXT = {"type": "string"}


def only(schema: dict[str, Any], *, required: bool = False) -> Field:
    """The one field `x` of a spec of this schema."""
    whole = {"type": "object", "properties": {"x": schema}, **({"required": ["x"]} if required else {})}
    return spec_fields(whole).children[0]


@pytest.mark.parametrize(
    ("schema", "widget", "reason"),
    [
        (TEXT, "text", "a text"),
        ({**TEXT, "maxLength": 5000}, "area", "a long text"),
        ({**TEXT, "enum": ["a", "b"]}, "choice", "one of several texts"),
        ({"type": "integer", "enum": [1, 2]}, "choice", "one of several numbers"),
        ({"type": "integer"}, "number", "an integer"),
        ({"type": "number"}, "number", "a number"),
        ({"type": "boolean", "default": False}, "checkbox", "yes or no, and always one of them"),
        ({"type": "boolean"}, "choice", "yes, no, or not said"),
        ({"type": "array", "items": TEXT}, "lines", "a list of texts"),
        ({"type": "array", "items": {"type": "integer"}}, "lines", "a list of numbers"),
        ({"type": "array", "items": {**TEXT, "enum": ["a"]}}, "checks", "a set of known texts"),
        ({"type": "array", "items": {"type": "object", "properties": {"a": TEXT}}}, "yaml", "a list of objects"),
        ({"type": "object", "additionalProperties": TEXT}, "yaml", "a map"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, "yaml", "free form"),
        ({"x-kubernetes-preserve-unknown-fields": True}, "yaml", "anything"),
        ({"x-kubernetes-int-or-string": True}, "text", "an integer or a text"),
        ({"type": "object", "properties": {"a": TEXT}}, "group", "an object"),
    ],
)
def test_each_shape_has_its_field(schema: dict[str, Any], widget: str, reason: str) -> None:
    assert only(schema).widget == widget, reason


def test_objects_that_are_too_deep_become_yaml() -> None:
    schema: dict[str, Any] = TEXT
    for _ in range(MAX_DEPTH + 1):
        schema = {"type": "object", "properties": {"x": schema}}
    fields = list(spec_fields(schema).walk())
    assert fields[-1].widget == "yaml"
    assert fields[-1].pointer == "/spec" + "/x" * MAX_DEPTH


@pytest.mark.parametrize(
    ("schema", "typed", "value", "reason"),
    [
        (TEXT, " chat ", "chat", "blanks around are a slip"),
        (TEXT, "0123", "0123", "stays a text (case 9)"),
        (TEXT, "no", "no", "stays a text (case 9)"),
        (TEXT, "{{7*7}}", "{{7*7}}", "stays literal (case 18)"),
        ({"type": "integer"}, "42", 42, "an integer"),
        ({"type": "integer"}, "9007199254740993", 9007199254740993, "above 2^53, exact (case 11)"),
        ({"type": "number"}, "0.5", 0.5, "a number"),
        ({"type": "number"}, "2", 2, "a number that is whole"),
        ({"type": "boolean"}, "false", False, "no, said"),
        ({"type": "integer", "enum": [1, 2]}, "2", 2, "the number, not its text"),
        ({"type": "array", "items": TEXT}, "a\r\n\r\n b \n", ["a", "b"], "one per line, empty ones left out"),
        ({"type": "array", "items": {"type": "integer"}}, "1\n2", [1, 2], "numbers"),
        ({"type": "object", "additionalProperties": TEXT}, "a: 'y'\nb: y", {"a": "y", "b": "y"}, "YAML, read strictly"),
        ({"x-kubernetes-int-or-string": True}, "80", 80, "an integer"),
        ({"x-kubernetes-int-or-string": True}, "80%", "80%", "a text"),
        (TEXT, "", MISSING, "left empty, left out"),
    ],
)
def test_what_is_typed_gets_the_type_of_its_schema(schema: dict[str, Any], typed: str, value: Any, reason: str) -> None:
    field = only(schema)
    data = QueryDict(mutable=True)
    data["/spec/x"] = typed
    assert posted.take([field], data) == []
    made, problems = posted.make(field)
    assert problems == [], reason
    assert made is value if value is MISSING else (type(made), made) == (type(value), value), reason


@pytest.mark.parametrize(
    ("schema", "typed", "says", "reason"),
    [
        ({"type": "integer"}, "1.5", "whole number", "no integer"),
        ({"type": "integer"}, "1e3", "whole number", "no digits"),
        ({"type": "integer"}, "١٢", "whole number", "digits of another script"),
        ({"type": "integer"}, "9" * 500, "whole number", "more digits than anybody means"),
        ({"type": "number"}, "1e999", "a number", "no JSON number"),
        ({"type": "number"}, "NaN", "a number", "no JSON number"),
        ({"type": "array", "items": {"type": "integer"}}, "1\nx", "whole number", "one line is wrong"),
        ({"type": "object", "additionalProperties": TEXT}, "a: 1\na: 2", "twice", "duplicate keys"),
        ({"type": "object", "additionalProperties": TEXT}, "a: [", "line", "no YAML"),
        ({"type": "object", "additionalProperties": TEXT}, "[" * 200, "levels deep", "200 deep"),
        ({**TEXT, "default": "main"}, "", "the default, main", "a default is never taken silently"),
    ],
)
def test_what_can_not_be_read_is_said_at_its_field(schema: dict[str, Any], typed: str, says: str, reason: str) -> None:
    field = only(schema)
    field.value = typed
    made, problems = posted.make(field)
    assert made is MISSING
    assert [problem.pointer for problem in problems] == ["/spec/x"], reason
    assert says in problems[0].message, reason


def test_a_required_field_that_is_empty_is_said() -> None:
    _, problems = posted.make(only(TEXT, required=True))
    assert [(p.pointer, p.code) for p in problems] == [("/spec/x", "missing-field")]


def test_defaults_are_filled_in_from_the_outside_in() -> None:
    limits = {"type": "integer", "default": 5}
    inner = {"type": "object", "properties": {"min": limits, "max": limits}, "default": {"min": 1}}
    group = only(inner)
    assert [(child.pointer, child.value) for child in group.children] == [("/spec/x/min", "1"), ("/spec/x/max", "5")]


def test_an_optional_object_is_left_out_until_something_is_typed() -> None:
    schema = {
        "type": "object",
        "required": ["days"],
        "properties": {"days": {"type": "integer", "default": 7}, "at": TEXT},
    }
    group = only(schema)
    assert [child.value for child in group.children] == ["", ""]
    assert posted.make(group) == (MISSING, [])
    group.children[1].value = "noon"
    made, problems = posted.make(group)
    assert made == {"at": "noon"}
    assert [problem.pointer for problem in problems] == ["/spec/x/days"]


def test_names_with_a_slash_keep_it_and_ids_are_unique() -> None:
    schema = {"type": "object", "properties": {"a/b": TEXT, "a-b": TEXT, "a~b": TEXT}}
    root = spec_fields(schema)
    give_ids([root])
    assert len({field.id for field in root.walk()}) == 4
    for child in root.children:
        child.value = "v"
    assert posted.make(root)[0] == {"a/b": "v", "a-b": "v", "a~b": "v"}


def test_an_unknown_field_of_the_form_is_refused() -> None:
    problems = posted.take([only(TEXT)], QueryDict("/spec/y=1&/spec/x=2&csrfmiddlewaretoken=t"))
    assert [(p.pointer, p.code) for p in problems] == [("/spec/y", "unknown-field")]


SHAPES: dict[str, tuple[dict[str, Any], st.SearchStrategy[Any]]] = {
    "text": (TEXT, st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=20)),
    "integer": ({"type": "integer"}, st.integers(-(2**70), 2**70)),
    "number": ({"type": "number"}, st.floats(allow_nan=False, allow_infinity=False)),
    "flag": ({"type": "boolean", "default": False}, st.booleans()),
    "choice": ({"type": "integer", "enum": [1, 2, 3]}, st.sampled_from([1, 2, 3])),
    "free": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        st.dictionaries(st.text("abcy01", min_size=1), st.sampled_from(["y", "no", "012", "1E6", 1, 0.5, True, []])),
    ),
    "list": ({"type": "array", "items": TEXT}, st.lists(st.text("abcxyz0123", min_size=1, max_size=6), min_size=1)),
}


@given(st.fixed_dictionaries({}, optional={name: values for name, (_, values) in SHAPES.items()}))
def test_a_spec_that_is_shown_and_sent_back_is_the_same(spec: dict[str, Any]) -> None:
    schema = {"type": "object", "properties": {name: shape for name, (shape, _) in SHAPES.items()}}
    root = spec_fields(schema, spec)
    made, problems = posted.make(root)
    assert problems == []
    expected = {**spec, "flag": spec.get("flag", False)}
    if expected.get("free") == {}:
        assert made.pop("free") == expected.pop("free")
    assert made == expected
    assert {name: type(value) for name, value in made.items()} == {
        name: type(value) for name, value in expected.items()
    }
