"""The fleet on the real core: capacity from nodes, clusters that stop answering, more claims than there are slots."""

from __future__ import annotations

import base64
import collections
import contextlib
import copy
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from portal.adapters.kubernetes import KubernetesControlPlane
from portal.ports import FleetCluster
from portal.running.crossplane.kube import Api, Object, condition, eventually
from portal.running.crossplane.layout import CONTROL_PLANE, CORE_NAMESPACE
from portal.running.crossplane.plan import LocalControlPlane
from tests.crossplane.approved import approve
from tests.e2e.remains import Clusters
from tests.e2e.test_control_plane import example, make_namespace

pytestmark = pytest.mark.usefixtures("approving_key")
GROUP = "aiplatform.example.org/v1alpha1"
CLAIM = (GROUP, "ModelDeployment")
SERVICE = ("serving.kserve.io/v1alpha2", "LLMInferenceService")
HOME, OTHER = "eu-west-1", "eu-central-1"
CLAIMS, SLOTS = 50, {OTHER: 6, HOME: 4}
AT_ONCE = 16
# What nodes offer is seen when the provider looks (30 s) and the cluster counts (15 s); the rest is a busy machine.
COUNTED_WITHIN = 150.0
DECIDED_WITHIN = 300.0  # seen: 15 s on a machine that has nothing else to do


@pytest.fixture
def admin(clusters: Clusters) -> Api:
    return clusters.apis[CONTROL_PLANE]


def merge(api: Api, found: Object, patch: Object, subresource: str = "") -> None:
    """Changes some members of an object."""
    api.call("PATCH", api.path(found) + subresource, json.dumps(patch), "application/merge-patch+json")


def cluster_named(api: Api, name: str) -> Object:
    found = api.get(GROUP, "InferenceCluster", name)
    assert found is not None
    return found


def capacity(api: Api, cluster: str, pool: str) -> int | None:
    """What a cluster says that a pool has."""
    pools = cluster_named(api, cluster).get("status", {}).get("pools", [])
    return next((entry["capacity"] for entry in pools if entry["name"] == pool), None)


def until_counted(api: Api, cluster: str, pool: str, expected: int) -> None:
    started = time.monotonic()
    eventually(
        f"{cluster}/{pool} has {expected}", lambda: capacity(api, cluster, pool) == expected, COUNTED_WITHIN, every=0.5
    )
    print(f"{cluster}/{pool} has {expected}: seen after {time.monotonic() - started:.0f} s")


def model(namespace: str, name: str, accelerator: str, regions: list[str]) -> Object:
    """A claim for one accelerator."""
    claim: Object = copy.deepcopy(example("llama-3.1-8b-l4", namespace, name))
    spec = {"accelerator": {"class": accelerator, "count": 1}, "replicas": {"min": 1, "max": 1}, "regions": regions}
    claim["spec"] |= spec
    return approve(claim)


# Nodes


def test_only_what_nodes_can_give_is_capacity(admin: Api, clusters: Clusters) -> None:
    """Both changes at once, as each takes a look of the provider's."""
    home = clusters.apis[HOME]
    changes = [(_node(home, "l40s-0"), {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}, "")]
    few, all_of_them = ({"status": {"allocatable": {"nvidia.com/gpu": number}}} for number in ("1", "8"))
    changes.append((_node(home, "h100-0"), few, all_of_them, "/status"))
    for node, change, _, where in changes:
        merge(home, node, change, where)
    try:
        until_counted(admin, HOME, "l40s", 4)
        until_counted(admin, HOME, "h100", 1)
        said = condition(cluster_named(admin, HOME), "NodesCounted").get("message", "")
        assert "l40s-0: it is cordoned" in said
    finally:
        for node, _, back, where in changes:
            merge(home, node, back, where)
    until_counted(admin, HOME, "l40s", 8)
    until_counted(admin, HOME, "h100", 8)


def _node(api: Api, name: str) -> Object:
    found = api.get("v1", "Node", name)
    assert found is not None
    return found


# A cluster that stops answering


def test_an_unreachable_cluster_keeps_what_it_has_and_gets_nothing_new(
    plane: LocalControlPlane, admin: Api, portal: Api, clusters: Clusters
) -> None:
    namespace = "fleet-unreachable"
    make_namespace(portal, namespace)
    before, after = model(namespace, "before", "l40s", ["eu-west"]), model(namespace, "after", "l40s", ["eu-west"])
    portal.apply(before, manager="portal")
    eventually("it runs", lambda: _placed(portal, before) == ("True", "Placed"), DECIDED_WITHIN, every=0.2)
    there = eventually("its workload is there", lambda: _services(clusters.apis[HOME], namespace), 60.0)
    with unreachable(admin, HOME):
        eventually("it is noticed", lambda: _reachable(admin) == "False", COUNTED_WITHIN, every=0.5)
        seen = shown(plane, HOME)
        assert (seen.state, seen.since is not None) == ("Unreachable", True)
        assert {pool.name: pool.capacity for pool in seen.pools}["l40s"] == 8, "as it was last counted"
        portal.apply(after, manager="portal")
        eventually("it is refused", lambda: _placed(portal, after)[1] == "NoCapacity", DECIDED_WITHIN, every=0.2)
        assert f"{HOME}: it can't be reached" in condition(_now(portal, after), "Placed")["message"]
        assert _placed(portal, before) == ("True", "Placed"), "what it has stays"
    eventually("it answers again", lambda: _reachable(admin) == "True", COUNTED_WITHIN, every=0.5)
    eventually("it gets the other", lambda: _placed(portal, after) == ("True", "Placed"), DECIDED_WITHIN, every=0.5)
    assert there.items() <= _services(clusters.apis[HOME], namespace).items(), "the same as before, not another"
    assert shown(plane, HOME).state == "Ready"
    for claim in (before, after):
        portal.delete(claim, "Foreground")


