"""The composition function takes the claims that the portal renders: over real gRPC, with the sample fleet.

This is the other half of the contract. The function answers as it would to Crossplane: it says which other objects it
wants to see, gets them, and is asked again with what it composed until nothing changes.
"""

import os
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from portal.domain import strict_yaml
from tests.contract.claims import CROSSPLANE, EXAMPLES, offering_named
from tests.contract.goldens import FOLDER
from tests.crossplane.samples import counted_fleet

grpc = pytest.importorskip("grpc", reason="the extra `embedded` isn't installed")
from crossplane.function import resource  # noqa: E402  # after the check above
from crossplane.function.proto.v1 import run_function_pb2 as fnv1  # noqa: E402
from crossplane.function.proto.v1 import run_function_pb2_grpc as grpcv1  # noqa: E402

ROUNDS = 8
FLEET = counted_fleet()


@pytest.fixture(scope="module")
def function() -> Iterator[Any]:
    """A stub of the function, served by a child process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    child = subprocess.Popen(
        [sys.executable, "-m", "composition_function", "--address", address, "--insecure", "--approvals=warn"],
        cwd=CROSSPLANE / "composition-function",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CROSSPLANE / "composition-function")},
    )
    try:
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
            yield grpcv1.FunctionRunnerServiceStub(channel)
    finally:
        child.terminate()
        child.wait(timeout=10)


def golden(example: str) -> dict[str, Any]:
    claim: dict[str, Any] = strict_yaml.parse((FOLDER / "claims" / f"{example}.yaml").read_text(encoding="utf-8"))
    # A uid of its own each time: the function remembers what it answered to a claim.
    claim["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": "2026-12-01T12:00:00Z", "generation": 1}
    return claim


def written(claim: dict[str, Any], status: dict[str, Any], answer: Any) -> dict[str, Any]:
    """The claim with an answer's status and conditions, as Crossplane writes them."""
    said = {c.type: (c.status == fnv1.STATUS_CONDITION_TRUE, c.reason, c.message) for c in answer.conditions}
    said["Ready"] = (answer.desired.composite.ready == fnv1.READY_TRUE, "", "")
    conditions = [
        {"type": kind, "status": str(holds), "reason": reason, "message": message}
        for kind, (holds, reason, message) in said.items()
    ]
    return {**claim, "status": {**status, "conditions": conditions}}


def settle(function: Any, claim: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Status and composed objects, by name, once a further call changes nothing."""
    composed: dict[str, Any] = {}
    wanted: dict[str, tuple[str, str]] = {}
    before: dict[str, Any] = {}
    for _ in range(ROUNDS):
        request = fnv1.RunFunctionRequest()
        request.observed.composite.resource.CopyFrom(resource.dict_to_struct(claim))
        for key, manifest in composed.items():
            request.observed.resources[key].resource.CopyFrom(resource.dict_to_struct(manifest))
        for key, (api_version, kind) in wanted.items():
            found = request.required_resources[key]
            for item in [*FLEET, claim]:
                if (item["apiVersion"], item["kind"]) == (api_version, kind):
                    found.items.add().resource.CopyFrom(resource.dict_to_struct(item))
        answer = function.RunFunction(request, timeout=10)
        fatal = [result.message for result in answer.results if result.severity == fnv1.SEVERITY_FATAL]
        assert fatal == []
        asked = {key: (item.api_version, item.kind) for key, item in answer.requirements.resources.items()}
        desired = {key: resource.struct_to_dict(item.resource) for key, item in answer.desired.resources.items()}
        status = resource.struct_to_dict(answer.desired.composite.resource).get("status", {})
        if (asked, desired, status) == (wanted, composed, before):
            return status, composed
        wanted, composed, before = asked, desired, status
        if len(request.required_resources):  # the first answer only asks
            claim = written(claim, status, answer)
    pytest.fail(f"{claim['kind']} {claim['metadata']['name']} did not settle in {ROUNDS} rounds: {claim.get('status')}")


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_golden_claim_is_placed_and_composed(function: Any, example: str) -> None:
    claim = golden(example)
    status, composed = settle(function, claim)
    regions = {item["metadata"]["name"]: item["spec"]["region"] for item in FLEET if item["kind"] == "InferenceCluster"}
    placement = status["placement"]
    assert regions[placement["cluster"]] == placement["region"]
    assert not claim["spec"]["regions"] or placement["region"] in claim["spec"]["regions"]
    assert composed, "placed, but nothing was made of it"
    assert {item["metadata"]["namespace"] for item in composed.values()} == {claim["metadata"]["namespace"]}


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_function_reserves_what_the_portal_counts(function: Any, example: str) -> None:
    """Where both compute the same thing: with a GiB between them the portal promises what the function refuses."""
    claim = golden(example)
    status, _ = settle(function, claim)
    spec = {key: value for key, value in claim["spec"].items() if key != "crossplane"}
    measured = offering_named(example.split("/")[0]).measure(spec)
    assert ("memoryGiB" in status) == ("vectordb.memory_gib" in measured)
    assert status.get("memoryGiB") == measured.get("vectordb.memory_gib")
    assert all(amount > 0 for amount in measured.values())


def test_a_status_has_only_fields_that_the_xrd_declares(function: Any) -> None:
    for example in EXAMPLES:
        status, _ = settle(function, golden(example))
        assert status.keys() <= offering_named(example.split("/")[0]).status_schema["properties"].keys()


@pytest.mark.parametrize(
    ("example", "pointer", "value", "says"),
    [
        ("modeldeployments/llama-3.1-8b-l4", ("accelerator", "class"), "tpu-v9", "no AcceleratorClass"),
        ("vectordatabases/qdrant-5m-1536", ("vectors",), "many", "/spec/vectors is 'many'"),
    ],
)
def test_a_claim_that_it_can_not_read_is_fatal_and_named(
    function: Any, example: str, pointer: tuple[str, ...], value: Any, says: str
) -> None:
    claim = golden(example)
    inner = claim["spec"]
    for step in pointer[:-1]:
        inner = inner[step]
    inner[pointer[-1]] = value
    with pytest.raises(AssertionError, match=says):
        settle(function, claim)


def test_a_claim_that_fits_nowhere_says_so_for_each_cluster(function: Any) -> None:
    claim = golden("modeldeployments/llama-3.1-8b-l4")
    claim["spec"]["regions"] = ["the-moon"]
    status, composed = settle(function, claim)
    assert "cluster" not in status["placement"]
    assert composed == {}
    clusters = {item["metadata"]["name"] for item in FLEET if item["kind"] == "InferenceCluster"}
    assert {reason["cluster"] for reason in status["placement"]["reasons"]} == clusters
