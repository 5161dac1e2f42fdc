"""What counts as a difference between two specs, and what only looks like one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.difference import Difference, differences, equal, quantity

QUANTITY = {"x-kubernetes-int-or-string": True}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "replicas": {"type": "object", "properties": {"min": {"type": "integer"}, "max": {"type": "integer"}}},
        "memory": QUANTITY,
        "disk": {"type": "string", "format": "quantity"},
        "regions": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "args": {"type": "array", "items": {"type": "string"}},
        "limits": {"type": "object", "additionalProperties": QUANTITY},
        "pools": {
            "type": "array",
            "items": {"type": "object", "properties": {"cpu": QUANTITY, "n": {"type": "integer"}}},
        },
    },
}
CASES: list[tuple[Any, Any, list[tuple[str, Any, Any]], str]] = [
    ({"memory": "2048Mi"}, {"memory": "2Gi"}, [], "one quantity, two spellings (case 10)"),
    ({"memory": "1000m"}, {"memory": 1}, [], "a text and a number"),
    ({"memory": "0.1"}, {"memory": "100m"}, [], "a fraction"),
    ({"memory": "1e3"}, {"memory": "1k"}, [], "an exponent"),
    ({"disk": "1Ti"}, {"disk": "1024Gi"}, [], "declared by its format"),
    ({"memory": "2Gi"}, {"memory": "2G"}, [("/memory", "2Gi", "2G")], "binary is not decimal"),
    ({"memory": "50%"}, {"memory": "50 %"}, [("/memory", "50%", "50 %")], "no quantity: compared as it is"),
    ({"name": "1000m"}, {"name": "1"}, [("/name", "1000m", "1")], "a name that looks like a quantity is none"),
    ({"limits": {"cpu": "1000m"}}, {"limits": {"cpu": "1"}}, [], "the values of a map"),
    ({"pools": [{"cpu": "1", "n": 1}]}, {"pools": [{"cpu": "1000m", "n": 2}]}, [("/pools/0/n", 1, 2)], "in a list"),
    ({"replicas": {"max": 2}}, {"replicas": {"max": 2.0}}, [], "2.0 is 2 (case 11)"),
    ({"replicas": {"max": 1}}, {"replicas": {"max": True}}, [("/replicas/max", 1, True)], "true is no number"),
    ({"replicas": {"min": 1}}, {}, [("/replicas/min", 1, None)], "taken away, told by its leaves"),
    ({}, {"replicas": {"min": 1, "max": 2}}, [("/replicas/min", None, 1), ("/replicas/max", None, 2)], "added"),
    ({"regions": ["a", "b"]}, {"regions": ["b", "a"]}, [], "a set has no order"),
    ({"args": ["a", "b"]}, {"args": ["b", "a"]}, [("/args", ["a", "b"], ["b", "a"])], "a list has one"),
    ({"args": ["a"]}, {"args": ["a", "b"]}, [("/args", ["a"], ["a", "b"])], "as a whole"),
    ({"x/y": 1}, {"x/y": 2}, [("/x~1y", 1, 2)], "unknown to the schema, and a pointer that is one"),
    ({"name": None}, {}, [], "null and absent look the same to a reader"),
    (
        {"name": "a", "replicas": {"min": 1}},
        {"replicas": {"min": 2}, "name": "b"},
        [("/name", "a", "b"), ("/replicas/min", 1, 2)],
        "in the schema's order",
    ),
]


@pytest.mark.parametrize(("old", "new", "expected", "reason"), CASES)
def test_what_differs(old: Any, new: Any, expected: list[tuple[str, Any, Any]], reason: str) -> None:
    assert differences(old, new, SCHEMA) == tuple(Difference(*each) for each in expected), reason
    assert equal(old, new, SCHEMA) == (not expected)


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("2Gi", 2 * 1024**3, "binary"),
        ("1.5k", 1500, "decimal"),
        (".5", 0.5, "no leading digit"),
        ("", None, "empty"),
        ("1 Gi", None, "a blank inside"),
        ("1e999", None, "an exponent beyond any machine"),
        (True, None, "a boolean"),
        ("١", None, "digits of another script"),
    ],
)
def test_a_quantity(text: Any, value: float | None, reason: str) -> None:
    found = quantity(text)
    assert (None if found is None else float(found)) == value, reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["a", "1", "1000m"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["name", "memory", "z"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, JSON)
def test_nothing_differs_from_itself_and_a_difference_has_two_sides(old: Any, new: Any) -> None:
    assert differences(old, old, SCHEMA) == ()
    there = {(each.pointer, str(each.old), str(each.new)) for each in differences(old, new, SCHEMA)}
    back = {(each.pointer, str(each.new), str(each.old)) for each in differences(new, old, SCHEMA)}
    assert there == back
