"""From approved to a claim and back: when all is well, when something fails, and when the world has changed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections, transaction

from portal import tasks
from portal.models import AuditEvent, Budget, Instance, OutboxRow, Request, Reservation
from portal.ports import RetryableError, TerminalError
from portal.rendering.names import ANNOTATION_PREFIX
from portal.services import approving, delivering, observing, outbox
from tests.sample import actor, model_body
from tests.services.deliveries import (
    Plane,
    fresh,
    held,
    instance_of,
    load_bundle,
    load_prices,
    observed,
    submit,
    verbs,
    work,
)
from tests.services.planes import embedded_plane

pytestmark = pytest.mark.django_db

DOWN = RetryableError("control-plane-down", "nobody answers at 10.0.0.1")
INVALID = TerminalError("claim-invalid", "/spec/replicas/max: must be at least 1")
L4 = "gpu.l4,hour,0.80,"


@pytest.fixture
def plane(sample: None, monkeypatch: pytest.MonkeyPatch) -> Plane:
    made = Plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: made)
    return made


def in_prod(name: str = "chat") -> Request:
    """A request of ada's for production that both approvers said yes to."""
    request = submit("ada", model_body(name, environment="prod"))
    for username in ("frank", "heidi"):
        approving.vote(request.pk, "approve", acting=actor(username))
    return fresh(request)


def committed(team: str) -> str:
    return str(Budget.objects.get(team__slug=team).committed)


def sees(request: Request, plane: Plane, *, ready: bool = True) -> bool:
    """The mirror looks at the claim."""
    instance = instance_of(request)
    assert instance.claim is not None
    place = instance.claim["metadata"]["namespace"], instance.claim["metadata"]["name"]
    uid, claim = plane.claims[place]
    return observing.observe(observed(delivering.claim_ref(instance), uid, claim, ready=ready))


# --- all is well ------------------------------------------------------------------------------------------------------


def test_a_delivery_makes_one_claim_and_counts_it_as_used(plane: Plane) -> None:
    request = submit("ada", model_body())
    assert work() == ["done"]
    assert len(plane.applied) == 1
    assert fresh(request).state == "Delivering"
    assert (instance_of(request).phase, instance_of(request).claim_uid) == ("Provisioning", "uid-1")
    assert held("search") == (0, 1)
    assert verbs(request) == ["request.allow", "request.deliver", "claim.apply"]
    assert sees(request, plane)
    assert fresh(request).state == "Done"
    assert verbs(request)[3:] == ["request.finish"]
    assert [record.moment for record in request.decisions.all()] == ["submission", "delivery"]


def test_the_mirror_may_see_the_claim_before_it_is_committed(plane: Plane) -> None:
    """It says first that it was applied; the worker, a moment later, adds nothing."""
    request = submit("ada", model_body())
    plane.then = lambda: sees(request, plane) and None
    assert work() == ["done"]
    assert verbs(request) == ["request.allow", "request.deliver", "claim.apply", "request.finish"]
    assert held("search") == (0, 1)
    assert Reservation.objects.get(instance=request.instance_id).state == "used"


def test_deletion_ends_when_the_claim_is_gone(plane: Plane) -> None:
    request = submit("ada", model_body())
    work()
    sees(request, plane)
    deletion = submit("ada", {"kind": "Delete", "instance": str(request.instance_id)})
    assert work() == ["done"]
    assert plane.deleted == [("chat", "uid-1")]
    assert (fresh(deletion).state, instance_of(request).phase, held("search")) == ("Delivering", "Deleting", (0, 1))
    assert not observing.observe_gone(instance_of(request).pk, "uid-of-another")
    assert observing.observe_gone(instance_of(request).pk, "uid-1")
    assert not observing.observe_gone(instance_of(request).pk, "uid-1"), "once is enough"
    assert (fresh(deletion).state, instance_of(request).phase) == ("Done", "Gone")
    assert (held("search"), held("acme"), committed("search")) == ((0, 0), (0, 0), "0.00")
    assert verbs(deletion) == ["request.allow", "request.deliver", "claim.delete", "request.finish"]


