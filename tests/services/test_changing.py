"""Changes of a living instance, from the draft to what is held in the end: when all is well, and in every other way."""

from __future__ import annotations

import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import IntegrityError, connections, transaction

from portal import tasks
from portal.models import AuditEvent, Budget, CompositionRevision, Instance, Membership, OutboxRow, Request, Reservation
from portal.ports import RetryableError, TerminalError
from portal.services import (
    approving,
    changing,
    deciding,
    delivering,
    explaining,
    loading,
    observing,
    submitting,
    withdrawing,
)
from portal.services.errors import Conflict, InvalidInput, ServiceError
from tests.sample import MODEL_SPEC, actor, draft, model_body
from tests.services.deliveries import Plane, fresh, held, instance_of, load_prices, observed, submit, verbs, work

pytestmark = pytest.mark.django_db

DOWN = RetryableError("control-plane-down", "nobody answers at 10.0.0.1")
INVALID = TerminalError("claim-invalid", "/spec/replicas/max: must be at least 1")
DATABASE: dict[str, Any] = {"engine": "qdrant", "vectors": 5_000_000, "dimensions": 1536, "highAvailability": False}


@pytest.fixture
def plane(sample: None, monkeypatch: pytest.MonkeyPatch) -> Plane:
    made = Plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: made)
    return made


def spec(gpus: int = 1, **more: Any) -> dict[str, Any]:
    return {**MODEL_SPEC, "replicas": {"min": 1, "max": gpus}, **more}


def running(plane: Plane, gpus: int = 1, name: str = "chat", **changes: Any) -> Instance:
    """A model of ada's that is Ready."""
    request = submit("ada", model_body(name, gpus=gpus, **changes))
    if request.state == "Waiting":
        for who in ("frank", "heidi"):
            if fresh(request).state == "Waiting":
                approving.vote(request.pk, "approve", acting=actor(who))
    work()
    assert sees(request, plane)
    assert fresh(request).state == "Done"
    return instance_of(request)


def change(instance: Instance, gpus: int = 1, who: str = "ada", **more: Any) -> Request:
    return submit(who, {"kind": "Change", "instance": str(instance.pk), "spec": spec(gpus, **more)})


def ask(instance: Instance, kind: str, who: str = "ada") -> Request:
    return submit(who, {"kind": kind, "instance": str(instance.pk)})


def live(plane: Plane, instance: Instance) -> dict[str, Any]:
    ref = delivering.claim_ref(instance)
    return plane.claims[ref.namespace, ref.name][1]


def sees(request: Request, plane: Plane, *, ready: bool = True, claim: dict[str, Any] | None = None) -> bool:
    """The mirror looks at the claim."""
    instance = instance_of(request)
    ref = delivering.claim_ref(instance)
    uid, there = plane.claims[ref.namespace, ref.name]
    return observing.observe(observed(ref, uid, claim or there, ready=ready))


def committed(team: str = "search") -> str:
    return str(Budget.objects.get(team__slug=team).committed)


def anew(instance: Instance) -> Instance:
    return Instance.objects.get(pk=instance.pk)


# --- all is well ------------------------------------------------------------------------------------------------------


def test_more_is_held_from_the_submission_on(plane: Plane) -> None:
    instance = running(plane)
    request = change(instance, 3 - 1)
    assert (request.state, held("search"), held("acme"), committed()) == ("Approved", (1, 1), (1, 1), "1168.00")
    assert anew(instance).spec["replicas"]["max"] == 1, "what was last approved, until it is delivered"
    assert work() == ["done"]
    assert (held("search"), fresh(request).state) == ((0, 2), "Delivering")
    assert anew(instance).spec["replicas"]["max"] == 2
    claim = live(plane, instance)
    assert (len(plane.claims), claim["spec"]["replicas"]["max"]) == (1, 2), "the same claim"
    assert claim["metadata"]["annotations"][changing.REQUEST] == str(request.pk)
    sees(request, plane)
    assert (fresh(request).state, held("search"), committed()) == ("Done", (0, 2), "1168.00")
    assert verbs(request) == ["request.allow", "request.deliver", "claim.apply", "request.finish"]
    assert Reservation.objects.exclude(state="released").get().request == request, "the earlier rows are given back"


