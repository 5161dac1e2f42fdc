"""Suspended claims: stopped where they are, at zero only when that was seen, and what is given back meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from cel_expr_python import cel
from composition_function import fleet, suspension
from composition_function.contract import Condition, Outcome
from composition_function.needs import need_of

from portal.adapters.embedded.workloads import Workload as simulated_workload
from portal.adapters.embedded.workloads import reported as simulated
from portal.running.crossplane.reports import WORKLOADS
from tests.crossplane.samples import MODEL, PGVECTOR, PRODUCTION, QDRANT, Manifest, Run, condition, example, schema
from tests.crossplane.structural import errors, strict

HEALTHY = "Cluster in healthy state"
MAIN = {MODEL: "llminferenceservice", PGVECTOR: "postgres", QDRANT: "qdrant"}
READY: dict[str, Manifest] = {
    MODEL: {"url": "http://a", "workloads": {"primary": {}}, "conditions": [{"type": "Ready", "status": "True"}]},
    PGVECTOR: {"phase": HEALTHY, "readyInstances": 2, "writeService": "products-rw"},
    QDRANT: {"readyReplicas": 1, "replicas": 1, "observedGeneration": 1},
}
STOPPED = {"type": "WorkloadsReady", "status": "False", "reason": "Stopped"}
HIBERNATED = {"type": "cnpg.io/hibernation", "status": "True", "reason": "Hibernated"}
AT_ZERO: dict[str, Manifest] = {
    # KServe v0.20.0 leaves the url of a stopped service in place.
    MODEL: {"url": "http://a", "conditions": [STOPPED, {"type": "Ready", "status": "False", "reason": "Stopped"}]},
    PGVECTOR: {"phase": HEALTHY, "readyInstances": 0, "writeService": "products-rw", "conditions": [HIBERNATED]},
    QDRANT: {"replicas": 0, "observedGeneration": 1},
}
KINDS = pytest.mark.parametrize("name", [MODEL, PGVECTOR, QDRANT])


def running(name: str) -> Run:
    """A claim of an example that runs."""
    run = Run(example(name))
    run.until_composed()
    report(run, name, READY[name])
    assert run.step().ready
    return run


def report(run: Run, name: str, status: Manifest) -> None:
    """Its operator reports."""
    if name == QDRANT:
        run.report("service", {})
    run.report(MAIN[name], status)


def suspend(run: Run) -> Outcome:
    """Ask for it, and let the function act once."""
    run.claim["spec"]["suspend"] = True
    return run.step()


def at_zero(name: str) -> Run:
    """A claim that was suspended and seen at zero."""
    run = running(name)
    suspend(run)
    report(run, name, AT_ZERO[name])
    assert condition(run.step(), "Suspended").status
    return run


def inner(outcome: Outcome, key: str) -> Manifest:
    """What an Object carries to its cluster."""
    found: Manifest = outcome.resources[key].manifest["spec"]["forProvider"]["manifest"]
    return found


@KINDS
def test_it_is_stopping_until_its_operator_says_zero_and_has_no_endpoint_from_then_on(name: str) -> None:
    run = running(name)
    before = {key: item for key, item in run.observed.items()}
    assert "endpoint" in run.claim["status"]
    outcome = suspend(run)
    assert outcome.resources.keys() == before.keys(), "nothing is deleted"
    assert (outcome.ready, "endpoint" in outcome.status) == (False, False)
    assert condition(outcome, "Suspended").reason == "Stopping"
    assert outcome.ttl <= 10
    report(run, name, READY[name])
    outcome = run.step()
    assert not outcome.ready, "the operator has not acted yet"
    report(run, name, AT_ZERO[name])
    outcome = run.step()
    assert outcome.ready
    assert all(composed.ready for composed in outcome.resources.values())
    assert [(c.type, c.status) for c in outcome.conditions if c.type != "Approved"] == [
        ("Placed", True),
        ("WorkloadReady", True),
        ("Suspended", True),
    ]
    assert "endpoint" not in outcome.status
    assert errors(strict(schema(run.claim["kind"])), run.claim) == []


def test_each_kind_is_stopped_by_its_own_means() -> None:
    outcome = suspend(running(MODEL))
    assert inner(outcome, "llminferenceservice")["metadata"]["annotations"] == {"serving.kserve.io/stop": "true"}
    outcome = suspend(running(PGVECTOR))
    assert inner(outcome, "postgres")["metadata"]["annotations"] == {"cnpg.io/hibernation": "on"}
    assert inner(outcome, "backup-schedule")["spec"]["suspend"] is True, "backups of a hibernated cluster fail"
    run = running(QDRANT)
    before = run.observed["qdrant"]["spec"]["forProvider"]["manifest"]
    stateful_set = inner(suspend(run), "qdrant")
    assert stateful_set["spec"].pop("replicas") == 0
    assert {**before["spec"], "replicas": None} == {**stateful_set["spec"], "replicas": None}
    assert "persistentVolumeClaimRetentionPolicy" not in stateful_set["spec"], "its default keeps the volumes"


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        (MODEL, {"conditions": [STOPPED], "workloads": {"primary": {}}}, "its Deployment is still listed"),
        (MODEL, {"conditions": [{**STOPPED, "reason": "FailedScheduling"}]}, "not ready for another reason"),
        (MODEL, {}, "no status"),
        (PGVECTOR, {"phase": HEALTHY, "readyInstances": 0}, "no pods, but not for being hibernated"),
        (PGVECTOR, {"conditions": [{**HIBERNATED, "status": "False", "message": "waits"}]}, "not yet"),
        (QDRANT, {"replicas": 1, "readyReplicas": 0}, "a pod that is ending is a pod"),
        (QDRANT, {}, "no status"),
    ],
)
def test_less_than_zero_seen_is_not_suspended(name: str, status: Manifest, reason: str) -> None:
    run = running(name)
    suspend(run)
    report(run, name, status)
    outcome = run.step()
    assert not outcome.ready, reason
    assert condition(outcome, "Suspended") == Condition(
        "Suspended", False, "Stopping", condition(outcome, "WorkloadReady").message
    )
    query = run.observed[MAIN[name]]["spec"]["readiness"]["celQuery"]
    assert evaluated(query, run.observed[MAIN[name]]["status"]["atProvider"]["manifest"]) is False


def evaluated(query: str, workload: Manifest) -> Any:
    """As provider-kubernetes evaluates it."""
    environment = cel.NewEnv(variables={"object": cel.Type.DYN})
    return environment.compile(query).eval(environment.Activation({"object": workload})).plain_value()


@KINDS
def test_the_object_agrees_that_it_is_at_zero(name: str) -> None:
    run = at_zero(name)
    observed = run.observed[MAIN[name]]
    assert evaluated(observed["spec"]["readiness"]["celQuery"], observed["status"]["atProvider"]["manifest"]) is True


def test_a_model_gives_its_accelerators_back_when_it_is_at_zero_and_not_before() -> None:
    run = running(MODEL)
    assert need_of(run.claim).units == 1
    suspend(run)
    assert need_of(run.claim).units == 1, "it still runs"
    report(run, MODEL, AT_ZERO[MODEL])
    run.step()
    seen = fleet.read_claim(run.claim)
    assert (seen.need.units, seen.bound) == (0, False)
    assert seen.held is not None, "where it was, and is looked for first"
    run.claim["spec"]["suspend"] = False
    assert need_of(run.claim).units == 1, "from the moment that it is wanted again, for everybody"


@pytest.mark.parametrize("name", [PGVECTOR, QDRANT])
def test_a_database_keeps_its_place(name: str) -> None:
    run = at_zero(name)
    seen = fleet.read_claim(run.claim)
    assert (seen.need, seen.bound) == (need_of(example(name)), True)
    assert run.claim["status"]["connectionSecretName"], "its credentials stay"


@KINDS
def test_resumed_it_is_composed_as_before_where_it_was(name: str) -> None:
    run = running(name)
    before, where = run.step(), run.claim["status"]["placement"]
    suspend(run)
    report(run, name, AT_ZERO[name])
    run.step()
    run.claim["spec"]["suspend"] = False
    outcome = run.step()
    assert {k: c.manifest for k, c in outcome.resources.items()} == {k: c.manifest for k, c in before.resources.items()}
    assert outcome.status["placement"] == where
    assert condition(outcome, "Suspended") == suspension.NOT_SUSPENDED
    report(run, name, AT_ZERO[name])
    assert not run.step().ready, "its operator has not acted yet"
    report(run, name, READY[name])
    assert run.step().ready


def taken(run: Run) -> Manifest:
    """Another claim that takes all of the slot where one was, as everybody sees it."""
    other = example(MODEL)
    placement = run.claim["status"]["placement"]
    (cluster,) = [item for item in run.objects if item["metadata"]["name"] == placement["cluster"]]
    (pool,) = [item for item in cluster["status"]["pools"] if item["name"] == placement["pool"]]
    other["metadata"] |= {"uid": "other", "name": "other"}
    other["spec"]["replicas"] = {"min": 1, "max": pool["capacity"]}
    other["status"] = {"placement": placement, "replicas": {"ready": 1, "total": 1}}
    return other


def test_resumed_it_goes_elsewhere_if_its_place_is_taken_and_only_once_it_is_gone_from_there() -> None:
    run = at_zero(MODEL)
    was = run.claim["status"]["placement"]["cluster"]
    run.objects.append(taken(run))
    run.claim["spec"]["suspend"] = False
    outcome = run.step()
    now = outcome.status["placement"]["cluster"]
    assert (condition(outcome, "Placed").reason, now != was, outcome.resources) == ("Reserved", True, {})
    left = at_zero(MODEL).observed["llminferenceservice"]
    run.observed = {"llminferenceservice": left}  # provider-kubernetes is still deleting it
    outcome = run.step()
    assert outcome.resources == {}
    assert f"once it is gone from {was}" in condition(outcome, "Placed").message
    run.observed = {}
    assert run.step().resources["llminferenceservice"].manifest["spec"]["providerConfigRef"]["name"] == now


def test_resumed_it_waits_if_nowhere_is_room() -> None:
    run = at_zero(MODEL)
    run.claim["spec"]["suspend"] = False
    run.objects = [item for item in run.objects if item["kind"] != "InferenceCluster"]
    outcome = run.step()
    assert (outcome.ready, condition(outcome, "Placed").reason) == (False, "NoFleet")


def test_stopping_depends_on_nothing_else_in_the_spec_nor_on_the_fleet() -> None:
    run = running(MODEL)
    run.claim["spec"] |= {"accelerator": {"class": "tpu-v9", "count": 1}, "regions": ["the-moon"]}
    run.objects = []
    outcome = suspend(run)
    service = inner(outcome, "llminferenceservice")
    assert service["metadata"]["annotations"] == {"serving.kserve.io/stop": "true"}
    assert service["spec"]["template"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize("name", [PRODUCTION, QDRANT])
@pytest.mark.parametrize("steps", [0, 1])
def test_what_was_never_composed_takes_nothing(name: str, steps: int) -> None:
    run = Run(example(name))
    for _ in range(steps):
        run.step()  # reserves
    outcome = suspend(run)
    assert (outcome.ready, outcome.resources, "placement" in outcome.status) == (True, {}, False)
    assert condition(outcome, "Suspended").status


def test_a_cluster_that_is_away_does_not_count_as_zero() -> None:
    run = running(QDRANT)
    suspend(run)
    report(run, QDRANT, AT_ZERO[QDRANT])
    run.observed["qdrant"]["status"]["conditions"] = [{"type": "Synced", "status": "False", "message": "no route"}]
    outcome = run.step()
    assert not outcome.ready
    assert "no route" in condition(outcome, "Suspended").message


@KINDS
def test_a_suspended_claim_that_is_deleted_stays_stopped_until_it_is_gone(name: str) -> None:
    run = at_zero(name)
    before = run.step()
    run.claim["metadata"]["deletionTimestamp"] = "2026-12-02T00:00:00Z"
    outcome = run.step()
    assert {k: c.manifest for k, c in outcome.resources.items()} == {k: c.manifest for k, c in before.resources.items()}


def by_the_simulator(manifest: Manifest) -> Manifest:
    """What the embedded control plane's simulator reports of a workload."""
    return simulated(simulated_workload(manifest, "eu-west-1", "ok", "2026-12-01T12:00:00Z")).status


