"""What others have set in a claim: what is drift, by whom and when, and what goes beyond what was approved."""

from __future__ import annotations

import copy
import datetime as dt
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.domain.drift import Drift, DriftedField, drift_of, judged, news, values_of
from portal.domain.offerings import Offering, parse_offering
from portal.ports import FieldManager

APIS = Path(__file__).parents[2] / "crossplane" / "apis"
AT = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
SPEC: dict[str, Any] = {
    "model": {"source": "hf://meta-llama/Llama-3.1-8B-Instruct", "revision": "main", "quantization": "none"},
    "contextLength": 4096,
    "concurrency": 8,
    "replicas": {"min": 1, "max": 2},
    "accelerator": {"class": "l4", "count": 1},
    "dataClassification": "internal",
}
MACHINERY = {
    "compositionRef": {"name": "modeldeployments-kserve"},
    "compositionRevisionRef": {"name": "modeldeployments-kserve-1"},
    "compositionUpdatePolicy": "Manual",
}
REFERENCES = {"resourceRefs": [{"kind": "Object", "name": "chat-llm"}]}
CORE = FieldManager("apiextensions.crossplane.io/composite", "Update", "", AT, ("/spec/crossplane/resourceRefs",))


@pytest.fixture(scope="module")
def offering() -> Offering:
    return shipped("modeldeployments")


@lru_cache
def shipped(name: str) -> Offering:
    return parse_offering(name, *[(APIS / name / f"{part}.yaml").read_text() for part in ("definition", "offering")])


def delivered(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SPEC), **changes, "crossplane": dict(MACHINERY)}


def live(**changes: Any) -> dict[str, Any]:
    """The same, with what the core adds."""
    return {**copy.deepcopy(SPEC), **changes, "crossplane": {**MACHINERY, **REFERENCES}}


def kubectl(*fields: str, minutes: int = 0, manager: str = "kubectl-edit", subresource: str = "") -> FieldManager:
    return FieldManager(manager, "Update", subresource, AT + dt.timedelta(minutes=minutes), fields)


PORTAL = FieldManager("portal", "Apply", "", AT, ("/spec/contextLength", "/spec/replicas/min", "/spec/replicas/max"))
MAX = kubectl("/spec/replicas/max")