def test_less_is_held_only_once_it_is_observed(plane: Plane) -> None:
    instance = running(plane, 2)
    request = change(instance, 1)
    assert (request.state, held("search"), committed()) == ("Approved", (0, 2), "1168.00")
    work()
    assert (held("search"), committed()) == ((0, 2), "1168.00"), "the second replica may still run"
    sees(request, plane, ready=False)
    assert held("search") == (0, 2), "it is not ready as asked"
    sees(request, plane)
    assert (held("search"), held("acme"), committed()) == ((0, 1), (0, 1), "584.00")


def test_another_class_holds_both_until_it_is_observed(plane: Plane) -> None:
    instance = running(plane, 2)
    h100 = {"accelerator": {"class": "h100-80gb", "count": 1}, "regions": ["eu-central"]}
    request = change(instance, 1, **h100)
    work()
    assert (held("search"), held("search", "gpu.h100-80gb")) == ((0, 2), (0, 1))
    sees(request, plane)
    assert (held("search"), held("search", "gpu.h100-80gb")) == ((0, 0), (0, 1))


def test_the_decision_tells_the_difference(plane: Plane) -> None:
    instance = running(plane)
    request = change(instance, 2, contextLength=8192)
    decision = deciding.decision_of(request)
    lines = {(line.team, line.before, line.after) for line in decision.usage}
    assert lines == {("acme", 1, 2), ("search", 1, 2)}
    assert [(str(line.before), str(line.after)) for line in decision.budgets] == [("584.00", "1168.00")] * 2
    assert request.old == instance.spec
    assert request.difference == [
        {"pointer": "/spec/contextLength", "old": 4096, "new": 8192},
        {"pointer": "/spec/replicas/max", "old": 1, "new": 2},
    ]


def test_a_change_pins_the_newest_composition_revision(plane: Plane) -> None:
    instance = running(plane)
    CompositionRevision.objects.update_or_create(
        control_plane="embedded",
        composition="modeldeployments-kserve",
        defaults={"revision": "modeldeployments-kserve-2", "seen_at": instance.created_at},
    )
    request = change(instance)
    moved = {"pointer": "/compositionRevision", "old": "modeldeployments-kserve-1", "new": "modeldeployments-kserve-2"}
    assert request.difference == [moved], "the same spec, and still a change"
    work()
    pinned = live(plane, instance)["spec"]["crossplane"]["compositionRevisionRef"]
    assert pinned == {"name": "modeldeployments-kserve-2"}
    assert sees(request, plane)
    assert fresh(request).state == "Done"


def test_the_owner_stays_who_it_was(plane: Plane) -> None:
    instance = running(plane)
    request = change(instance, 2, who="ben")
    work()
    annotations = live(plane, instance)["metadata"]["annotations"]
    prefix = changing.REQUEST.removesuffix("request")
    assert (annotations[f"{prefix}requester"], annotations[f"{prefix}owner"]) == ("ben", "ada")
    assert fresh(request).requester.username == "ben"


def test_nobody_votes_on_a_change_of_their_own(plane: Plane) -> None:
    instance = running(plane, 2)
    request = change(instance, 3, who="erin")
    assert request.state == "Waiting"
    with pytest.raises(ServiceError) as refusal:
        approving.vote(request.pk, "approve", acting=actor("erin"))
    assert refusal.value.code == "own-request"
    assert approving.vote(request.pk, "approve", acting=actor("frank")).state == "Approved"


# --- what may be asked ------------------------------------------------------------------------------------------------


def test_a_change_that_changes_nothing_is_refused(plane: Plane) -> None:
    instance = running(plane)
    with pytest.raises(InvalidInput) as refusal:
        change(instance, 1)
    assert [(each.pointer, each.code) for each in refusal.value.problems] == [("/spec", "unchanged")]
    assert Request.objects.count() == 1


