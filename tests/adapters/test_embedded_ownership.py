"""Who set which field of a claim on the embedded control plane, as server-side apply keeps it."""

from __future__ import annotations

import copy
import datetime as dt
from typing import Any

import pytest

from portal.adapters.embedded import ownership
from portal.adapters.embedded.deliver import apply_object
from portal.ports import ControlPlane, ObservedClaim, TerminalError
from tests.adapters.widgets import KINDS, ref, widget


def edited(**spec: Any) -> dict[str, Any]:
    """The widget as somebody has it after `kubectl edit`."""
    made = copy.deepcopy(widget(size=2, note="hello"))
    made["spec"] |= spec
    return made


def owners(claim: ObservedClaim | None) -> dict[str, str]:
    assert claim is not None
    return {field: each.manager for each in claim.managers for field in each.fields}


def test_a_field_that_somebody_edits_is_theirs_and_all_else_the_portals(plane: ControlPlane) -> None:
    plane.apply(widget(size=2, note="hello"))
    apply_object(edited(size=4), manager="kubectl-edit")
    found = owners(plane.get(ref()))
    assert (found["/spec/size"], found["/spec/note"]) == ("kubectl-edit", "portal")
    _, cursor = plane.list(KINDS)
    apply_object(edited(size=4, note="bye"), manager="keda")
    (event,) = list(plane.watch(KINDS, cursor, 0.2))
    assert (owners(event.claim)["/spec/note"], owners(event.claim)["/spec/size"]) == ("keda", "kubectl-edit")
    assert {each.manager: each.at is not None for each in event.claim.managers}["keda"]


def test_what_somebody_else_has_set_is_a_conflict_and_written_by_force_only(plane: ControlPlane) -> None:
    plane.apply(widget(size=2, note="hello"))
    apply_object(edited(size=4), manager="kubectl-edit")
    for verb in (plane.apply, plane.dry_run):
        with pytest.raises(TerminalError) as refused:
            verb(widget(size=2, note="hello"))
        assert refused.value.code == "field-conflict"
        assert "/spec/size is set by field manager 'kubectl-edit'" in refused.value.message
    assert owners(plane.get(ref()))["/spec/size"] == "kubectl-edit", "nothing was written"
    plane.apply(widget(size=2, note="hello"), force=True)
    claim = plane.get(ref())
    assert claim is not None
    assert (claim.spec["size"], owners(claim)["/spec/size"]) == (2, "portal")
    plane.apply(widget(size=3, note="hello"))


def test_the_same_value_is_no_conflict_and_another_field_neither(plane: ControlPlane) -> None:
    plane.apply(widget(size=2, note="hello"))
    apply_object(edited(size=4), manager="kubectl-edit")
    plane.apply(widget(size=4, note="bye"))
    claim = plane.get(ref())
    assert claim is not None
    assert (claim.spec["size"], claim.spec["note"]) == (4, "bye")


@pytest.mark.parametrize(
    ("before", "after", "manager", "expected", "reason"),
    [
        ({"a": 1}, {"a": 2}, "x", {"/spec/a": ["x", "now"]}, "set by somebody"),
        ({"a": 1}, {"a": 2}, "portal", {}, "the portal's needn't be noted"),
        ({"a": 1}, {"a": 1}, "x", {}, "nothing changed"),
        (
            {"a": {"b": 1}},
            {"a": {"b": 2, "c": 3}},
            "x",
            {"/spec/a/b": ["x", "now"], "/spec/a/c": ["x", "now"]},
            "leaves",
        ),
        ({"a": 1}, {}, "x", {"/spec/a": ["x", "now"]}, "taken away"),
        ({"a/b": 1}, {"a/b": 2}, "x", {"/spec/a~1b": ["x", "now"]}, "a name with a slash"),
    ],
)
def test_who_set_what_after_a_write(
    before: dict[str, Any], after: dict[str, Any], manager: str, expected: dict[str, list[str]], reason: str
) -> None:
    assert ownership.after_write({"spec": before}, {"spec": after}, {}, manager, "now") == expected, reason


def test_managed_fields_read_back_are_the_same() -> None:
    set_by = {"/spec/a~1b": ["x", "2026-12-01T12:00:00Z"], "/spec/c/d": ["y", "2026-12-01T12:00:00Z"]}
    entries = ownership.managed_fields(set_by)
    assert entries[0]["fieldsV1"] == {"f:spec": {"f:a/b": {}}}
    manifest = {"metadata": {"managedFields": entries}, "spec": {"a/b": 1, "c": {"d": 2, "e": 3}}}
    found = ownership.managers(manifest, dt.datetime(2026, 12, 1, tzinfo=dt.UTC))
    assert {field: each.manager for each in found for field in each.fields} == {
        "/spec/a~1b": "x",
        "/spec/c/d": "y",
        "/spec/c/e": "portal",
    }
