"""What the portal signs is what the composition function takes: its approvals, its keys, and what they count."""

import asyncio
import copy
import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("grpc", reason="the extra `embedded` isn't installed")
import composition_function.runner
from composition_function import approvals, needs
from crossplane.function import resource
from crossplane.function.proto.v1 import run_function_pb2 as fnv1

from portal.rendering.approval_token import APPROVAL, KEYS_NAME, KEYS_NAMESPACE, keys_manifest
from portal.services.signing import VALID_FOR
from tests.contract.approvals import ISSUED, KID, PUBLIC_PEM, approve, approved
from tests.contract.claims import EXAMPLES, claim_of, offering_named
from tests.crossplane.samples import counted_fleet

Claim = dict[str, Any]
KEYS = [keys_manifest({KID: PUBLIC_PEM})]
NOW = ISSUED.timestamp()
MODEL = "modeldeployments/llama-3.1-70b-fp8-h100"


def test_both_sides_mean_the_same_annotation_and_the_same_keys() -> None:
    assert approvals.ANNOTATION == APPROVAL
    assert (approvals.KEYS.namespace, approvals.KEYS.match_name) == (KEYS_NAMESPACE, KEYS_NAME)
    assert (approvals.KEYS.api_version, approvals.KEYS.kind) == (KEYS[0]["apiVersion"], KEYS[0]["kind"])


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_the_portal_signs_is_granted(example: str) -> None:
    assert approvals.judge(approved(example), KEYS, NOW).granted


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_approval_holds_until_its_date(example: str) -> None:
    late = (ISSUED + VALID_FOR + dt.timedelta(minutes=2)).timestamp()
    assert approvals.judge(approved(example), KEYS, late).reason == "ApprovalExpired"


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize("suspended", [False, True])
def test_the_function_counts_what_the_portal_promised(example: str, suspended: bool) -> None:
    claim = claim_of(example)
    claim["spec"]["suspend"] = suspended
    spec = {key: value for key, value in claim["spec"].items() if key != "crossplane"}
    # What takes nothing of a dimension is left out by the one and 0 for the other.
    counted = {dimension: amount for dimension, amount in needs.metered(claim).items() if amount}
    assert counted == offering_named(example.split("/")[0]).measure(spec)
    assert approvals.judge(approve(claim, ISSUED), KEYS, NOW).granted


def _more(claim: Claim) -> None:
    claim["spec"]["replicas"] = {"min": 1, "max": 3}


def _fewer(claim: Claim) -> None:
    claim["spec"]["replicas"] = {"min": 1, "max": 1}


def _elsewhere(claim: Claim) -> None:
    claim["metadata"]["namespace"] = "another"


def _another_class(claim: Claim) -> None:
    claim["spec"]["accelerator"]["class"] = "l4"


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (_more, "ApprovalExceeded"),
        (_fewer, "Approved"),
        (_elsewhere, "ApprovalForeign"),
        (_another_class, "ApprovalExceeded"),
        (lambda claim: claim["metadata"]["annotations"].pop(APPROVAL), "ApprovalMissing"),
    ],
)
def test_an_edit_behind_the_portals_back(edit: Callable[[Claim], None], reason: str) -> None:
    claim = copy.deepcopy(approved(MODEL))
    edit(claim)
    assert approvals.judge(claim, KEYS, NOW).reason == reason


async def answers(claim: Claim, keys: list[dict[str, Any]], **options: Any) -> Any:
    """The function's answer once the claim is placed, as Crossplane would ask for it; and the one before."""
    runner = composition_function.runner.FunctionRunner(**options)
    claim = copy.deepcopy(claim)
    claim["metadata"] |= {"uid": "u", "creationTimestamp": "2026-12-01T12:00:00Z"}
    answer = None
    for _ in range(3):
        request = fnv1.RunFunctionRequest()
        resource.update(request.observed.composite, claim)
        for key, selector in answer.requirements.resources.items() if answer else ():
            request.required_resources[key].SetInParent()
            for item in [*counted_fleet(), *keys, claim]:
                if (item["apiVersion"], item["kind"]) == (selector.api_version, selector.kind):
                    resource.update(request.required_resources[key].items.add(), item)
        answer = await runner.RunFunction(request, None)
        claim["status"] = written(answer)
    return answer


def written(answer: Any) -> dict[str, Any]:
    """The status once Crossplane has written an answer, with its conditions."""
    said = [(c.type, c.status == fnv1.STATUS_CONDITION_TRUE, c.reason, c.message) for c in answer.conditions]
    ready = ("Ready", answer.desired.composite.ready == fnv1.READY_TRUE, "", "")
    conditions = [
        {"type": kind, "status": str(status), "reason": reason, "message": message}
        for kind, status, reason, message in [*said, ready]
    ]
    status = resource.struct_to_dict(answer.desired.composite.resource).get("status", {})
    return {**status, "conditions": conditions}


@pytest.mark.parametrize("example", EXAMPLES)
@pytest.mark.parametrize(
    ("signed", "published", "enforced", "composes", "reason"),
    [
        (True, True, True, True, "Approved"),
        (True, False, True, False, "ApprovalKeyUnknown"),
        (False, True, True, False, "ApprovalMissing"),
        (False, True, False, True, "ApprovalMissing"),
    ],
    ids=["approved", "its key is not there yet", "unsigned", "unsigned, and only warned of"],
)
def test_the_function_composes_what_was_approved(
    example: str, signed: bool, published: bool, enforced: bool, composes: bool, reason: str
) -> None:
    claim = approve(claim_of(example), dt.datetime.now(dt.UTC)) if signed else claim_of(example)
    keys = KEYS if published else [keys_manifest({})]
    answer = asyncio.run(answers(claim, keys, enforce_approvals=enforced))
    said = {condition.type: condition for condition in answer.conditions}
    assert (len(answer.desired.resources) > 0) is composes
    assert said["Approved"].reason == reason
    assert said["Approved"].status == (
        fnv1.STATUS_CONDITION_TRUE if signed and published else fnv1.STATUS_CONDITION_FALSE
    )
    assert said["Approved"].message.startswith("would be refused: ") is not enforced
    assert answer.desired.composite.ready == fnv1.READY_FALSE
