"""What becomes of a claim whose approval doesn't cover it: nothing new, and what runs goes on."""

import dataclasses
from typing import Any

import pytest
from composition_function import fleet
from composition_function.contract import Approval, Outcome, Request
from composition_function.kinds import KINDS
from composition_function.needs import need_of

from tests.crossplane.samples import MODEL, PGVECTOR, QDRANT, Run, condition, example, required, schema
from tests.crossplane.structural import errors, strict
from tests.crossplane.test_suspension import AT_ZERO, at_zero, report, running, suspend

REFUSED = Approval(False, "ApprovalMissing", "nobody approved it")
EXPIRED = Approval(False, "ApprovalExpired", "it expired", keeps=True)
EVERY_KIND = pytest.mark.parametrize("name", [MODEL, PGVECTOR, QDRANT])


def step(run: Run, approval: Approval = REFUSED) -> Outcome:
    """One call with this verdict; the conditions are in the status, as a control plane shows them."""
    request = Request(run.claim, run.observed, required(run.claim, run.objects), approval=approval)
    outcome = KINDS[run.claim["kind"]].compose(request)
    shown = [{"type": c.type, "status": str(c.status), "reason": c.reason} for c in outcome.conditions]
    run.claim["status"] = outcome.status | {"conditions": shown}
    run.observed = {key: run.observed.get(key, {}) | made.manifest for key, made in outcome.resources.items()}
    return outcome


@EVERY_KIND
@pytest.mark.parametrize("approval", [REFUSED, EXPIRED], ids=["refused", "expired"])
def test_a_new_claim_gets_nothing_and_no_slot(name: str, approval: Approval) -> None:
    run = Run(example(name))
    outcome = step(run, approval)
    assert (outcome.ready, outcome.resources, "placement" in outcome.status) == (False, {}, False)
    assert [(c.type, c.status, c.reason) for c in outcome.conditions] == [
        ("Placed", False, "NotApproved"),
        ("WorkloadReady", False, "NotComposed"),
        ("Suspended", False, "NotSuspended"),
        ("Approved", False, approval.reason),
    ]
    assert condition(outcome, "Approved").message == approval.message
    assert outcome.ttl <= 10, "neither keys nor approvals are watched for"
    del run.claim["status"]["conditions"]
    assert errors(strict(schema(run.claim["kind"])), run.claim) == []


def test_a_reservation_is_given_up_when_the_approval_goes() -> None:
    run = Run(example(MODEL))
    assert step(run, Approval(True, "Approved")).status["placement"]["cluster"]
    assert "placement" not in step(run).status


def test_it_stands_in_nobodys_way() -> None:
    """Who waits for an approval must not hold back who has one and came later."""
    run = Run(example(MODEL))
    assert need_of(run.claim).units == 1, "nothing is known of it yet"
    step(run)
    assert fleet.read_claim(run.claim).need.units == 0
    assert step(run, Approval(True, "Approved")).status["placement"]["cluster"], "its own call counts in full"
    assert fleet.read_claim(run.claim).need.units == 1


@EVERY_KIND
def test_what_runs_stays_as_it_was_and_ready(name: str) -> None:
    run = running(name)
    before, status = run.step(), run.claim["status"]
    run.claim["spec"] |= {"regions": ["us-east"], "suspend": False} | ({"vectors": 9} if name != MODEL else {})
    outcome = step(run)
    assert {k: c.manifest for k, c in outcome.resources.items()} == {k: c.manifest for k, c in before.resources.items()}
    assert (outcome.ready, outcome.status) == (True, status), "the size too, which follows from the spec"
    assert all(composed.ready for composed in outcome.resources.values())
    assert [(c.type, c.status) for c in outcome.conditions] == [
        ("Placed", True),
        ("WorkloadReady", True),
        ("Suspended", False),
        ("Approved", False),
    ]


@EVERY_KIND
def test_what_is_not_ready_is_not_said_to_be(name: str) -> None:
    run = Run(example(name))
    run.until_composed()
    outcome = step(run)
    assert (outcome.ready, condition(outcome, "WorkloadReady").status) == (False, False)
    assert len(outcome.resources) > 0


def test_a_cluster_that_is_away_is_told() -> None:
    run = running(MODEL)
    run.observed["llminferenceservice"]["status"]["conditions"] = [
        {"type": "Synced", "status": "False", "message": "x"}
    ]
    assert "can't be brought up to date: x" in condition(step(run), "WorkloadReady").message


@EVERY_KIND
def test_anybody_may_stop_it_and_nobody_starts_it_again(name: str) -> None:
    run = running(name)
    run.claim["spec"]["suspend"] = True
    outcome = step(run)
    assert condition(outcome, "Suspended").reason == "Stopping"
    report(run, name, AT_ZERO[name])
    outcome = step(run)
    assert (outcome.ready, condition(outcome, "Suspended").status) == (True, True)
    run.claim["spec"]["suspend"] = False
    stays = step(run)
    assert {k: c.manifest for k, c in stays.resources.items()} == {k: c.manifest for k, c in outcome.resources.items()}
    assert condition(stays, "Suspended").status
    assert "endpoint" not in stays.status


@pytest.mark.parametrize(
    ("most", "grows", "reason"),
    [(1, False, "as it is"), (2, True, "an accelerator more")],
    ids=lambda value: str(value),
)
def test_an_expired_approval_lets_nothing_grow(most: int, grows: bool, reason: str) -> None:
    run = running(MODEL)
    run.claim["spec"] |= {"replicas": {"min": 1, "max": most}, "contextLength": 2048}
    outcome = step(run, EXPIRED)
    args = outcome.resources["llminferenceservice"].manifest["spec"]["forProvider"]["manifest"]["spec"]["template"]
    assert ("--max-model-len=2048" in args["containers"][0]["args"]) is not grows, reason
    assert not condition(outcome, "Approved").status


def test_an_expired_approval_starts_nothing_that_is_suspended() -> None:
    run = at_zero(MODEL)
    run.claim["spec"]["suspend"] = False
    assert condition(step(run, EXPIRED), "Suspended").status


def test_an_expired_approval_moves_nothing() -> None:
    """Moved, it would be a new one that has no approval."""
    run = running(MODEL)
    before = run.step()
    run.claim["spec"]["regions"] = ["us-east"]
    outcome = step(run, EXPIRED)
    assert {k: c.manifest for k, c in outcome.resources.items()} == {k: c.manifest for k, c in before.resources.items()}
    assert outcome.status["placement"]["cluster"] == before.status["placement"]["cluster"]


@EVERY_KIND
def test_where_approvals_are_only_warned_of_all_is_as_with_one(name: str) -> None:
    warned, granted = Run(example(name)), Run(example(name))
    for _ in range(2):
        outcome, other = step(warned, dataclasses.replace(REFUSED, enforced=False)), step(granted, Approval(True, "Ok"))
    assert outcome.resources.keys() == other.resources.keys() != set()
    assert outcome.conditions[:-1] == other.conditions[:-1]
    assert outcome.status == other.status
    (approved,) = outcome.conditions[-1:]
    assert (approved.status, approved.message) == (False, "would be refused: nobody approved it")


def test_a_claim_that_is_being_deleted_needs_no_approval() -> None:
    run = running(MODEL)
    before: dict[str, Any] = run.step().resources
    run.claim["metadata"]["deletionTimestamp"] = "2026-12-02T00:00:00Z"
    assert step(run).resources.keys() == before.keys()


def test_suspending_what_was_never_approved_composes_nothing() -> None:
    run = Run(example(MODEL))
    assert suspend(run).resources == {}
