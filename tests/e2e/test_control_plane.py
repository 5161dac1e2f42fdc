"""The real core, this project's function and provider-kubernetes take example claims to Ready on workload clusters.

Run: `python -m pytest -m crossplane tests/e2e -s`. Times are printed, and bounded by an order of magnitude.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from portal.running.crossplane.access import server_from
from portal.running.crossplane.controllers import ACTOR
from portal.running.crossplane.kube import Api, Object, condition, eventually, is_true
from portal.running.crossplane.layout import CONTROL_PLANE, MANIFESTS
from portal.running.crossplane.plan import CLUSTERS, LocalControlPlane
from portal.running.crossplane.reports import NOTE
from portal.running.errors import ApiError
from tests.crossplane.approved import approve, payload_for, sign
from tests.e2e.remains import Clusters

pytestmark = pytest.mark.usefixtures("approving_key")
GROUP = "aiplatform.example.org/v1alpha1"
READY_WITHIN = 60.0  # seconds; seen: under 3
GONE_WITHIN = 60.0
# provider-kubernetes doesn't believe that what it created less than 30 s ago is gone, and asks again after 1, 2, 4… up
# to 60 s (crossplane-runtime v2.0.0, managed/reconciler.go, creationGracePeriod, read 2026-12-01).
CREATION_GRACE = 31.0


def example(name: str, namespace: str, called: str = "") -> Object:
    """An example claim that ships, in a namespace of the test's own, with an approval."""
    (path,) = MANIFESTS.glob(f"apis/*/examples/{name}.yaml")
    claim: Object = yaml.safe_load(path.read_text())
    claim["metadata"] |= {"namespace": namespace, "name": called or claim["metadata"]["name"]}
    return approve(claim)


def make_namespace(portal: Api, name: str) -> None:
    """As the portal does it: with a create, which its role allows."""
    portal.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def current(api: Api, claim: Object) -> Object | None:
    """The claim as it is."""
    return api.get(claim["apiVersion"], claim["kind"], claim["metadata"]["name"], claim["metadata"]["namespace"])


def until_ready(portal: Api, claim: Object, also: Callable[[Object], bool] = lambda found: True) -> Object:
    """The claim once it is Ready and Synced for its newest generation; fails with what it says instead.

    A call that was under way when the claim was changed may be noted under the new generation, for a moment (seen on
    v2.2.1): ``also`` says what else has to be seen.
    """

    def healthy() -> Object | None:
        found = current(portal, claim)
        generation = (found or {}).get("metadata", {}).get("generation")
        ready = is_true(found, "Ready", "Synced") and condition(found, "Ready").get("observedGeneration") == generation
        return found if found and ready and also(found) else None

    try:
        return eventually("Ready", healthy, READY_WITHIN, every=0.02)
    except Exception:
        print(json.dumps((current(portal, claim) or {}).get("status"), indent=1))
        raise


def until_gone(portal: Api, claim: Object) -> None:
    """Foreground deletion, as the portal asks for it, to its end."""
    portal.delete(claim, "Foreground")
    eventually("gone", lambda: current(portal, claim) is None, GONE_WITHIN, every=0.02)


def test_everything_runs(plane: LocalControlPlane) -> None:
    memory = plane.memory()
    print(json.dumps({name: round(megabytes) for name, megabytes in memory.items()}), round(sum(memory.values())), "MB")
    assert set(memory) == {
        "etcd",
        CONTROL_PLANE,
        *CLUSTERS,
        "kube-controller-manager",
        "crossplane",
        "composition-function",
        "provider-kubernetes",
        "workload-actor",
    }


def endpoint_of_model(claim: Object) -> None:
    assert claim["status"]["endpoint"]["url"].startswith("http://"), claim["status"]
    assert claim["status"]["endpoint"]["model"] == "meta-llama/Llama-3.1-8B-Instruct"