# --- the control plane says no ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [INVALID, TerminalError("namespace-missing", "ask a platform admin for search-dev")])
def test_a_refusal_fails_the_request_readably_and_gives_everything_back(plane: Plane, error: TerminalError) -> None:
    plane.errors.append(error)
    request = submit("ada", model_body())
    assert work() == ["done"]
    request = fresh(request)
    assert (request.state, request.failure_code, request.failure_message) == ("Failed", error.code, error.message)
    assert (held("search"), held("acme"), committed("search")) == ((0, 0), (0, 0), "0.00")
    assert instance_of(request).phase == "Gone"
    assert OutboxRow.objects.get(topic="apply").outcome == "failed"
    assert verbs(request) == ["request.allow", "request.deliver", "request.fail"]
    assert submit("ada", model_body()).state == "Approved", "the name is free again"


def test_a_missing_composition_fails_it_before_anything_is_frozen(plane: Plane) -> None:
    plane.revision_errors.append(TerminalError("composition-missing", "no Composition; apply it"))
    request = submit("ada", model_body())
    work()
    assert (fresh(request).state, fresh(request).failure_code) == ("Failed", "composition-missing")
    assert (instance_of(request).claim, held("search")) == (None, (0, 0))


def test_a_strangers_object_of_that_name_is_left_alone(sample: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = embedded_plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: plane)
    mine = submit("ada", model_body())
    work()
    claim = dict(instance_of(mine).claim or {})
    metadata = {**claim["metadata"], "name": "taken", "labels": {f"{ANNOTATION_PREFIX}instance": "somebody"}}
    before = plane.apply({**claim, "metadata": metadata})
    request = submit("ada", model_body("taken"))
    work()
    assert (fresh(request).state, fresh(request).failure_code) == ("Failed", "claim-name-taken")
    assert "somebody" in fresh(request).failure_message
    assert held("search") == (0, 1), "only the first one's"
    ref = delivering.claim_ref(instance_of(request))
    there = plane.get(ref)
    assert there is not None
    assert (there.uid, there.resource_version) == (before.uid, before.resource_version)


# --- the control plane is away ----------------------------------------------------------------------------------------


def test_what_may_pass_is_tried_again_and_comes_through(plane: Plane) -> None:
    plane.errors += [DOWN, DOWN]
    request = submit("ada", model_body())
    assert [work(), work(), work()] == [["postponed"], ["postponed"], ["done"]]
    assert verbs(request) == ["request.allow", "request.deliver", "claim.apply"]
    assert held("search") == (0, 1)


def test_the_last_failure_ends_it_with_a_message_and_what_may_exist_stays_held(plane: Plane, settings: Any) -> None:
    settings.OUTBOX_MAX_ATTEMPTS = 3
    plane.errors += [DOWN] * 3
    request = submit("ada", model_body())
    assert [work(), work(), work(), work()] == [["postponed"], ["postponed"], ["given up"], []]
    request = fresh(request)
    assert (request.state, request.failure_code) == ("Failed", "control-plane-down")
    assert request.failure_message == "Given up after 3 attempts. Last: nobody answers at 10.0.0.1"
    assert instance_of(request).phase == "Stuck"
    assert held("search") == (1, 0), "its claim may exist: an attempt may have come through"
    assert verbs(request) == ["request.allow", "request.deliver", "request.fail"]


def test_the_last_failure_before_anything_was_sent_gives_everything_back(plane: Plane, settings: Any) -> None:
    settings.OUTBOX_MAX_ATTEMPTS = 2
    plane.revision_errors += [DOWN] * 2
    request = submit("ada", model_body())
    assert [work(), work()] == [["postponed"], ["given up"]]
    assert (fresh(request).state, instance_of(request).phase, held("search")) == ("Failed", "Gone", (0, 0))


def test_a_fault_of_our_own_is_tried_again_and_ends_too(plane: Plane, settings: Any) -> None:
    settings.OUTBOX_MAX_ATTEMPTS = 2

    def broken() -> None:
        raise ZeroDivisionError("division by zero")

    plane.then = broken
    request = submit("ada", model_body())
    assert [work(), work()] == [["postponed"], ["given up"]]
    assert (fresh(request).state, fresh(request).failure_code) == ("Failed", "internal-fault")
    assert "ZeroDivisionError" in fresh(request).failure_message


