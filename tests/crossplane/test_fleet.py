"""What an InferenceCluster says it has: counted from its nodes, known as long as it can be known."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from composition_function.contract import Outcome, Request
from composition_function.fleet import read_cluster
from composition_function.fleet_kinds import NODES_LABEL, compose_cluster, nodes_selector
from composition_function.nodes import quantity

from portal.running.crossplane.nodes import nodes_of
from tests.crossplane.samples import MODEL, Run, condition, counted_fleet, example, fleet

Manifest = dict[str, Any]
SYNCED, FAILED = [{"type": "Synced", "status": status, "message": "connection refused"} for status in ("True", "False")]
NAME = "eu-west-1"
CLASSES = [item for item in fleet() if item["kind"] == "AcceleratorClass"]


def cluster() -> Manifest:
    """An InferenceCluster of the sample fleet, as it is written."""
    (found,) = [item for item in fleet() if item["metadata"]["name"] == NAME]
    return found


def its_nodes() -> list[Manifest]:
    """Fresh copies of the nodes that the test doubles make for it."""
    return copy.deepcopy(list(nodes_of(cluster(), {item["metadata"]["name"]: item for item in CLASSES})))


def composed(
    found: Manifest,
    nodes: list[Manifest] | None,
    probe: Manifest | None = SYNCED,
    collection: Manifest | None = SYNCED,
    claims: tuple[Manifest, ...] = (),
) -> Outcome:
    """One call, with a probe and a collection of these conditions; None: they say nothing yet."""
    observed: dict[str, Manifest] = {}
    for key, said in (("probe", probe), ("nodes", collection)):
        observed[key] = {"status": {"conditions": [said] if said else []}}
    members = [{"kind": "Object", "status": {"atProvider": {"manifest": node}}} for node in nodes or []]
    required = {"nodes": members, "accelerator-classes": CLASSES, "model-deployments": list(claims)}
    return compose_cluster(Request(copy.deepcopy(found), observed, copy.deepcopy(required)))


def capacities(outcome: Outcome) -> dict[str, int]:
    """Capacity by pool."""
    return {pool["name"]: pool["capacity"] for pool in outcome.status["pools"]}


WHOLE = {"l4": 4, "l40s": 8, "a100": 2, "h100": 8, "vector-storage": 256}


def node_named(nodes: list[Manifest], name: str) -> Manifest:
    """One of them."""
    return next(node for node in nodes if node["metadata"]["name"] == name)


def with_label_count(node: Manifest) -> None:
    """Time-slicing: labels promise four times what the device plugin offers."""
    node["metadata"]["labels"] |= {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.replicas": "4"}
    node["status"]["allocatable"]["nvidia.com/gpu"] = "1"


def with_mig(node: Manifest) -> None:
    """MIG with the mixed strategy: the whole card is no longer offered under its own name."""
    node["metadata"]["labels"] |= {"nvidia.com/gpu.count": "8", "nvidia.com/mig.strategy": "mixed"}
    node["status"]["allocatable"] = {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "56", "memory": "512Gi"}


def not_ready(node: Manifest) -> None:
    node["status"]["conditions"] = [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]


@pytest.mark.parametrize(
    ("name", "change", "expected", "reason"),
    [
        ("l4-0", lambda node: None, {}, "as they are"),
        ("l4-0", with_label_count, {"l4": 1}, "allocatable wins over labels"),
        ("h100-0", with_mig, {"h100": 0}, "slices are not the whole card"),
        ("l4-0", lambda node: node["spec"].update(unschedulable=True), {"l4": 0}, "cordoned"),
        ("l4-0", not_ready, {"l4": 0}, "NotReady or unknown"),
        ("l4-0", lambda node: node["status"].pop("conditions"), {"l4": 0}, "it never said that it is ready"),
        (
            "l4-0",
            lambda node: node["metadata"].update(deletionTimestamp="2026-12-01T12:00:00Z"),
            {"l4": 0},
            "being deleted",
        ),
        ("l40s-1", lambda node: node["status"]["allocatable"].pop("nvidia.com/gpu"), {"l40s": 4}, "offers none"),
        ("l40s-1", lambda node: node["status"]["allocatable"].update({"nvidia.com/gpu": "many"}), {"l40s": 4}, "odd"),
        ("l40s-1", lambda node: node["metadata"]["labels"].clear(), {"l40s": 4}, "of no known class"),
        ("l4-0", lambda node: node["status"]["allocatable"].update({"nvidia.com/gpu": "16"}), {}, "never above bounds"),
    ],
)
def test_only_what_nodes_can_give_now_counts(name: str, change: Any, expected: dict[str, int], reason: str) -> None:
    nodes = its_nodes()
    for node in nodes:
        node["spec"] = {}
    change(node_named(nodes, name))
    outcome = composed(cluster(), nodes)
    assert capacities(outcome) == WHOLE | expected, reason
    assert outcome.ready


def test_a_node_that_does_not_count_is_named_with_its_reason() -> None:
    nodes = its_nodes()
    node_named(nodes, "a100-0")["spec"] = {"unschedulable": True}
    outcome = composed(cluster(), nodes)
    assert outcome.status["nodes"]["leftOut"] == [{"name": "a100-0", "reason": "it is cordoned"}]
    assert "a100-0: it is cordoned" in condition(outcome, "NodesCounted").message
    assert outcome.status["nodes"]["counted"] == len(nodes) - 1


def test_databases_get_no_more_memory_than_all_nodes_have() -> None:
    nodes = [node for node in its_nodes() if node["metadata"]["name"] == "vector-storage-0"]
    assert capacities(composed(cluster(), nodes))["vector-storage"] == 64
    assert capacities(composed(cluster(), []))["vector-storage"] == 0


def test_without_bounds_a_pool_has_all_that_its_nodes_have() -> None:
    found, nodes = cluster(), its_nodes()
    found["spec"]["pools"] = [{"name": "mixed", "acceleratorClass": "l40s"}]
    node_named(nodes, "l40s-0")["status"]["allocatable"]["nvidia.com/gpu"] = "8"
    (pool,) = [p for p in composed(found, nodes).status["pools"] if p["name"] == "mixed"]
    assert (pool["capacity"], pool["nodes"]) == (12, [{"size": 8, "count": 1}, {"size": 4, "count": 1}])


def test_pools_of_one_class_are_told_apart_by_their_selector() -> None:
    found, nodes = cluster(), its_nodes()
    found["spec"]["pools"] = [
        {"name": "reserved", "acceleratorClass": "l40s", "nodeSelector": {"team": "search"}},
        {"name": "shared", "acceleratorClass": "l40s"},
    ]
    node_named(nodes, "l40s-0")["metadata"]["labels"]["team"] = "search"
    outcome = composed(found, nodes)
    assert (capacities(outcome)["reserved"], capacities(outcome)["shared"]) == (4, 4), "a node counts once"
    assert any("l40s-0 fits the pools reserved, shared" in warning for warning in outcome.warnings)


def test_a_class_that_the_fleet_does_not_have_is_named() -> None:
    found = cluster()
    found["spec"]["pools"] = [{"name": "b200", "acceleratorClass": "b200"}]
    outcome = composed(found, its_nodes())
    assert capacities(outcome)["b200"] == 0
    assert any("no AcceleratorClass b200" in warning for warning in outcome.warnings)


@pytest.mark.parametrize(
    ("probe", "collection", "ready", "reachable", "reason"),
    [
        (SYNCED, SYNCED, True, True, "it answers, and its nodes are counted"),
        (FAILED, SYNCED, False, False, "it does not answer: what the collection says is old"),
        (FAILED, FAILED, False, False, "it does not answer"),
        (None, None, False, None, "nothing is known yet"),
        (SYNCED, None, False, True, "its nodes were not listed yet"),
        (SYNCED, FAILED, False, True, "it may not be allowed to list nodes"),
    ],
)
def test_a_cluster_is_ready_if_it_answers_and_its_nodes_are_counted(
    probe: Manifest | None, collection: Manifest | None, ready: bool, reachable: bool | None, reason: str
) -> None:
    outcome = composed(cluster(), its_nodes(), probe, collection)
    assert (outcome.ready, outcome.status.get("reachable")) == (ready, reachable), reason
    assert outcome.resources["provider-config"].ready
    assert ("pools" in outcome.status) is ready, "nothing is known of pools before nodes were counted"
    assert not read_cluster({**cluster(), "status": outcome.status}).counted or ready


@pytest.mark.parametrize(("probe", "collection"), [(FAILED, FAILED), (FAILED, SYNCED), (SYNCED, FAILED)])
def test_what_was_counted_stays_while_it_can_not_be_counted(probe: Manifest, collection: Manifest) -> None:
    found = cluster()
    found["status"] = composed(found, its_nodes()).status
    outcome = composed(found, [], probe, collection)
    assert capacities(outcome) == WHOLE, "an outage is not an empty cluster"
    assert outcome.status["nodes"] == found["status"]["nodes"]
    assert "as they were last counted" in condition(outcome, "NodesCounted").message
    assert composed(found, []).status["pools"][0]["capacity"] == 0, "a cluster that answers may be empty"


def test_what_claims_hold_is_used() -> None:
    claim = example(MODEL)
    claim["spec"]["regions"] = ["eu-west"]
    run = Run(claim, counted_fleet())
    run.until_composed()
    pools = {
        pool["name"]: (pool["used"], pool["free"])
        for pool in composed(cluster(), its_nodes(), claims=(run.claim,)).status["pools"]
    }
    assert pools == {"l4": (1, 3), "l40s": (0, 8), "a100": (0, 2), "h100": (0, 8), "vector-storage": (0, 256)}


def test_a_cordoned_cluster_says_so_with_a_time_of_its_own() -> None:
    found = cluster()
    assert condition(composed(found, its_nodes()), "Schedulable").status
    found["spec"]["cordoned"] = True
    assert condition(composed(found, its_nodes()), "Schedulable").reason == "Cordoned"


def test_the_nodes_it_asks_for_are_those_that_its_collection_labels() -> None:
    found = cluster()
    found["metadata"]["name"] = "a" * 100
    selector = nodes_selector(found)
    collection = composed(found, None).resources["nodes"].manifest
    assert collection["spec"]["objectTemplate"]["metadata"]["labels"] == dict(selector.labels)
    assert collection["metadata"]["namespace"] == selector.namespace
    assert len(collection["metadata"]["name"]) < 64, "the provider takes no longer name"
    assert len(dict(selector.labels)[NODES_LABEL]) < 64, "nor does a label"


@pytest.mark.parametrize(
    ("given", "expected"),
    [("8", 8), ("1k", 1000), ("512Gi", 512 * 2**30), ("1500m", 1.5), ("1e3", 1000), ("1E", 10**18), ("2Ei", 2**61)],
)
def test_quantities(given: str, expected: float) -> None:
    assert quantity(given) == expected


@pytest.mark.parametrize("given", ["", "many", "1e999", "8 GPUs", "1e3k", None, "0x8", "NaN"])
def test_what_is_no_quantity(given: object) -> None:
    assert quantity(given) is None