def by_the_actor(manifest: Manifest) -> Manifest:
    """What the actor on a real workload cluster reports of it."""
    (workload,) = [each for each in WORKLOADS if each.kind == manifest["kind"]]
    reported = workload.report(manifest, "eu-west-1", False, "2026-12-01T12:00:00Z")
    return {key: value for key, value in reported.items() if value is not None}  # null takes a field away


@pytest.mark.parametrize("player", [by_the_simulator, by_the_actor], ids=["simulator", "actor"])
@KINDS
def test_those_who_play_the_operators_stop_and_start_as_these_do(
    name: str, player: Callable[[Manifest], Manifest]
) -> None:
    run = Run(example(name))
    run.until_composed()

    def play() -> Outcome:
        if name == QDRANT:
            run.report("service", {})
        manifest = run.observed[MAIN[name]]["spec"]["forProvider"]["manifest"]
        run.report(MAIN[name], player({**manifest, "metadata": {**manifest["metadata"], "generation": 1}}))
        return run.step()

    assert play().ready
    for _ in range(2):
        assert not suspend(run).ready
        assert condition(play(), "Suspended").status
        run.claim["spec"]["suspend"] = False
        assert not run.step().ready
        resumed = play()
        assert (resumed.ready, condition(resumed, "Suspended").status) == (True, False)