def database(plane: Plane, **more: Any) -> Instance:
    body = model_body("vectors", offering="vectordatabases")
    request = submit("ada", {**body, "spec": {**DATABASE, "dataClassification": "internal", **more}})
    work()
    sees(request, plane)
    return instance_of(request)


@pytest.mark.parametrize(
    ("changes", "pointer", "message", "reason"),
    [
        ({"engine": "pgvector"}, "/spec/engine", "the engine can't be changed", "at the field itself"),
        ({"highAvailability": True}, "/spec/highAvailability", "can't be changed, its data", "by a rule of the whole"),
        ({"vectors": 0}, "/spec/vectors", "out of range", "the schema still counts"),
        ({"vector": 1}, "/spec/vector", "unknown field", "nothing is dropped silently"),
        ({"suspend": True}, "/spec/suspend", "kind Suspend alone", "that has a request of its own"),
    ],
)
def test_what_may_not_become_so_is_refused_by_its_field(
    plane: Plane, changes: dict[str, Any], pointer: str, message: str, reason: str
) -> None:
    instance = database(plane)
    new = {**DATABASE, "dataClassification": "internal", **changes}
    with pytest.raises(InvalidInput) as refusal:
        submit("ada", {"kind": "Change", "instance": str(instance.pk), "spec": new})
    (problem,) = refusal.value.problems
    assert (problem.pointer, message in problem.message) == (pointer, True), (reason, problem)


def test_a_creation_is_never_suspended(plane: Plane) -> None:
    body = model_body()
    with pytest.raises(InvalidInput) as refusal:
        submit("ada", {**body, "spec": {**body["spec"], "suspend": True}})
    assert [each.pointer for each in refusal.value.problems] == ["/spec/suspend"]


def test_one_change_waits_at_a_time(plane: Plane) -> None:
    instance = running(plane)
    first = change(instance, 2)
    for step in (lambda: change(instance, 3), lambda: ask(instance, "Suspend")):
        with pytest.raises(Conflict) as refusal:
            step()
        assert refusal.value.code == "already-asked"
        assert str(first.pk) in refusal.value.message
    with pytest.raises(IntegrityError, match="one_open_change_per_instance"), transaction.atomic():
        Request.objects.filter(kind="Create").update(kind="Resume", state="Waiting")


def test_what_is_not_there_yet_or_not_any_more_is_not_changed(plane: Plane) -> None:
    request = submit("ada", model_body())
    with pytest.raises(Conflict) as refusal:
        change(instance_of(request), 2)
    assert refusal.value.code == "not-delivered"
    work()
    sees(request, plane)
    ask(instance_of(request), "Delete")
    with pytest.raises(Conflict) as refusal:
        change(instance_of(request), 2)
    assert refusal.value.code == "being-deleted"
    work()
    observing.observe_gone(instance_of(request).pk)
    with pytest.raises(Conflict) as refusal:
        change(instance_of(request), 2)
    assert refusal.value.code == "already-gone"


def test_the_same_key_answers_the_same_request(plane: Plane) -> None:
    instance = running(plane)
    body = {"kind": "Change", "instance": str(instance.pk), "spec": spec(2), "idempotencyKey": "once"}
    first = submitting.submit(draft(body), acting=actor("ada"))
    again = submitting.submit(draft(body), acting=actor("ada"))
    assert (first.created, again.created, again.request.pk) == (True, False, first.request.pk)
    assert held("search") == (1, 1)


# --- it ends otherwise ------------------------------------------------------------------------------------------------


def test_a_denial_takes_nothing_from_what_runs(plane: Plane) -> None:
    instance = running(plane)
    request = change(instance, 5)
    assert (request.state, held("search"), committed()) == ("Denied", (0, 1), "584.00")
    assert anew(instance).phase == "Ready"
    reasons = [reason.code for reason in deciding.decision_of(request).reasons if reason.effect == "deny"]
    assert reasons == ["quota-exceeded"]