def endpoint_of_database(claim: Object) -> None:
    assert claim["status"]["endpoint"]["host"].endswith(".svc"), claim["status"]
    assert claim["status"]["memoryGiB"] > 0


class Claims:
    """The example claims, applied once, and what was in their namespaces before."""

    def __init__(self, portal: Api, clusters: Clusters) -> None:
        self._portal, self._clusters = portal, clusters
        self._before: dict[str, dict[str, str]] = {}
        self._ready: dict[str, Object] = {}

    def ready(self, name: str) -> Object:
        """The claim, Ready; applied if it was not yet."""
        if name not in self._ready:
            namespace = f"example-{name.replace('.', '-')}"
            make_namespace(self._portal, namespace)
            self._before[name] = self._clusters.objects_in(namespace)
            claim = example(name, namespace)
            started = time.monotonic()
            self._portal.apply(claim, manager="portal")
            self._ready[name] = until_ready(self._portal, claim)
            print(f"{name}: Ready {time.monotonic() - started:.2f} s after it was applied")
        return self._ready[name]

    def delete(self, name: str) -> None:
        """Deletes it, and waits until nothing is left on any cluster."""
        claim = self.ready(name)
        namespace = claim["metadata"]["namespace"]
        there = self._clusters.objects_in(namespace)
        assert set(self._before[name]) < set(there)
        time.sleep(max(0.0, CREATION_GRACE - age(claim)))
        started = time.monotonic()
        until_gone(self._portal, claim)
        print(f"{name}: gone {time.monotonic() - started:.2f} s after it was deleted, with {len(there)} objects")
        assert self._clusters.objects_in(namespace) == self._before[name], "nothing is left"


def age(claim: Object) -> float:
    """Seconds since its creation."""
    created = dt.datetime.fromisoformat(claim["metadata"]["creationTimestamp"])
    return (dt.datetime.now(dt.UTC) - created).total_seconds()


CASES = [
    ("llama-3.1-8b-l4", ("serving.kserve.io/v1alpha2", "LLMInferenceService"), endpoint_of_model, "KServe"),
    ("qdrant-5m-1536", ("apps/v1", "StatefulSet"), endpoint_of_database, "no operator"),
    ("pgvector-3072-halfvec", ("postgresql.cnpg.io/v1", "Cluster"), endpoint_of_database, "CloudNativePG"),
]


@pytest.fixture(scope="module")
def claims(portal: Api, clusters: Clusters) -> Claims:
    return Claims(portal, clusters)


@pytest.mark.parametrize(("name", "workload", "check", "reason"), CASES, ids=[case[0] for case in CASES])
def test_an_example_becomes_ready(
    claims: Claims,
    clusters: Clusters,
    name: str,
    workload: tuple[str, str],
    check: Callable[[Object], None],
    reason: str,
) -> None:
    ready = claims.ready(name)
    check(ready)
    cluster, namespace = ready["status"]["placement"]["cluster"], ready["metadata"]["namespace"]
    assert NOTE in json.dumps(clusters.workload(cluster, *workload, namespace)["status"]), reason


@pytest.fixture(scope="module")
def unlucky(plane: LocalControlPlane, portal: Api) -> Object:
    """A claim whose model server finds no accelerator."""
    make_namespace(portal, "example-failing")
    claim = example("llama-3.1-8b-l4", "example-failing", "unlucky")
    plane.layout.faults.write_text(json.dumps({"unlucky": "fail"}))
    portal.apply(claim, manager="portal")
    return claim


def test_a_workload_that_fails_says_why_in_the_claim(plane: LocalControlPlane, portal: Api, unlucky: Object) -> None:
    def said() -> bool:
        return "Insufficient nvidia.com/gpu" in condition(current(portal, unlucky), "WorkloadReady").get("message", "")

    eventually("the reason is in the claim", said, READY_WITHIN)
    assert condition(current(portal, unlucky), "Ready")["status"] == "False"
    plane.layout.faults.write_text("{}")
    until_ready(portal, unlucky)
    portal.delete(unlucky, "Foreground")


