"""Drift governed: shown, asked for, taken back; each once, and nothing of it silently."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from portal import tasks
from portal.adapters.embedded.deliver import apply_object
from portal.models import AuditEvent, Instance, OutboxRow, Request
from portal.ports import FieldManager, ObservedClaim, TerminalError
from portal.rendering.claim import without_machinery
from portal.services import approving, drifting, observing, withdrawing
from portal.services.errors import Conflict, Forbidden, NotFound
from tests.sample import actor, model_body
from tests.services.deliveries import Plane, fresh, instance_of, observed, submit, work
from tests.services.planes import embedded_plane

pytestmark = pytest.mark.django_db

AT = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
MAX, CONTEXT = "/spec/replicas/max", "/spec/contextLength"


@pytest.fixture
def plane(sample: None, monkeypatch: pytest.MonkeyPatch) -> Plane:
    made = Plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: made)
    return made


@pytest.fixture
def living(plane: Plane) -> Instance:
    """chat of team search in dev on one L4, Ready."""
    request = submit("ada", model_body())
    work()
    instance = instance_of(request)
    assert look(instance, plane)
    return fresh_instance(instance)


@pytest.fixture
def in_prod(plane: Plane) -> Instance:
    """The same in production, where people approve."""
    request = submit("ada", model_body(environment="prod"))
    for username in ("frank", "heidi"):
        approving.vote(request.pk, "approve", acting=actor(username))
    work()
    instance = instance_of(request)
    assert look(instance, plane)
    return fresh_instance(instance)


def fresh_instance(instance: Instance) -> Instance:
    return Instance.objects.select_related("document", "environment", "team").get(pk=instance.pk)


def claim_of(
    instance: Instance, plane: Plane, manager: str = "kubectl-edit", /, **changed: Any
) -> tuple[ObservedClaim, tuple[str, ...]]:
    """The claim with these fields set by somebody: `replicas_max` and `contextLength`."""
    uid, claim = plane.claims[instance.namespace, instance.claim["metadata"]["name"]]  # type: ignore[index]
    spec = {**claim["spec"]}
    fields = []
    if "replicas_max" in changed:
        spec["replicas"] = {**spec["replicas"], "max": changed.pop("replicas_max")}
        fields.append(MAX)
    for name, value in changed.items():
        spec[name] = value
        fields.append(f"/spec/{name}")
    managers = (
        FieldManager("portal", "Apply", "", AT, ("/spec",)),
        FieldManager(manager, "Update", "", AT, tuple(fields)),
    )
    seen = observed(observing.delivering.claim_ref(instance), uid, claim)
    return dataclasses.replace(seen, spec=spec, managers=managers if fields else managers[:1]), tuple(fields)


def look(instance: Instance, plane: Plane, /, **changed: Any) -> bool:
    return observing.observe(claim_of(instance, plane, **changed)[0])


def verbs(instance: Instance) -> list[str]:
    found = AuditEvent.objects.filter(instance=instance, verb__startswith="drift.").order_by("id")
    return list(found.values_list("verb", flat=True))


def asked(instance: Instance) -> list[Request]:
    return list(Request.objects.filter(instance=instance, kind="Change").order_by("created_at"))


def forced() -> list[bool]:
    return [row.payload["force"] for row in OutboxRow.objects.filter(topic="reapply").order_by("id")]


def test_a_field_within_the_ceiling_is_shown_and_asks_for_nothing(living: Instance, plane: Plane) -> None:
    look(living, plane, contextLength=8192)
    shown = fresh_instance(living)
    assert shown.drift == [
        {
            "field": CONTEXT,
            "approved": 4096,
            "live": 8192,
            "manager": "kubectl-edit",
            "at": "2026-12-01T12:00:00Z",
            "metered": False,
        }
    ]
    assert (shown.phase, asked(living), forced()) == ("Ready", [], [])


def test_seen_and_ended_are_audited_once_each_whatever_is_observed_in_between(living: Instance, plane: Plane) -> None:
    for _ in range(3):
        look(living, plane, contextLength=8192)
    look(living, plane, contextLength=16384)
    look(living, plane)
    look(living, plane)
    assert verbs(living) == ["drift.seen", "drift.seen", "drift.ended"]
    assert fresh_instance(living).drift == []
    seen = AuditEvent.objects.filter(instance=living, verb="drift.seen").latest("id")
    assert [(row["field"], row["live"], row["manager"]) for row in seen.data["fields"]] == [
        (CONTEXT, 16384, "kubectl-edit")
    ]


def test_beyond_the_ceiling_is_asked_for_once_in_the_owners_name(in_prod: Instance, plane: Plane) -> None:
    for _ in range(3):
        look(in_prod, plane, replicas_max=2)
    (request,) = asked(in_prod)
    assert (request.requester.username, request.state) == ("ada", "Waiting")
    assert request.spec["replicas"]["max"] == 2
    assert "/spec/replicas/max was set from 1 to 2 by kubectl-edit at 2026-12-01 12:00:00 UTC" in request.reason
    assert "gpu.l4: 2 instead of 1" in request.reason
    assert verbs(in_prod) == ["drift.seen", "drift.ask"]
    assert forced() == [], "nothing is overwritten while people are asked"


def test_its_owner_has_no_vote_on_it(in_prod: Instance, plane: Plane) -> None:
    look(in_prod, plane, replicas_max=2)
    (request,) = asked(in_prod)
    with pytest.raises(Forbidden):
        approving.vote(request.pk, "approve", acting=actor("ada"))


@pytest.mark.parametrize("end", ["reject", "withdraw", "expire"])
def test_a_no_or_no_answer_takes_it_back_once_and_says_what_from_whom(
    in_prod: Instance, plane: Plane, end: str
) -> None:
    look(in_prod, plane, replicas_max=2)
    (request,) = asked(in_prod)
    if end == "reject":
        approving.vote(request.pk, "reject", "not this month", acting=actor("frank"))
    elif end == "withdraw":
        withdrawing.withdraw(request.pk, acting=actor("ada"))
    else:
        request.stages.update(due_at=timezone.now() - dt.timedelta(seconds=1))
    tasks.housekeep()
    look(in_prod, plane, replicas_max=2)
    assert forced() == [True]
    event = AuditEvent.objects.get(instance=in_prod, verb="drift.take_back")
    assert [(row["field"], row["live"], row["manager"]) for row in event.data["fields"]] == [(MAX, 2, "kubectl-edit")]
    assert str(request.pk) in event.data["why"]
    work("reapply")
    assert without_machinery(plane.applied[-1]["spec"])["replicas"]["max"] == 1
    look(in_prod, plane)
    assert verbs(in_prod)[-1] == "drift.ended"
    assert len(asked(in_prod)) == 1


def test_what_policies_deny_is_taken_back_at_once(living: Instance, plane: Plane) -> None:
    """Team search has 4 L4; nobody has to say no."""
    look(living, plane, replicas_max=32)
    (request,) = asked(living)
    assert request.state == "Denied"
    assert (verbs(living), forced()) == (["drift.seen", "drift.ask", "drift.take_back"], [True])


def test_what_may_not_be_asked_for_at_all_is_taken_back(living: Instance, plane: Plane) -> None:
    """A value that the schema refuses: somebody wrote it where nothing checked."""
    look(living, plane, accelerator={"class": "l4", "count": 99})
    assert asked(living) == []
    event = AuditEvent.objects.get(instance=living, verb="drift.take_back")
    assert "can't be approved" in event.data["why"]
    assert forced() == [True]


def test_what_is_allowed_without_people_is_approved_and_then_no_drift(living: Instance, plane: Plane) -> None:
    look(living, plane, replicas_max=2)
    (request,) = asked(living)
    assert request.state == "Approved"
    work()
    assert plane.applied[-1]["spec"]["replicas"]["max"] == 2
    look(fresh_instance(living), plane)
    assert fresh_instance(living).drift == []
    assert fresh(request).state == "Done"
    assert forced() == []


def test_the_same_values_again_are_taken_back_without_asking_and_not_in_a_loop(in_prod: Instance, plane: Plane) -> None:
    look(in_prod, plane, replicas_max=2)
    approving.vote(asked(in_prod)[0].pk, "reject", "no", acting=actor("frank"))
    for _ in range(4):
        look(in_prod, plane, replicas_max=2)
        work("reapply")
        look(in_prod, plane)
    assert len(asked(in_prod)) == 1
    assert forced() == [True], "an autoscaler that sets it again at once is fought every few minutes only"
    forget_the_last_take_back(in_prod)
    look(in_prod, plane, replicas_max=2)
    assert forced() == [True, True]


def forget_the_last_take_back(instance: Instance) -> None:
    found = fresh_instance(instance)
    found.observed["memory"]["drift"]["takenBackAt"] = (timezone.now() - drifting.AGAIN_AFTER).isoformat()
    found.save(update_fields=["observed"])


def test_a_flood_of_edits_is_one_request(in_prod: Instance, plane: Plane) -> None:
    look(in_prod, plane, replicas_max=2)
    approving.vote(asked(in_prod)[0].pk, "reject", "no", acting=actor("frank"))
    for number in range(3, 8):
        look(in_prod, plane, replicas_max=number)
    assert [request.state for request in asked(in_prod)] == ["Rejected"]
    assert OutboxRow.objects.filter(topic="reapply").count() == 1


def test_a_request_for_values_that_are_others_by_now_is_withdrawn(in_prod: Instance, plane: Plane) -> None:
    look(in_prod, plane, replicas_max=2)
    look(in_prod, plane, replicas_max=3)
    assert [request.state for request in asked(in_prod)] == ["Withdrawn"]


def test_other_values_than_the_refused_ones_are_asked_for_anew(
    in_prod: Instance, plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drifting, "AGAIN_AFTER", dt.timedelta(0))
    look(in_prod, plane, replicas_max=2)
    approving.vote(asked(in_prod)[0].pk, "reject", "no", acting=actor("frank"))
    look(in_prod, plane, replicas_max=3)
    assert [request.state for request in asked(in_prod)] == ["Rejected", "Waiting"]


def test_what_goes_back_by_itself_needs_no_answer_any_more(in_prod: Instance, plane: Plane) -> None:
    look(in_prod, plane, replicas_max=2)
    look(in_prod, plane)
    (request,) = asked(in_prod)
    assert request.state == "Withdrawn"
    event = AuditEvent.objects.get(request=request, verb="request.withdraw")
    assert (event.actor, event.system) == (None, "drifting")
    assert forced() == []


def test_nothing_is_asked_while_another_change_is_open_and_then_it_is(in_prod: Instance, plane: Plane) -> None:
    body = {"kind": "Change", "instance": str(in_prod.pk), "spec": {**in_prod.spec, "contextLength": 2048}}
    other = submit("ada", body)
    look(in_prod, plane, replicas_max=2)
    assert [request.pk for request in asked(in_prod)] == [other.pk]
    withdrawing.withdraw(other.pk, acting=actor("ada"))
    tasks.housekeep()
    assert [request.state for request in asked(in_prod)] == ["Withdrawn", "Waiting"]


def test_without_managers_the_portals_own_apply_on_its_way_is_no_drift(living: Instance, plane: Plane) -> None:
    body = {"kind": "Change", "instance": str(living.pk), "spec": {**living.spec, "contextLength": 2048}}
    submit("ada", body)
    before = claim_of(living, plane)[0]
    work()
    observing.observe(dataclasses.replace(before, managers=()))
    assert fresh_instance(living).drift == []
    observing.observe(before)
    assert fresh_instance(living).drift == [], "the portal owns the old value"


def test_a_claim_that_is_being_deleted_is_not_governed(living: Instance, plane: Plane) -> None:
    seen, _ = claim_of(living, plane, replicas_max=32)
    observing.observe(dataclasses.replace(seen, deletion_requested_at=timezone.now()))
    tasks.housekeep()
    assert (asked(living), forced(), verbs(living)) == ([], [], [])


def test_somebody_of_its_team_takes_back_what_is_within(living: Instance, plane: Plane) -> None:
    look(living, plane, contextLength=8192)
    drifting.take_back(living.pk, acting=actor("ben"))
    event = AuditEvent.objects.get(instance=living, verb="drift.take_back")
    assert event.actor is not None
    assert (event.actor.username, event.data["fields"][0]["field"]) == ("ben", CONTEXT)
    assert forced() == [True]
    with pytest.raises(Conflict) as again:
        drifting.take_back(living.pk, acting=actor("ben"))
    assert again.value.code == "already-asked"


def test_somebody_of_its_team_asks_for_what_is_within(living: Instance, plane: Plane) -> None:
    look(living, plane, contextLength=8192)
    request = drifting.ask_for(living.pk, "it is better so", acting=actor("ben"))
    assert (request.kind, request.requester.username, request.reason) == ("Change", "ben", "it is better so")
    assert request.spec["contextLength"] == 8192
    assert verbs(living) == ["drift.seen", "drift.ask"]


@pytest.mark.parametrize(
    ("username", "drifted", "error", "code", "reason"),
    [
        ("ada", False, Conflict, "no-drift", "there is nothing to take back"),
        ("carol", True, NotFound, "not-found", "of another team: it isn't there"),
        ("olivia", True, Forbidden, "not-a-member", "who sees all may not change all"),
    ],
)
def test_who_may_not_take_back_changes_nothing(
    living: Instance, plane: Plane, username: str, drifted: bool, error: type[Exception], code: str, reason: str
) -> None:
    if drifted:
        look(living, plane, contextLength=8192)
    before = verbs(living)
    for verb in (
        lambda: drifting.take_back(living.pk, acting=actor(username)),
        lambda: drifting.ask_for(living.pk, "", acting=actor(username)),
    ):
        with pytest.raises(error) as refused:
            verb()
        assert getattr(refused.value, "code", "") == code, reason
    assert (verbs(living), forced(), asked(living)) == (before, [], [])


CONFLICT = TerminalError("field-conflict", "/spec/replicas/max is set by field manager 'kubectl-edit'")


def test_a_field_that_others_set_to_what_was_approved_is_taken_over_by_the_next_change(
    living: Instance, plane: Plane
) -> None:
    """After a yes the field is theirs and the portal's; server-side apply would let nobody change it."""
    look(living, plane, replicas_max=2)
    work()
    look(fresh_instance(living), plane)
    plane.errors = [CONFLICT]
    spec = {**fresh_instance(living).spec, "replicas": {"min": 1, "max": 1}}
    request = submit("ada", {"kind": "Change", "instance": str(living.pk), "spec": spec})
    work()
    assert plane.applied[-1]["spec"]["replicas"]["max"] == 1
    event = AuditEvent.objects.get(request=request, verb="drift.take_over")
    assert "kubectl-edit" in event.data["conflict"]
    assert fresh(request).state == "Delivering"