# Live spec, managers, (field, approved, live, manager, metered) of each drift, why.
CASES: list[tuple[dict[str, Any], tuple[FieldManager, ...], list[tuple[str, Any, Any, str, bool]], str]] = [
    (live(), (PORTAL, CORE), [], "what the core keeps in the spec is its own"),
    (live(), (), [], "nobody says who set what, and nothing differs"),
    (
        live(replicas={"min": 1, "max": 4}),
        (PORTAL, CORE, MAX),
        [("/spec/replicas/max", 2, 4, "kubectl-edit", True)],
        "replicas changed with kubectl (case 24)",
    ),
    (
        live(replicas={"min": 1, "max": 1}),
        (CORE, MAX),
        [("/spec/replicas/max", 2, 1, "kubectl-edit", True)],
        "less is drift as well",
    ),
    (
        live(contextLength=8192),
        (CORE, kubectl("/spec/contextLength")),
        [("/spec/contextLength", 4096, 8192, "kubectl-edit", False)],
        "not metered",
    ),
    (live(replicas={"min": 1.0, "max": 2.0}), (MAX,), [], "2.0 is 2 (case 11)"),
    (live(regions=[]), (PORTAL, CORE), [], "a default that the control plane filled in: nobody owns it"),
    (live(suspend=False), (), [], "the schema's own default"),
    (
        live(later={"added": 1}),
        (PORTAL, CORE),
        [],
        "a default of a newer schema than the instance was made with: nobody owns it",
    ),
    (
        live(regions=["eu-central"]),
        (PORTAL, kubectl("/spec/regions")),
        [("/spec/regions", [], ["eu-central"], "kubectl-edit", False)],
        "a field that was left to its default, set by somebody",
    ),
    (
        live(replicas={"min": 1, "max": 4}),
        (PORTAL, CORE),
        [],
        "only the portal owns it: its own earlier value, which its next apply replaces",
    ),
    (
        live(replicas={"min": 1, "max": 4}),
        (PORTAL, MAX),
        [("/spec/replicas/max", 2, 4, "kubectl-edit", True)],
        "owned by the portal and by somebody else",
    ),
    (
        live(replicas={"min": 1, "max": 4}),
        (kubectl("/spec/replicas/max"), kubectl("/spec/replicas/max", minutes=5, manager="keda")),
        [("/spec/replicas/max", 2, 4, "keda", True)],
        "two owners: who was last",
    ),
    (
        live(replicas={"min": 1, "max": 4}),
        (kubectl("/spec/replicas/max", subresource="status"), CORE),
        [("/spec/replicas/max", 2, 4, "", True)],
        "a subresource's owner set no spec",
    ),
    (
        live(replicas={"min": 1, "max": 4}),
        (),
        [("/spec/replicas/max", 2, 4, "", True)],
        "nobody says who",
    ),
    (
        {**live(), "crossplane": {**MACHINERY, "compositionRevisionRef": {"name": "modeldeployments-kserve-2"}}},
        (kubectl("/spec/crossplane/compositionRevisionRef/name", manager="argocd"),),
        [
            (
                "/spec/crossplane/compositionRevisionRef/name",
                "modeldeployments-kserve-1",
                "modeldeployments-kserve-2",
                "argocd",
                False,
            )
        ],
        "another revision than the approved one",
    ),
    (
        {key: value for key, value in live().items() if key != "contextLength"},
        (CORE,),
        [("/spec/contextLength", 4096, 8192, "", False)],
        "taken away: it is as its default would be",
    ),
    (
        live(accelerator={"class": "h100-80gb", "count": 1}),
        (kubectl("/spec/accelerator/class"),),
        [("/spec/accelerator/class", "l4", "h100-80gb", "kubectl-edit", True)],
        "another class",
    ),
    (
        live(suspend=True),
        (kubectl("/spec/suspend"),),
        [("/spec/suspend", False, True, "kubectl-edit", True)],
        "suspended by hand",
    ),
    (
        live(model={**SPEC["model"], "revision": "1"}),
        (kubectl("/spec/model"),),
        [("/spec/model/revision", "main", "1", "kubectl-edit", False)],
        "the owner of an object owns what is in it",
    ),
]


@pytest.mark.parametrize(("spec", "managers", "expected", "reason"), CASES, ids=[row[-1] for row in CASES])
def test_a_field_that_others_set_is_named_with_who_and_whether_it_is_metered(
    offering: Offering,
    spec: dict[str, Any],
    managers: tuple[FieldManager, ...],
    expected: list[tuple[str, Any, Any, str, bool]],
    reason: str,
) -> None:
    found = drift_of(delivered(), spec, managers, offering)
    assert [(each.field, each.approved, each.live, each.manager, each.metered) for each in found] == expected, reason


def test_quantities_of_one_value_are_no_drift(offering: Offering) -> None:
    """Case 10: where the schema declares a quantity."""
    quantity = {"x-kubernetes-int-or-string": True}
    schema = {"type": "object", "properties": {"cpu": quantity, "memory": quantity, "share": quantity, "name": {}}}
    of_quantities = msgspec.structs.replace(offering, spec_schema=schema)
    approved = {**delivered(), "cpu": "1000m", "memory": "2048Mi", "share": "0.1", "name": "1000m"}
    found = drift_of(approved, {**live(), "cpu": 1, "memory": "2Gi", "share": "100m", "name": "1"}, (), of_quantities)
    assert [each.field for each in found] == ["/spec/name"]


# Live spec, what is beyond, why.
CEILINGS: list[tuple[dict[str, Any], list[tuple[str, int, int]], str]] = [
    (live(replicas={"min": 1, "max": 4}), [("gpu.l4", 2, 4)], "more replicas"),
    (live(replicas={"min": 1, "max": 1}), [], "fewer replicas: within"),
    (live(contextLength=8192), [], "nothing metered"),
    (live(accelerator={"class": "l4", "count": 2}), [("gpu.l4", 2, 4)], "more accelerators each"),
    (
        live(accelerator={"class": "l4", "count": 2}, replicas={"min": 1, "max": 1}),
        [],
        "the same amount in another shape",
    ),
    (
        live(accelerator={"class": "a100-80gb", "count": 1}),
        [("gpu.a100-80gb", 0, 2)],
        "another class: nobody approved that",
    ),
    (live(suspend=True), [], "suspended: takes nothing"),
]