REFUSED: list[tuple[str, str, dict[str, Any] | None, str]] = [
    ("GET", "/api/v1/namespaces/crossplane-system/secrets", None, "kubeconfigs and keys are there"),
    ("GET", "/api/v1/secrets", None, "connection secrets are the teams'"),
    ("DELETE", "/api/v1/namespaces/crossplane-system", None, "it makes namespaces and never removes them"),
    (
        "DELETE",
        "/apis/aiplatform.example.org/v1alpha1/inferenceclusters/eu-west-1",
        None,
        "the fleet is not the portal's",
    ),
    ("DELETE", "/apis/apiextensions.crossplane.io/v1/compositions/modeldeployments-kserve", None, "nor are offerings"),
    (
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": "mine"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        },
        "it can't give itself more",
    ),
]


@pytest.mark.parametrize(("method", "path", "body", "reason"), REFUSED, ids=[case[3] for case in REFUSED])
def test_the_portal_is_no_administrator(
    portal: Api, method: str, path: str, body: dict[str, Any] | None, reason: str
) -> None:
    with pytest.raises(ApiError) as caught:
        portal.call(method, path, None if body is None else json.dumps(body))
    assert caught.value.status == 403, reason


def test_the_portal_may_not_write_a_claims_status(portal: Api) -> None:
    claim = example("llama-3.1-8b-l4", "default")
    with pytest.raises(ApiError) as caught:
        portal.apply({**{k: claim[k] for k in ("apiVersion", "kind", "metadata")}, "status": {}}, status=True)
    assert caught.value.status == 403


def test_the_actor_may_not_change_a_workload(plane: LocalControlPlane) -> None:
    with Api(server_from(plane.layout.kubeconfig(CLUSTERS[0], ACTOR))) as actor:
        manifest = {
            "apiVersion": "serving.kserve.io/v1alpha2",
            "kind": "LLMInferenceService",
            "metadata": {"name": "own", "namespace": "default"},
            "spec": {"model": {"uri": "hf://a/b"}},
        }
        with pytest.raises(ApiError) as caught:
            actor.apply(manifest)
    assert caught.value.status == 403
    assert not Path(plane.layout.kubeconfig(CONTROL_PLANE, ACTOR)).exists(), "it has no account where claims are"


def test_the_fleets_clusters_are_reached(portal: Api) -> None:
    for name in CLUSTERS:
        found = portal.get(GROUP, "InferenceCluster", name)
        assert is_true(found, "Ready", "Synced", "Reachable"), found


@pytest.mark.parametrize(("name", "workload"), [case[:2] for case in CASES], ids=[case[0] for case in CASES])
def test_it_is_suspended_and_resumed(
    portal: Api, clusters: Clusters, claims: Claims, name: str, workload: tuple[str, str]
) -> None:
    ready = claims.ready(name)
    claim = example(name, ready["metadata"]["namespace"])
    claim["spec"]["suspend"] = True
    started = time.monotonic()
    portal.apply(approve(claim), manager="portal")
    stopped = until_ready(portal, claim, lambda found: is_true(found, "Suspended"))
    print(f"{name}: suspended {time.monotonic() - started:.2f} s after it was applied")
    assert is_true(stopped, "Approved"), stopped["status"]
    assert "endpoint" not in stopped["status"], "the operator may leave its address in place, the claim may not"
    cluster = stopped["status"]["placement"]["cluster"]
    found = clusters.workload(cluster, *workload, ready["metadata"]["namespace"])
    assert found["metadata"]["annotations"].get(STOPS.get(name, ""), found["spec"].get("replicas")) in ("true", "on", 0)

    claim["spec"]["suspend"] = False
    started = time.monotonic()
    portal.apply(approve(claim), manager="portal")
    resumed = until_ready(portal, claim, lambda found: not is_true(found, "Suspended"))
    print(f"{name}: resumed {time.monotonic() - started:.2f} s after it was applied")
    assert resumed["status"]["endpoint"] == ready["status"]["endpoint"]
    assert resumed["status"]["placement"]["cluster"] == cluster
    again = clusters.workload(cluster, *workload, ready["metadata"]["namespace"])
    assert again["metadata"]["uid"] == found["metadata"]["uid"], "it was stopped, not made anew: its data is there"