@pytest.mark.parametrize("how", ["withdrawn", "rejected"])
def test_a_change_that_is_not_delivered_gives_back_its_surplus_alone(plane: Plane, how: str) -> None:
    instance = running(plane)
    request = change(instance, 3)
    assert (request.state, held("search")) == ("Waiting", (2, 1))
    if how == "withdrawn":
        withdrawing.withdraw(request.pk, acting=actor("ada"))
    else:
        approving.vote(request.pk, "reject", "too many", acting=actor("frank"))
    assert (held("search"), held("acme"), committed()) == ((0, 1), (0, 1), "584.00")
    assert (anew(instance).phase, anew(instance).spec["replicas"]["max"]) == ("Ready", 1)


def test_a_refused_change_leaves_everything_as_it_was(plane: Plane) -> None:
    instance = running(plane)
    before = anew(instance)
    plane.errors.append(INVALID)
    request = change(instance, 2)
    work()
    now = anew(instance)
    assert (fresh(request).state, fresh(request).failure_code) == ("Failed", "claim-invalid")
    assert (now.spec, now.claim, now.document_id) == (before.spec, before.claim, before.document_id)
    assert (now.phase, held("search"), committed()) == ("Ready", (0, 1), "584.00")
    assert change(instance, 2).state == "Approved", "it may be asked for again"


def test_a_change_that_was_given_up_may_have_come_through(plane: Plane, settings: Any) -> None:
    settings.OUTBOX_MAX_ATTEMPTS = 1

    def no_answer() -> None:
        raise DOWN

    instance = running(plane)
    plane.then = no_answer
    request = change(instance, 2)
    assert work() == ["given up"]
    assert (fresh(request).state, held("search"), anew(instance).phase) == ("Failed", (1, 1), "Ready")
    sees(request, plane)
    assert held("search") == (0, 2), "it had, and is what runs now"
    assert Reservation.objects.exclude(state="released").get().request == request


def test_a_refusal_after_an_attempt_that_came_through_is_no_way_back(plane: Plane) -> None:
    def no_answer() -> None:
        plane.then = lambda: None
        raise DOWN

    instance = running(plane)
    plane.then = no_answer
    request = change(instance, 2)
    assert work() == ["postponed"]
    plane.errors.append(INVALID)
    work()
    assert (fresh(request).state, anew(instance).spec["replicas"]["max"], held("search")) == ("Failed", 2, (1, 1))


@pytest.mark.parametrize(
    ("altered", "reason"),
    [
        (lambda claim, before: before, "an older state that comes late"),
        (lambda claim, before: {**claim, "metadata": before["metadata"]}, "not this request's doing"),
        (
            lambda claim, before: {**claim, "spec": {**claim["spec"], "replicas": {"min": 1, "max": 1}}},
            "somebody has changed it since",
        ),
    ],
)
def test_what_is_not_as_asked_finishes_nothing(plane: Plane, altered: Any, reason: str) -> None:
    instance = running(plane)
    before = live(plane, instance)
    request = change(instance, 2)
    work()
    sees(request, plane, claim=altered(live(plane, instance), before))
    assert (fresh(request).state, held("search")) == ("Delivering", (0, 2)), reason


def test_the_mirror_may_see_a_change_before_it_is_committed(plane: Plane) -> None:
    instance = running(plane)
    request = change(instance, 2)
    plane.then = lambda: sees(request, plane) and None
    assert work() == ["done"]
    assert verbs(request) == ["request.allow", "request.deliver", "claim.apply", "request.finish"]
    assert held("search") == (0, 2)


def test_a_price_that_rose_asks_again_only_where_somebody_was_asked(plane: Plane) -> None:
    instance = running(plane, 2)
    request = change(instance, 3)
    approving.vote(request.pk, "approve", acting=actor("frank"))
    load_prices("gpu.l4,hour,0.80,", "gpu.l4,hour,0.90,")
    assert work() == ["done"]
    assert (fresh(request).state, str(fresh(request).quote_monthly)) == ("Waiting", "1971.00")
    assert (committed(), anew(instance).spec["replicas"]["max"]) == ("1971.00", 2)
    withdrawing.withdraw(request.pk, acting=actor("ada"))
    assert (committed(), held("search")) == ("1168.00", (0, 2))