def test_a_conflict_over_what_was_not_approved_is_no_ones_to_force(living: Instance, plane: Plane) -> None:
    """Case 17: field and manager named, the request fails readably, nothing is forced."""
    ref = observing.delivering.claim_ref(living)
    uid, claim = plane.claims[ref.namespace, ref.name]
    plane.claims[ref.namespace, ref.name] = uid, {**claim, "spec": {**claim["spec"], "contextLength": 8192}}
    plane.errors = [CONFLICT]
    before = len(plane.applied)
    body = {"kind": "Change", "instance": str(living.pk), "spec": {**living.spec, "contextLength": 2048}}
    request = submit("ada", body)
    work()
    assert (fresh(request).state, fresh(request).failure_code) == ("Failed", "field-conflict")
    assert len(plane.applied) == before
    assert not AuditEvent.objects.filter(verb="drift.take_over").exists()


@pytest.mark.usefixtures("world")
@pytest.mark.django_db(transaction=True)
def test_on_the_embedded_control_plane_an_edit_is_seen_refused_and_taken_back() -> None:
    embedded = embedded_plane()
    request = submit("ada", model_body())
    work()
    instance = instance_of(request)
    ref = observing.delivering.claim_ref(instance)
    claim = embedded.get(ref)
    assert claim is not None
    assert observing.observe(claim)
    edited = {**(instance.claim or {}), "spec": {**claim.spec, "replicas": {"min": 1, "max": 32}}}
    apply_object(edited, manager="kubectl-edit")
    claim = embedded.get(ref)
    assert claim is not None
    assert observing.observe(claim)
    (row,) = fresh_instance(instance).drift
    assert (row["field"], row["live"], row["manager"], row["metered"]) == (MAX, 32, "kubectl-edit", True)
    assert [each.state for each in asked(instance)] == ["Denied"]
    assert work("reapply") == ["done"]
    claim = embedded.get(ref)
    assert claim is not None
    assert claim.spec["replicas"]["max"] == 1
    observing.observe(claim)
    assert fresh_instance(instance).drift == []
    assert verbs(instance) == ["drift.seen", "drift.ask", "drift.take_back", "drift.ended"]