@pytest.mark.parametrize(("spec", "beyond", "reason"), CEILINGS, ids=[row[-1] for row in CEILINGS])
def test_beyond_is_what_takes_more_of_any_dimension(
    offering: Offering, spec: dict[str, Any], beyond: list[tuple[str, int, int]], reason: str
) -> None:
    drift = assess(offering, spec)
    assert [(each.dimension, each.approved, each.live) for each in drift.excess] == beyond, reason
    assert drift.is_beyond == bool(beyond), reason


def assess(offering: Offering, spec: dict[str, Any]) -> Drift:
    found = [each.row() for each in drift_of(delivered(), spec, (), offering)]
    plain = [{key: value for key, value in each.items() if key != "crossplane"} for each in (delivered(), spec)]
    return judged(found, *plain, offering)


def test_resuming_by_hand_is_beyond_what_a_suspended_instance_may_take(offering: Offering) -> None:
    approved, now = delivered(suspend=True), live(suspend=False)
    rows = [each.row() for each in drift_of(approved, now, (kubectl("/spec/suspend"),), offering)]
    drift = judged(rows, {**SPEC, "suspend": True}, SPEC, offering)
    assert [(each.dimension, each.approved, each.live) for each in drift.excess] == [("gpu.l4", 0, 2)]


def test_what_can_not_be_measured_is_beyond(offering: Offering) -> None:
    drift = assess(offering, live(accelerator={"class": "l4", "count": -1}))
    assert drift.is_beyond
    assert drift.unmeasurable


def test_the_reason_names_field_values_manager_time_and_excess(offering: Offering) -> None:
    rows = [each.row() for each in drift_of(delivered(), live(replicas={"min": 1, "max": 4}), (MAX,), offering)]
    drift = judged(rows, SPEC, {**SPEC, "replicas": {"min": 1, "max": 4}}, offering)
    assert drift.told() == (
        "/spec/replicas/max was set from 2 to 4 by kubectl-edit at 2026-12-01 12:00:00 UTC. "
        "Beyond what was approved: gpu.l4: 4 instead of 2."
    )


def row(field: str, value: Any, metered: bool = True) -> dict[str, Any]:
    return DriftedField(field, 1, value, "x", AT, metered).row()


@pytest.mark.parametrize(
    ("before", "now", "seen", "ended", "reason"),
    [
        ([], [row("/a", 2)], ["/a"], [], "new"),
        ([row("/a", 2)], [row("/a", 2)], [], [], "seen already"),
        ([row("/a", 2)], [row("/a", 3)], ["/a"], [], "another value"),
        ([row("/a", 2), row("/b", 2)], [row("/b", 2)], [], ["/a"], "one is as approved again"),
        ([row("/a", 2)], [], [], ["/a"], "all is as approved again"),
    ],
)
def test_seen_and_ended_are_news_once(
    before: list[dict[str, Any]], now: list[dict[str, Any]], seen: list[str], ended: list[str], reason: str
) -> None:
    found = news(before, now)
    assert [[each["field"] for each in rows] for rows in found] == [seen, ended], reason


def test_values_are_known_again_by_the_metered_ones_alone() -> None:
    one = values_of([row("/a", 2), row("/b", "x", metered=False)])
    assert one == values_of([row("/a", 2), row("/b", "y", metered=False)])
    assert one != values_of([row("/a", 3)])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)  # the first example compiles the offering
@given(
    changed=st.dictionaries(st.sampled_from([*SPEC, "suspend", "regions", "crossplane", "other"]), JSON, max_size=4),
    fields=st.lists(st.sampled_from(["/spec", "/spec/replicas", "/spec/model/source", "/other"]), max_size=3),
)
def test_whatever_is_live_is_told_apart_from_what_was_approved(changed: dict[str, Any], fields: list[str]) -> None:
    """Never an error, and the same spec is never drift."""
    model = shipped("modeldeployments")
    given_spec = {**live(), **changed}
    managers = (kubectl(*fields),) if fields else ()
    rows = [each.row() for each in drift_of(delivered(), given_spec, managers, model)]
    plain = {key: value for key, value in given_spec.items() if key != "crossplane"}
    judged(rows, SPEC, plain, model).told()
    assert drift_of(given_spec, given_spec, managers, model) == []