@contextlib.contextmanager
def unreachable(api: Api, cluster: str) -> Iterator[None]:
    """Its kubeconfig leads to a port where nobody listens."""
    name = f"kubeconfig-{cluster}"
    secret = api.get("v1", "Secret", name, CORE_NAMESPACE)
    assert secret is not None
    right = secret["data"]["kubeconfig"]
    content = yaml.safe_load(base64.b64decode(right))
    content["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    wrong = base64.b64encode(yaml.safe_dump(content).encode()).decode()
    merge(api, secret, {"data": {"kubeconfig": wrong}})
    try:
        yield
    finally:
        merge(api, secret, {"data": {"kubeconfig": right}})


def shown(plane: LocalControlPlane, cluster: str) -> FleetCluster:
    """What the portal shows of a cluster."""
    found = KubernetesControlPlane("real", plane.kubeconfig).fleet()
    assert [each.name for each in found] == sorted(SLOTS)
    return next(each for each in found if each.name == cluster)


def _reachable(api: Api) -> str:
    return str(condition(cluster_named(api, HOME), "Reachable").get("status"))


def _now(api: Api, claim: Object) -> Object | None:
    meta = claim["metadata"]
    return api.get(claim["apiVersion"], claim["kind"], meta["name"], meta["namespace"])


def _placed(api: Api, claim: Object) -> tuple[str, str]:
    said = condition(_now(api, claim), "Placed")
    return str(said.get("status")), str(said.get("reason"))


def _services(api: Api, namespace: str) -> dict[str, str]:
    """uid by name of what runs there."""
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in api.items(*SERVICE, namespace)}


# More claims than there are slots


@pytest.fixture
def ten_slots(admin: Api) -> Iterator[Api]:
    """Ten H100 in all: the pools' bounds are drawn in for the test."""
    _bound_all(admin, SLOTS)
    for name, units in SLOTS.items():
        until_counted(admin, name, "h100", units)
    yield admin
    _bound_all(admin, {OTHER: 16, HOME: 8})


def _bound_all(api: Api, wanted: dict[str, int]) -> None:
    for name, units in wanted.items():
        found = cluster_named(api, name)
        pools = [{**p, "accelerators": units} if p["name"] == "h100" else p for p in found["spec"]["pools"]]
        merge(api, found, {"spec": {"pools": pools}})


def test_fifty_claims_for_ten_slots(ten_slots: Api, portal: Api, clusters: Clusters) -> None:
    namespace = "fleet-burst"
    make_namespace(portal, namespace)
    claims = [model(namespace, f"chat-{number:02}", "h100-80gb", []) for number in range(CLAIMS)]
    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda claim: portal.apply(claim, manager="portal"), claims))
    print(f"{CLAIMS} applied after {time.monotonic() - started:.1f} s")

    def decided() -> bool:
        never_more_than_there_is(clusters, namespace)
        reasons = collections.Counter(said for _, said in states(portal, namespace).values())
        return reasons["Placed"] == sum(SLOTS.values()) and reasons["NoCapacity"] == CLAIMS - sum(SLOTS.values())

    eventually("all are decided", decided, DECIDED_WITHIN, every=0.5)
    print(f"all decided after {time.monotonic() - started:.1f} s")
    settled = states(portal, namespace)
    for item in portal.items(*CLAIM, namespace):
        if settled[item["metadata"]["name"]][1] == "NoCapacity":
            codes = {each["cluster"]: each["code"] for each in item["status"]["placement"]["reasons"]}
            assert codes == dict.fromkeys(SLOTS, "NoFreeCapacity"), "a reason for every cluster"
    places = collections.Counter(slots(portal, namespace).values())
    assert places == SLOTS
    give_two_back(portal, namespace, settled)
    eventually("two others have their place", decided_again(portal, clusters, namespace), DECIDED_WITHIN, every=1)
    for item in portal.items(*CLAIM, namespace):
        portal.delete(item, "Foreground")


def states(api: Api, namespace: str) -> dict[str, tuple[str, str]]:
    """Status and reason of the condition Placed, by claim."""
    found = {}
    for item in api.items(*CLAIM, namespace):
        said = condition(item, "Placed")
        found[item["metadata"]["name"]] = (str(said.get("status")), str(said.get("reason")))
    return found


def slots(api: Api, namespace: str) -> dict[str, str]:
    """The cluster of each claim that has one."""
    placed = {item["metadata"]["name"]: item["status"]["placement"] for item in api.items(*CLAIM, namespace)}
    return {name: placement["cluster"] for name, placement in placed.items() if "cluster" in placement}


def never_more_than_there_is(clusters: Clusters, namespace: str) -> None:
    """On the workload clusters themselves, whatever anybody says."""
    for name, units in SLOTS.items():
        runs = clusters.apis[name].items(*SERVICE, namespace)
        assert len(runs) <= units, f"{len(runs)} run on {units} of {name}"


def give_two_back(portal: Api, namespace: str, settled: dict[str, tuple[str, str]]) -> None:
    """The two that were placed and come first by name."""
    for name in sorted(name for name, (_, reason) in settled.items() if reason == "Placed")[:2]:
        portal.delete(
            {"apiVersion": GROUP, "kind": "ModelDeployment", "metadata": {"name": name, "namespace": namespace}}
        )


def decided_again(portal: Api, clusters: Clusters, namespace: str) -> Callable[[], bool]:
    def look() -> bool:
        never_more_than_there_is(clusters, namespace)
        reasons = collections.Counter(said for _, said in states(portal, namespace).values())
        return (reasons["Placed"], reasons.total()) == (sum(SLOTS.values()), CLAIMS - 2)

    return look