# --- one after the other ----------------------------------------------------------------------------------------------


def test_a_revert_is_possible_while_a_change_fails(plane: Plane) -> None:
    """N serves, N+1 never becomes ready. What is held is the largest of all that may run, to the end."""
    instance = running(plane, 2)
    failing = change(instance, 4 - 2, contextLength=8192, concurrency=16)
    assert failing.state == "Approved"
    work()
    sees(failing, plane, ready=False)
    assert fresh(failing).state == "Delivering"
    revert = change(instance, 1)
    assert (revert.state, held("search")) == ("Approved", (0, 2))
    assert revert.old == fresh(failing).spec
    work()
    assert (fresh(failing).state, fresh(revert).state, held("search")) == ("Superseded", "Delivering", (0, 2))
    assert verbs(failing)[-1] == "request.supersede"
    sees(revert, plane)
    assert (fresh(revert).state, held("search"), committed()) == ("Done", (0, 1), "584.00")


def test_a_change_overtakes_one_that_can_not_be_delivered(plane: Plane) -> None:
    instance = running(plane)
    plane.errors.append(DOWN)
    first = change(instance, 2)
    assert work() == ["postponed"]
    second = change(instance, 1, contextLength=8192)
    assert OutboxRow.objects.get(payload__request=str(second.pk)).urgent
    assert work() == ["done"]
    assert (fresh(first).state, fresh(second).state) == ("Superseded", "Delivering")
    assert work() == ["done"], "the first one's row finds nothing to do"
    assert live(plane, instance)["spec"]["contextLength"] == 8192
    sees(second, plane)
    assert held("search") == (0, 1)


def test_what_was_overtaken_goes_on_when_the_other_is_withdrawn(plane: Plane) -> None:
    instance = running(plane)
    plane.errors.append(DOWN)
    first = change(instance, 2)
    assert work() == ["postponed"]
    second = change(instance, 3)
    withdrawing.withdraw(second.pk, acting=actor("ada"))
    assert held("search") == (1, 1)
    assert work() == ["done"]
    assert (fresh(first).state, held("search")) == ("Delivering", (0, 2))


def test_a_refused_revert_goes_back_to_what_it_would_have_replaced(plane: Plane) -> None:
    instance = running(plane)
    first = change(instance, 2)
    work()
    plane.errors.append(INVALID)
    second = change(instance, 1)
    work()
    assert (fresh(first).state, fresh(second).state) == ("Superseded", "Failed")
    assert (anew(instance).spec["replicas"]["max"], held("search")) == (2, (0, 2))
    sees(first, plane)
    assert (held("search"), Reservation.objects.exclude(state="released").get().request) == ((0, 2), first)


def test_a_creation_that_fails_can_be_mended(plane: Plane) -> None:
    creation = submit("ada", model_body(gpus=2))
    work()
    sees(creation, plane, ready=False)
    request = change(instance_of(creation), 1, contextLength=8192)
    work()
    assert (fresh(creation).state, held("search")) == ("Superseded", (0, 2))
    sees(request, plane, ready=False)
    assert instance_of(creation).phase == "Provisioning", "it never was ready"
    sees(request, plane)
    assert (fresh(request).state, held("search")) == ("Done", (0, 1))


def test_a_deletion_overtakes_changes_and_holds_all_until_it_is_gone(plane: Plane) -> None:
    instance = running(plane)
    delivering_one = change(instance, 2)
    work()
    waiting = change(instance, 3)
    assert (waiting.state, held("search")) == ("Waiting", (1, 2))
    deletion = ask(instance, "Delete")
    work()
    assert (fresh(delivering_one).state, fresh(waiting).state) == ("Superseded", "Superseded")
    assert (fresh(deletion).state, held("search")) == ("Delivering", (0, 2)), "what was never sent is given back"
    observing.observe_gone(instance.pk)
    assert (fresh(deletion).state, held("search"), held("acme"), committed()) == ("Done", (0, 0), (0, 0), "0.00")