def test_a_claim_of_a_request_that_was_given_up_is_still_known(plane: Plane, settings: Any) -> None:
    """It was applied, and no attempt could say so. Its label says whose it is: it is counted, and can be deleted."""
    settings.OUTBOX_MAX_ATTEMPTS = 1

    def no_answer() -> None:
        raise RetryableError("timeout", "no answer in time")

    plane.then = no_answer
    request = submit("ada", model_body())
    assert work() == ["given up"]
    assert sees(request, plane)
    assert (instance_of(request).phase, instance_of(request).claim_uid) == ("Ready", "uid-1")
    assert held("search") == (0, 1)
    deletion = submit("ada", {"kind": "Delete", "instance": str(request.instance_id)})
    work()
    assert observing.observe_gone(instance_of(request).pk, "uid-1")
    assert (fresh(deletion).state, held("search")) == ("Done", (0, 0))


def test_a_refusal_after_an_attempt_that_came_through_gives_nothing_back(plane: Plane) -> None:
    """The first answer was lost, the second is no: the claim is there, and so is what it holds."""

    def no_answer() -> None:
        raise RetryableError("timeout", "no answer in time")

    plane.then = no_answer
    request = submit("ada", model_body())
    assert work() == ["postponed"]
    plane.errors.append(INVALID)
    assert work() == ["done"]
    assert (fresh(request).state, fresh(request).failure_code) == ("Failed", "claim-invalid")
    assert (instance_of(request).phase, held("search")) == ("Stuck", (1, 0))
    assert sees(request, plane)
    assert (instance_of(request).phase, held("search")) == ("Ready", (0, 1))


def test_a_refusal_after_attempts_that_did_not_gives_everything_back(plane: Plane) -> None:
    plane.errors += [DOWN, INVALID]
    request = submit("ada", model_body())
    assert [work(), work()] == [["postponed"], ["done"]]
    assert (fresh(request).state, instance_of(request).phase, held("search")) == ("Failed", "Gone", (0, 0))


# --- twice, late, or rolled back --------------------------------------------------------------------------------------


def test_a_lost_lease_commits_nothing(plane: Plane) -> None:
    """The worker was so slow that another has its row."""
    request = submit("ada", model_body())
    plane.then = lambda: OutboxRow.objects.filter(topic="apply").update(lease=None) and None
    assert work() == ["lease lost"]
    assert verbs(request) == ["request.allow", "request.deliver"]
    assert held("search") == (1, 0)
    plane.then = lambda: None
    OutboxRow.objects.filter(topic="apply").update(leased_until=None)
    assert work() == ["done"]
    assert [claim["metadata"]["name"] for claim in plane.applied] == ["chat", "chat"]
    assert len(plane.claims) == 1, "the same claim"
    assert verbs(request) == ["request.allow", "request.deliver", "claim.apply"]


