"""Kubernetes' ways to name a field, as JSON pointers."""

from __future__ import annotations

from typing import Any

import pytest

from portal.adapters.kubernetes import cursors
from portal.adapters.kubernetes.pointers import from_field_path, of_managed_fields
from portal.ports import RetryableError

PATHS = [
    ("", "", "none"),
    ("spec", "/spec", "one step"),
    (".spec.replicas.max", "/spec/replicas/max", "structured-merge-diff begins with a dot"),
    ("spec.items[3].name", "/spec/items/3/name", "an index"),
    ("metadata.labels[app/name]", "/metadata/labels/app~1name", "a key, escaped"),
    ('.metadata.labels["a.b/c"]', "/metadata/labels/a.b~1c", "a key in quotes, with dots"),
    (".metadata.labels.a.example.org/instance", "/metadata/labels/a.example.org~1instance", "a label, not quoted"),
    ('.spec.items[name="x"].size', "/spec/items", "an item by its key ends it"),
    ("<nil>", "/<nil>", "what is no path stays a text"),
]


@pytest.mark.parametrize(("path", "pointer", "reason"), PATHS, ids=[case[2] for case in PATHS])
def test_a_field_path(path: str, pointer: str, reason: str) -> None:
    assert from_field_path(path) == pointer, reason


FIELDS: list[tuple[dict[str, Any], tuple[str, ...], str]] = [
    ({}, (), "nothing"),
    ({"f:spec": {"f:size": {}, "f:most": {}}}, ("/spec/size", "/spec/most"), "leaves"),
    ({"f:spec": {".": {}, "f:size": {}}}, ("/spec/size",), "the object itself is no leaf"),
    ({"f:spec": {}}, ("/spec",), "an object set as a whole"),
    ({"f:metadata": {"f:labels": {"f:a/b": {}}}}, ("/metadata/labels/a~1b",), "a label"),
    (
        {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}}}}},
        ("/status/conditions",),
        "items by key",
    ),
    ({"f:metadata": {"f:finalizers": {".": {}, 'v:"x"': {}}}}, ("/metadata/finalizers",), "items of a set"),
    ({"f:spec": {"f:a": {"f:b": {}, 'k:{"n":"x"}': {}}}}, ("/spec/a", "/spec/a/b"), "both"),
]


@pytest.mark.parametrize(("fields", "pointers", "reason"), FIELDS, ids=[case[2] for case in FIELDS])
def test_managed_fields(fields: dict[str, Any], pointers: tuple[str, ...], reason: str) -> None:
    assert of_managed_fields(fields) == pointers, reason


def test_a_cursor_comes_back_as_it_was() -> None:
    position = {"widgets.test.example.org": "12", "gadgets.test.example.org": "-"}
    assert cursors.read(cursors.written(position), list(position), "x") == position
    assert cursors.read(cursors.written({}), [], "x") == {}


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "None",
        "-1",
        "7",
        "widgets.test.example.org=",
        "widgets.test.example.org=None",
        "widgets.test.example.org=-5",
        "widgets.test.example.org=5;",
        "gadgets.test.example.org=5",
        "widgets.test.example.org=5\n",
    ],
)
def test_what_is_no_cursor_is_never_started_from(cursor: str) -> None:
    """Case 16."""
    with pytest.raises(RetryableError) as refused:
        cursors.read(cursor, ["widgets.test.example.org"], "x")
    assert refused.value.code == "cursor-expired"