def test_a_deletion_is_urgent_even_beside_an_urgent_change(plane: Plane) -> None:
    instance = running(plane)
    plane.errors += [DOWN, DOWN]
    change(instance, 2)
    work()
    change(instance, 1, contextLength=8192)
    assert work() == ["postponed"]
    deletion = ask(instance, "Delete")
    assert work() == ["done"]
    assert fresh(deletion).state == "Delivering"


def test_a_claim_that_others_delete_ends_its_changes(plane: Plane) -> None:
    instance = running(plane)
    request = change(instance, 3)
    observing.observe_gone(instance.pk)
    assert (fresh(request).state, fresh(request).failure_code) == ("Expired", "instance-gone")
    assert (held("search"), committed()) == ((0, 0), "0.00")
    assert not OutboxRow.objects.filter(topic="apply", done_at=None).exists()


# --- suspend and resume -----------------------------------------------------------------------------------------------


def test_suspending_gives_back_and_resuming_asks_again(plane: Plane) -> None:
    instance = running(plane, 3)
    suspension = ask(instance, "Suspend")
    assert (suspension.state, str(suspension.quote_monthly)) == ("Approved", "0.00")
    assert suspension.difference == [{"pointer": "/spec/suspend", "old": False, "new": True}]
    work()
    assert (held("search"), committed()) == ((0, 3), "1752.00")
    sees(suspension, plane)
    assert (fresh(suspension).state, anew(instance).phase) == ("Done", "Suspended")
    assert (held("search"), committed()) == ((0, 0), "0.00")
    with pytest.raises(Conflict, match="suspended already"):
        ask(instance, "Suspend")
    resumption = ask(instance, "Resume")
    assert (resumption.state, held("search"), committed()) == ("Approved", (3, 0), "1752.00")
    work()
    sees(resumption, plane)
    assert (fresh(resumption).state, anew(instance).phase, held("search")) == ("Done", "Ready", (0, 3))
    with pytest.raises(Conflict, match="not suspended"):
        ask(instance, "Resume")


def test_resuming_needs_room(plane: Plane) -> None:
    instance = running(plane, 3)
    work_through(plane, ask(instance, "Suspend"))
    running(plane, 2, "other")
    request = ask(instance, "Resume")
    assert request.state == "Denied"
    assert [r.code for r in deciding.decision_of(request).reasons if r.effect == "deny"] == ["quota-exceeded"]
    assert anew(instance).phase == "Suspended"


def work_through(plane: Plane, request: Request) -> None:
    work()
    sees(request, plane)
    assert fresh(request).state == "Done"


def test_a_change_of_what_is_suspended_keeps_it_so(plane: Plane) -> None:
    instance = running(plane, 1)
    work_through(plane, ask(instance, "Suspend"))
    request = change(instance, 2)
    assert request.difference == [{"pointer": "/spec/replicas/max", "old": 1, "new": 2}]
    assert (request.spec["suspend"], held("search")) == (True, (0, 0))
    work_through(plane, request)
    assert (anew(instance).phase, anew(instance).spec["suspend"]) == ("Suspended", True)
    with pytest.raises(InvalidInput, match="kind Resume alone"):
        change(instance, 3, suspend=False)


def test_a_suspended_database_holds_what_it_did(plane: Plane) -> None:
    instance = database(plane)
    before = held("search", "vectordb.memory_gib")
    work_through(plane, ask(instance, "Suspend"))
    assert held("search", "vectordb.memory_gib") == before == (0, 43)


# --- by the portal itself ---------------------------------------------------------------------------------------------


