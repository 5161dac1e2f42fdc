"""When a claim or a cluster counts as ready: only if what it stands for was observed to be, in its newest form."""

import copy
from typing import Any

import pytest
from cel_expr_python import cel
from composition_function.contract import Outcome

from tests.crossplane.samples import MODEL, PGVECTOR, PRODUCTION, QDRANT, Run, condition, example, fleet

SYNCED = [{"type": "Synced", "status": "True"}]


def llm(ready: str, **status: Any) -> dict[str, Any]:
    """The status of an LLMInferenceService."""
    found = {"type": "Ready", "status": ready}
    return {"url": "http://gateway.example.org/search-dev/chat", "conditions": [found], **status}


SCHEDULING = {"type": "WorkloadsReady", "status": "False", "reason": "FailedScheduling", "message": "no GPU"}


@pytest.mark.parametrize(
    ("status", "conditions", "ready", "says", "reason"),
    [
        (llm("True"), SYNCED, True, "", "KServe says ready and where"),
        (llm("False"), SYNCED, False, "Ready", "KServe says not"),
        (llm("Unknown"), SYNCED, False, "has not said", "KServe is not sure"),
        ({}, SYNCED, False, "has not said", "no status yet"),
        (llm("False", conditions=[SCHEDULING]), SYNCED, False, "WorkloadsReady: FailedScheduling: no GPU", "the cause"),
        (
            llm("False", conditions=[{"type": "Ready", "status": "False", "reason": "", "lastTransitionTime": None}]),
            SYNCED,
            False,
            "Ready",
            "an empty reason and no message are tolerated",
        ),
        (llm("True", observedGeneration=0), SYNCED, False, "last update", "Ready of an older generation"),
        (llm("True", url=None), SYNCED, False, "no address", "ready, but nobody can call it"),
        (
            llm("True", url=None, addresses=[{"url": "http://a"}]),
            SYNCED,
            True,
            "",
            "KServe may fill only the list of addresses",
        ),
        (
            llm("True"),
            [{"type": "Synced", "status": "False", "message": "connection refused"}],
            False,
            "connection refused",
            "a stale Ready of a cluster that can't be reached",
        ),
    ],
)
def test_a_model_is_ready_only_if_its_workload_is(
    status: dict[str, Any], conditions: list[Any], ready: bool, says: str, reason: str
) -> None:
    run = Run(example(MODEL))
    run.until_composed()
    run.report("llminferenceservice", status, conditions)
    outcome = run.step()
    assert outcome.ready is ready, reason
    assert says in condition(outcome, "WorkloadReady").message, reason
    assert all(composed.ready is ready for composed in outcome.resources.values())
    assert run.claim["status"].get("endpoint", {}).get("api") == ("openai" if "http" in str(status) else None)


def test_endpoint_and_replicas_come_from_the_workload() -> None:
    run = Run(example(PRODUCTION))
    run.until_composed()
    assert run.claim["status"]["replicas"] == {"ready": 0, "total": 1}
    run.report("llminferenceservice", llm("True", workloads={"primary": {"readyReplicas": 2}}))
    run.step()
    assert run.claim["status"]["replicas"] == {"ready": 2, "total": 2}
    assert run.claim["status"]["endpoint"] == {
        "url": "http://gateway.example.org/search-dev/chat",
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "api": "openai",
    }


def test_an_update_on_its_way_is_not_ready_although_the_old_one_is() -> None:
    run = Run(example(MODEL))
    run.until_composed()
    run.report("llminferenceservice", llm("True"))
    assert run.step().ready
    run.claim["spec"]["contextLength"] = 2048
    outcome = run.step()
    assert not outcome.ready
    assert "update is on its way" in condition(outcome, "WorkloadReady").message


HEALTHY = "Cluster in healthy state"


@pytest.mark.parametrize(
    ("status", "ready", "says", "reason"),
    [
        ({"phase": HEALTHY, "readyInstances": 2, "writeService": "products-rw"}, True, "", "all there"),
        ({"phase": HEALTHY, "readyInstances": 1}, False, "1 of 2", "the standby is missing"),
        ({"phase": "Setting up primary", "readyInstances": 2}, False, "Setting up primary", "the phase is a sentence"),
        ({"phase": "Failing over", "phaseReason": "node lost"}, False, "(node lost)", "the phase's reason is told"),
        ({}, False, "no phase yet", "no status yet"),
        (
            {
                "phase": HEALTHY,
                "readyInstances": 2,
                "conditions": [{"type": "cnpg.io/hibernation", "status": "True", "reason": "Hibernated"}],
            },
            False,
            "not woken it yet",
            "what it says of its instances is from before",
        ),
    ],
)
def test_a_postgres_is_ready_only_if_all_instances_are(
    status: dict[str, Any], ready: bool, says: str, reason: str
) -> None:
    run = Run(example(PGVECTOR))
    run.until_composed()
    run.report("postgres", status)
    outcome = run.step()
    assert outcome.ready is ready, reason
    assert says in condition(outcome, "WorkloadReady").message, reason
    if ready:
        assert outcome.status["endpoint"] == {
            "host": "products-rw.search-prod.svc",
            "port": 5432,
            "scheme": "postgresql",
        }