@pytest.mark.django_db(transaction=True)
def test_delivered_twice_at_once_is_one_apply_and_one_event(world: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 14, with two real connections: the second message comes while the first is at work, and once more later."""
    plane = Plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: plane)
    inside, go_on = threading.Event(), threading.Event()

    def slowly() -> None:
        inside.set()
        go_on.wait(30)

    plane.then = slowly
    request = submit("ada", model_body())
    [(row, lease)] = outbox.lease_due()

    def message() -> str:
        try:
            return str(tasks.perform(row, str(lease)))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(message)
        assert inside.wait(30)
        second = pool.submit(message)
        assert second.result(30) == "not ours"
        go_on.set()
        assert first.result(30) == "done"
        assert pool.submit(message).result(30) == "not ours"
    assert len(plane.applied) == 1
    assert AuditEvent.objects.filter(request=request, verb="claim.apply").count() == 1


@pytest.mark.django_db(transaction=True)
def test_what_is_rolled_back_is_never_delivered(world: None) -> None:
    """Case 15: a sweep in the middle of the transaction, and one after it, find nothing."""

    class Cancelled(Exception):
        pass

    def sweep() -> list[Any]:
        try:
            return list(outbox.lease_due())
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(Cancelled), transaction.atomic():
            request = submit("ada", model_body())
            assert OutboxRow.objects.filter(payload__request=str(request.pk)).count() == 1
            assert pool.submit(sweep).result(30) == []
            raise Cancelled
        assert pool.submit(sweep).result(30) == []
    assert (Request.objects.count(), Instance.objects.count(), OutboxRow.objects.count()) == (0, 0, 0)
    assert held("search") == (0, 0)


# --- decided again at delivery ----------------------------------------------------------------------------------------

FROZEN = """  guardrails:
    - code: frozen
      appliesTo: {kinds: [Create]}
      when: request.team == "search"
      message: nothing new while we move
"""


def test_a_policy_that_denies_by_now_denies(plane: Plane) -> None:
    request = in_prod()
    load_bundle("  guardrails:\n", FROZEN)
    assert work() == ["done"]
    request = fresh(request)
    assert (request.state, plane.applied) == ("Denied", [])
    assert (held("search"), committed("search"), instance_of(request).phase) == ((0, 0), "0.00", "Gone")
    record = request.decisions.latest("id")
    assert (record.moment, record.outcome) == ("delivery", "Denied")
    assert "frozen" in {reason["code"] for reason in record.result["reasons"]}
    assert OutboxRow.objects.get(topic="apply").outcome == "cancelled"


def test_a_policy_that_asks_for_more_people_asks_again(plane: Plane) -> None:
    """Approved at once; by now even one GPU needs somebody's yes. Then it is delivered without asking a third time."""
    request = submit("ada", model_body())
    load_bundle("spec.replicas.max > 2", "spec.replicas.max > 0")
    assert work() == ["done"]
    assert (fresh(request).state, plane.applied, held("search")) == ("Waiting", [], (1, 0))
    assert [(stage.code, stage.round) for stage in request.stages.all()] == [("gpu-count", 1)]
    assert approving.vote(request.pk, "approve", acting=actor("frank")).state == "Approved"
    assert work() == ["done"]
    assert len(plane.applied) == 1
    assert verbs(request) == [
        "request.allow",
        "request.ask_again",
        "vote.cast",
        "request.approve",
        "request.deliver",
        "claim.apply",
    ]


def test_a_price_above_the_quote_asks_the_same_people_again(plane: Plane) -> None:
    request = in_prod()
    assert committed("search") == "584.00"
    load_prices(L4, "gpu.l4,hour,1.00,")
    assert work() == ["done"]
    request = fresh(request)
    assert (request.state, str(request.quote_monthly), committed("search")) == ("Waiting", "730.00", "730.00")
    event = AuditEvent.objects.get(request=request, verb="request.ask_again")
    assert "584" in str(event.data["changed"])
    assert "730" in str(event.data["changed"])
    assert sorted({stage.round for stage in request.stages.all()}) == [1, 2]
    for username in ("frank", "heidi"):
        approving.vote(request.pk, "approve", acting=actor(username))
    assert work() == ["done"]
    assert (len(plane.applied), fresh(request).state) == (1, "Delivering")


def test_a_price_below_the_quote_goes_on(plane: Plane) -> None:
    request = in_prod()
    load_prices(L4, "gpu.l4,hour,0.70,")
    work()
    assert (fresh(request).state, str(fresh(request).quote_monthly)) == ("Delivering", "584.00")


def test_a_price_over_the_budget_by_now_denies(plane: Plane) -> None:
    request = in_prod()
    load_prices(L4, "gpu.l4,hour,60.00,")
    work()
    request = fresh(request)
    assert request.state == "Denied"
    assert "budget-exceeded" in {r["code"] for r in request.decisions.latest("id").result["reasons"]}
    assert (held("search"), committed("search")) == ((0, 0), "0.00")


def test_a_price_that_nobody_knows_by_now_is_reviewed_and_never_free(plane: Plane) -> None:
    request = submit("ada", model_body())
    load_prices(L4, "gpu.l4,hour,,")
    work()
    assert (fresh(request).state, plane.applied) == ("Waiting", [])
    assert "price-unknown" in {reason["code"] for reason in request.decisions.latest("id").result["reasons"]}
    assert {stage.group for stage in request.stages.all()} == {"finance-approvers"}


def test_after_the_first_attempt_nothing_is_decided_again(plane: Plane) -> None:
    """The claim may exist: what is delivered is what was frozen."""
    plane.errors.append(DOWN)
    request = submit("ada", model_body())
    assert work() == ["postponed"]
    frozen = instance_of(request).claim
    load_bundle("  guardrails:\n", FROZEN)
    load_prices(L4, "gpu.l4,hour,60.00,")
    assert work() == ["done"]
    assert plane.applied == [frozen]
    assert [record.moment for record in request.decisions.all()] == ["submission", "delivery"]


# --- deletion against everything --------------------------------------------------------------------------------------


def test_a_deletion_overtakes_a_failing_apply_and_ends_both(plane: Plane) -> None:
    """Nothing was made, so nothing has to be waited for."""
    plane.errors.append(DOWN)
    request = submit("ada", model_body())
    assert work() == ["postponed"]
    deletion = submit("ada", {"kind": "Delete", "instance": str(request.instance_id)})
    assert work() == ["done"]
    assert (plane.applied, plane.deleted) == ([], []), "there was nothing to delete, and nobody else's was touched"
    assert OutboxRow.objects.get(topic="apply").outcome == "cancelled"
    assert (fresh(deletion).state, instance_of(request).phase) == ("Done", "Gone")
    assert (fresh(request).state, fresh(request).failure_code) == ("Failed", "deleted-before-ready")
    assert (held("search"), committed("search")) == ((0, 0), "0.00")
    assert work() == []


def test_a_deletion_finds_a_claim_that_no_attempt_has_noted(plane: Plane) -> None:
    """The apply came through, its answer did not."""

    def no_answer() -> None:
        raise RetryableError("timeout", "no answer in time")

    plane.then = no_answer
    request = submit("ada", model_body())
    assert work() == ["postponed"]
    deletion = submit("ada", {"kind": "Delete", "instance": str(request.instance_id)})
    assert work() == ["done"]
    assert plane.deleted == [("chat", "uid-1")]
    assert (fresh(deletion).state, held("search")) == ("Delivering", (1, 0)), "held until it is seen to be gone"
    assert observing.observe_gone(instance_of(request).pk, "uid-1")
    assert (fresh(deletion).state, held("search")) == ("Done", (0, 0))


def test_a_deletion_leaves_a_strangers_object_of_that_name_alone(plane: Plane) -> None:
    plane.errors.append(DOWN)
    request = submit("ada", model_body())
    work()
    stranger = {"metadata": {"labels": {f"{ANNOTATION_PREFIX}instance": "somebody"}}}
    plane.claims["search-dev", "chat"] = "uid-of-another", stranger
    deletion = submit("ada", {"kind": "Delete", "instance": str(request.instance_id)})
    work()
    assert plane.deleted == []
    assert plane.claims["search-dev", "chat"] == ("uid-of-another", stranger)
    assert (fresh(deletion).state, held("search")) == ("Done", (0, 0))


def test_a_claim_that_somebody_else_deleted_gives_everything_back(plane: Plane) -> None:
    waiting, ready = submit("ada", model_body("waiting")), submit("ada", model_body("ready"))
    work()
    sees(ready, plane)
    for request in (waiting, ready):
        assert observing.observe_gone(instance_of(request).pk, instance_of(request).claim_uid)
    assert held("search") == (0, 0)
    assert (fresh(ready).state, fresh(waiting).state) == ("Done", "Failed")
    assert fresh(waiting).failure_code == "deleted-before-ready"
    assert "somebody other than the portal" in instance_of(ready).message


def test_a_deletion_of_what_is_gone_meanwhile_is_done(plane: Plane) -> None:
    """And another may live under its name by now."""
    request = submit("ada", model_body())
    work()
    sees(request, plane)
    deletion = submit("ada", {"kind": "Delete", "instance": str(request.instance_id)})
    observing.observe_gone(instance_of(request).pk, "uid-1")
    successor = submit("ada", model_body())
    work("delete")
    assert (fresh(deletion).state, instance_of(request).phase) == ("Done", "Gone")
    assert plane.deleted == []
    assert (fresh(successor).state, held("search")) == ("Approved", (1, 0))


def test_a_deletion_that_is_refused_keeps_what_exists(plane: Plane) -> None:
    request = submit("ada", model_body())
    work()
    sees(request, plane)
    deletion = submit("ada", {"kind": "Delete", "instance": str(request.instance_id)})
    plane.errors.append(TerminalError("forbidden", "the portal's account may not delete in search-dev"))
    work()
    assert (fresh(deletion).state, fresh(deletion).failure_code) == ("Failed", "forbidden")
    assert held("search") == (0, 1)
    assert sees(request, plane), "it is still looked at"
    assert instance_of(request).phase == "Ready"
    assert submit("ada", {"kind": "Delete", "instance": str(request.instance_id)}).state == "Approved"