def test_what_others_made_of_it_is_asked_for_in_its_owners_name(plane: Plane) -> None:
    instance = running(plane, 2)
    request = changing.propose_for_drift(instance, spec(3), "kubectl set replicas.max to 3")
    assert (request.state, request.requester.username, request.reason[:7]) == ("Waiting", "ada", "kubectl")
    event = AuditEvent.objects.get(request=request, verb="request.ask")
    assert (event.actor, event.system) == (None, "drift")
    with pytest.raises(ServiceError) as refusal:
        approving.vote(request.pk, "approve", acting=actor("ada"))
    assert refusal.value.code == "own-request"


def test_who_has_left_is_asked_for_by_an_owner_of_the_team(plane: Plane) -> None:
    instance = running(plane)
    Membership.objects.filter(user__username="ada").delete()
    with pytest.raises(Conflict) as refusal:
        changing.propose_for_drift(instance, spec(2), "grown")
    assert refusal.value.code == "nobody-to-ask-for"
    Membership.objects.filter(user__username="erin").update(role="owner")
    assert changing.propose_for_drift(instance, spec(2), "grown").requester.username == "erin"


# --- the offering has moved on ----------------------------------------------------------------------------------------


def edited(tmp_path: Path, *edits: tuple[str, str, str]) -> None:
    """Activate the shipped offerings with texts in a file of the model deployments replaced."""
    apis = tmp_path / "apis"
    shutil.copytree(settings.OFFERINGS_PATH[0], apis)
    for name, before, after in edits:
        file = apis / "modeldeployments" / name
        assert before in file.read_text()
        file.write_text(file.read_text().replace(before, after))
    loading.load_all([apis], None, None, system="test")


def test_a_change_follows_the_offering_as_it_is_now_and_says_so(plane: Plane, tmp_path: Path) -> None:
    instance = running(plane)
    edited(tmp_path, ("offering.yaml", "maxLength: 40", "maxLength: 39"))
    request = change(instance, 2)
    now = loading.active_offering("modeldeployments")[1]
    assert (request.document, now.digest != instance.document_id) == (now, True)
    notes = [reason.code for reason in deciding.decision_of(request).reasons if reason.effect == "note"]
    assert "offering-moved" in notes
    assert request.difference[-1] == {
        "pointer": "/offering",
        "old": instance.document_id[:12],
        "new": now.digest[:12],
    }
    assert anew(instance).document_id == instance.document_id, "until it is delivered"
    work_through(plane, request)
    assert anew(instance).document_id == now.digest


def test_suspending_moves_nothing_else(plane: Plane, tmp_path: Path) -> None:
    instance = running(plane)
    edited(tmp_path, ("offering.yaml", "maxLength: 40", "maxLength: 39"))
    request = ask(instance, "Suspend")
    assert (request.document_id, [each["pointer"] for each in request.difference]) == (
        instance.document_id,
        ["/spec/suspend"],
    )


def test_a_spec_that_fits_the_old_offering_alone_stays_with_it(plane: Plane, tmp_path: Path) -> None:
    instance = running(plane)
    edited(tmp_path, ("definition.yaml", "maximum: 1048576", "maximum: 8192"))
    request = change(instance, 1, contextLength=8193)
    assert (request.state, request.document_id) == ("Approved", instance.document_id)
    moved = withdrawing.withdraw(request.pk, acting=actor("ada"))
    assert moved.state == "Withdrawn"
    assert change(instance, 1, contextLength=4999).document_id != instance.document_id


def test_decisions_of_changes_can_be_made_again(plane: Plane) -> None:
    instance = running(plane)
    request = change(instance, 2)
    work()
    found = explaining.explain(request.pk)
    assert [(each.record.moment, each.differences) for each in found] == [("submission", []), ("delivery", [])]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_of_many_changes_at_once_one_is_asked(world: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plane = Plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: plane)
    instance = running(plane)
    together = threading.Barrier(8)

    def submit_one(number: int) -> str:
        try:
            together.wait(timeout=30)
            return change(instance, 2, contextLength=4097 + number).state
        except Conflict as refusal:
            return refusal.code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = Counter(pool.map(submit_one, range(8)))
    assert answers == {"Approved": 1, "already-asked": 7}
    assert held("search") == (1, 1)