@pytest.mark.parametrize(
    ("status", "ready", "reason"),
    [
        ({"readyReplicas": 1.0, "observedGeneration": 1.0}, True, "numbers come as floats"),
        ({"readyReplicas": 0}, False, "no pod is ready"),
        ({}, False, "no status yet"),
        ({"readyReplicas": 1, "observedGeneration": 0}, False, "the last update was not seen"),
    ],
)
def test_a_qdrant_is_ready_only_if_its_pods_are(status: dict[str, Any], ready: bool, reason: str) -> None:
    run = Run(example(QDRANT))
    run.until_composed()
    run.report("service", {})
    run.report("qdrant", status)
    outcome = run.step()
    assert outcome.ready is ready, reason
    assert outcome.status["endpoint"] == {"host": "documents-qdrant.search-prod.svc", "port": 6333, "scheme": "http"}


def test_volumes_of_a_qdrant_are_never_changed_but_said_to_be_too_small() -> None:
    run = Run(example(QDRANT))
    run.until_composed()
    run.report("qdrant", {"readyReplicas": 1})
    assert not run.step().ready, "nobody can reach it before its service is there"
    run.report("service", {})
    assert run.step().ready
    before = copy.deepcopy(run.observed["qdrant"]["spec"]["forProvider"]["manifest"]["spec"]["volumeClaimTemplates"])
    run.claim["spec"]["vectors"] *= 2
    run.step()
    run.report("qdrant", {"readyReplicas": 1})
    outcome = run.step()
    after = run.observed["qdrant"]["spec"]["forProvider"]["manifest"]["spec"]
    assert after["volumeClaimTemplates"] == before
    assert after["template"]["spec"]["containers"][0]["resources"]["limits"]["memory"] == f"{86 * 1024}Mi"
    assert not outcome.ready
    assert "68 GiB and need 125" in condition(outcome, "WorkloadReady").message


def test_an_accelerator_class_is_ready_by_itself() -> None:
    (item,) = [item for item in fleet() if item["metadata"]["name"] == "l4"]
    assert Run(item, []).step() == Outcome(ready=True)


READY = [{"type": "Ready", "status": "True"}]


@pytest.mark.parametrize(
    ("name", "key", "status", "generation", "expected", "reason"),
    [
        (MODEL, "llminferenceservice", {"url": "http://a", "conditions": READY}, 1, True, "ready"),
        (MODEL, "llminferenceservice", {}, 1, False, "no status yet"),
        (MODEL, "llminferenceservice", {"conditions": READY, "observedGeneration": 1}, 2, False, "an older generation"),
        (PGVECTOR, "postgres", {"phase": HEALTHY, "readyInstances": 2, "writeService": "s"}, 1, True, "ready"),
        (PGVECTOR, "postgres", {"phase": HEALTHY, "readyInstances": 1}, 1, False, "the standby is missing"),
        (PGVECTOR, "postgres", {"phase": "Setting up primary", "readyInstances": 2}, 1, False, "another phase"),
        (PGVECTOR, "postgres", {}, 1, False, "no status yet"),
        (QDRANT, "qdrant", {"readyReplicas": 1, "observedGeneration": 1}, 1, True, "ready"),
        (QDRANT, "qdrant", {"readyReplicas": 0}, 1, False, "no pod is ready"),
        (QDRANT, "qdrant", {"readyReplicas": 1, "observedGeneration": 1}, 2, False, "an older generation"),
        (QDRANT, "qdrant", {}, 1, False, "no status yet"),
    ],
)
def test_the_object_and_the_claim_agree_on_what_is_ready(
    name: str, key: str, status: dict[str, Any], generation: int, expected: bool, reason: str
) -> None:
    """provider-kubernetes evaluates the query on the workload, its `object`; the function reads the same workload."""
    run = Run(example(name))
    run.until_composed()
    if name == QDRANT:
        run.report("service", {})
    run.report(key, status, generation=generation)
    environment = cel.NewEnv(variables={"object": cel.Type.DYN})
    query = environment.compile(run.observed[key]["spec"]["readiness"]["celQuery"])
    assert query.return_type() == cel.Type.BOOL, "provider-kubernetes refuses anything else"
    workload = run.observed[key]["status"]["atProvider"]["manifest"]
    assert query.eval(environment.Activation({"object": workload})).plain_value() is expected, reason
    assert run.step().ready is expected, reason


def test_what_a_manifest_no_longer_has_is_taken_away() -> None:
    """provider-kubernetes merges: what is only left out stays, and KServe refuses replicas beside scaling."""
    run = Run(example(PRODUCTION))
    run.until_composed()
    run.claim["metadata"]["labels"] = {"team": "search"}

    def service() -> dict[str, Any]:
        run.report("llminferenceservice", llm("True"))
        run.step()
        found: dict[str, Any] = run.observed["llminferenceservice"]["spec"]["forProvider"]["manifest"]
        return found

    assert "scaling" in service()["spec"]
    run.claim["spec"]["replicas"] = {"min": 2, "max": 2}
    fixed = service()
    assert (fixed["spec"]["replicas"], fixed["spec"]["scaling"]) == (2, None)
    del run.claim["metadata"]["labels"]
    assert service()["metadata"]["labels"] is None
    assert service()["spec"] == fixed["spec"], "for as long as it has not"
    run.report("llminferenceservice", llm("True"))
    assert run.step().ready, "a null is as good as nothing"
    run.claim["spec"]["replicas"] = {"min": 1, "max": 2}
    assert (service()["spec"]["replicas"], service()["spec"]["scaling"]["maxReplicas"]) == (None, 2)
    run.observed["llminferenceservice"]["status"] = {}
    run.step()
    made = run.observed["llminferenceservice"]["spec"]["forProvider"]["manifest"]
    assert "labels" not in made["metadata"], "where it has to be made again there is nothing to take away"