STOPS = {"llama-3.1-8b-l4": "serving.kserve.io/stop", "pgvector-3072-halfvec": "cnpg.io/hibernation"}


def test_a_model_that_scales_within_its_ceiling_is_not_asked_about(portal: Api, clusters: Clusters) -> None:
    """From a fixed number of replicas to a range and back: on the workload cluster one excludes the other."""
    make_namespace(portal, "example-scaled")
    claim = example("llama-3.1-70b-fp8-h100", "example-scaled")
    portal.apply(claim, manager="portal")
    cluster = until_ready(portal, claim)["status"]["placement"]["cluster"]

    def scales() -> tuple[bool, bool]:
        spec = clusters.workload(cluster, *CASES[0][1], "example-scaled")["spec"]
        return "scaling" in spec, "replicas" in spec

    for least, most, wanted in ((2, 2, (False, True)), (1, 2, (True, False))):
        claim["spec"]["replicas"] = {"min": least, "max": most}
        portal.apply(claim, manager="portal")
        assert is_true(until_ready(portal, claim, lambda found, wanted=wanted: scales() == wanted), "Approved")  # type: ignore[misc]  # bound now
    portal.delete(claim, "Foreground")


def test_what_is_not_approved_is_not_made(portal: Api, clusters: Clusters) -> None:
    make_namespace(portal, "example-unapproved")
    claim = example("llama-3.1-8b-l4", "example-unapproved")
    del claim["metadata"]["annotations"]
    portal.apply(claim, manager="somebody")

    def said() -> dict[str, Any]:
        return condition(current(portal, claim), "Approved")

    eventually("it is refused", lambda: said().get("reason") == "ApprovalMissing", READY_WITHIN)
    assert condition(current(portal, claim), "Ready")["status"] == "False"
    assert clusters.objects_in("example-unapproved").keys() == {
        f"{CONTROL_PLANE} ModelDeployment {claim['metadata']['name']}"
    }
    portal.apply(approve(claim), manager="somebody")
    ready = until_ready(portal, claim)
    claim["spec"]["contextLength"] = 2048  # nobody approved that
    portal.apply(claim, manager="somebody")
    eventually("it is refused", lambda: said().get("reason") == "ApprovalExceeded", READY_WITHIN)
    cluster = ready["status"]["placement"]["cluster"]
    runs = clusters.workload(cluster, *CASES[0][1], "example-unapproved")
    assert "--max-model-len=4096" in json.dumps(runs["spec"]), "it runs as it was approved"
    assert is_true(current(portal, claim), "Ready")
    payload = payload_for(claim, time.time() - 90 * 24 * 3600)
    portal.apply(approve(claim, sign(payload)), manager="somebody")
    eventually("it has expired", lambda: said().get("reason") == "ApprovalExpired", READY_WITHIN)
    portal.delete(claim, "Foreground")


@pytest.mark.parametrize("name", [case[0] for case in CASES])
def test_a_deleted_claim_leaves_nothing_behind(claims: Claims, name: str) -> None:
    claims.delete(name)


def test_a_claim_that_is_deleted_at_once_goes_too(portal: Api, unlucky: Object) -> None:
    """Within its creation grace the provider asks again and again, with growing pauses: up to a minute."""
    portal.delete(unlucky, "Foreground")
    eventually("gone", lambda: current(portal, unlucky) is None, 2 * GONE_WITHIN)
