"""What an observation writes: phase, what decided it, what to do, how long, why; and a claim that others deleted."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from portal import tasks
from portal.models import AuditEvent, FeedEntity, Instance, OutboxRow, PhaseDuration, Request
from portal.ports import Explanation, ObservedClaim, RetryableError
from portal.services import delivering, durations, observing, publishing
from tests.sample import model_body
from tests.services.deliveries import Plane, held, instance_of, observed, submit, work

pytestmark = pytest.mark.django_db

AT = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
FAILED = {"type": "Synced", "status": "False", "reason": "ReconcileError", "message": "Unsynced resources: llm"}
WHY = Explanation("Warning", "ComposeResources", "spec.replicas: Invalid value: -1", "Object chat-llm", 3, AT)


@pytest.fixture
def plane(sample: None, monkeypatch: pytest.MonkeyPatch) -> Plane:
    made = Plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: made)
    return made


@pytest.fixture
def chat(plane: Plane) -> Instance:
    """chat of team search, its claim applied."""
    request = submit("ada", model_body())
    work()
    return instance_of(request)


@pytest.fixture
def living(chat: Instance, plane: Plane) -> Instance:
    assert observing.observe(seen(chat, plane))
    return fresh(chat)


def fresh(instance: Instance) -> Instance:
    return Instance.objects.get(pk=instance.pk)


def seen(instance: Instance, plane: Plane, *conditions: dict[str, Any], **changed: Any) -> ObservedClaim:
    """The claim with these conditions in place of its own, and other members."""
    ref = delivering.claim_ref(instance)
    claim = observed(ref, *plane.claims[ref.namespace, ref.name])
    by_type = {each["type"]: each for each in [*claim.status["conditions"], *conditions]}
    return dataclasses.replace(claim, status={"conditions": list(by_type.values())}, **changed)


def test_what_was_made_of_the_conditions_is_kept_beside_them(living: Instance, plane: Plane) -> None:
    observing.observe(seen(living, plane, {**FAILED, "lastTransitionTime": "2026-12-01T11:00:00Z"}))
    found = fresh(living)
    assert (found.phase, found.observed["condition"]) == ("Degraded", "Synced")
    assert found.observed["since"] == "2026-12-01T11:00:00+00:00"
    assert "Events below hold the cause" in found.observed["advice"]
    observing.observe(seen(living, plane))
    found = fresh(living)
    assert (found.phase, found.observed["condition"], found.observed["advice"]) == ("Ready", "Ready", "")


class Asked:
    """Counts what a control plane is asked."""

    def __init__(self, *answers: Explanation, error: RetryableError | None = None) -> None:
        self.answers, self.error, self.times = answers, error, 0

    def __call__(self, claim: ObservedClaim) -> tuple[Explanation, ...]:
        self.times += 1
        if self.error:
            raise self.error
        return self.answers


def later(instance: Instance) -> None:
    """Half a minute has passed since the control plane was asked why."""
    found = fresh(instance)
    found.observed["explained"]["at"] = (timezone.now() - observing.ASKED_AGAIN_AFTER).isoformat()
    found.save(update_fields=["observed"])


def test_why_is_asked_where_something_is_not_well_and_not_over_and_over(living: Instance, plane: Plane) -> None:
    ask = Asked(WHY)
    observing.observe(seen(living, plane), ask=ask)
    observing.observe(seen(living, plane), ask=ask, comparing=True)
    assert ask.times == 0, "what is well needs no explanation"
    for _ in range(3):
        observing.observe(seen(living, plane, FAILED), ask=ask)
    assert ask.times == 1
    later(living)
    observing.observe(seen(living, plane, FAILED), ask=ask)
    assert ask.times == 1, "nothing is new"
    observing.observe(seen(living, plane, FAILED), ask=ask, comparing=True)
    assert ask.times == 2, "with each full comparison"
    observing.observe(seen(living, plane, {**FAILED, "message": "boom"}), ask=ask, comparing=True)
    assert ask.times == 2, "not twice within half a minute, whatever happens"
    later(living)
    observing.observe(seen(living, plane, {**FAILED, "message": "bang"}), ask=ask)
    assert ask.times == 3, "another message"


def test_events_that_expired_are_kept_with_their_time(living: Instance, plane: Plane) -> None:
    observing.observe(seen(living, plane, FAILED), ask=Asked(WHY))
    newer = dataclasses.replace(WHY, message="another cause", last_seen=AT + dt.timedelta(minutes=1))
    more = dataclasses.replace(WHY, count=9)
    for answers in ((), (newer,), (more,)):
        later(living)
        observing.observe(seen(living, plane, FAILED), ask=Asked(*answers), comparing=True)
    events = fresh(living).observed["events"]
    assert [(each["message"], each["count"]) for each in events] == [("another cause", 3), (WHY.message, 9)]
    assert events[1]["lastSeen"] == AT.isoformat()


def test_events_are_cut_at_twenty_the_newest(living: Instance, plane: Plane) -> None:
    many = [
        dataclasses.replace(WHY, message=f"{number}", last_seen=AT + dt.timedelta(seconds=number))
        for number in range(30)
    ]
    observing.explain(living.pk, many)
    assert [each["message"] for each in fresh(living).observed["events"]] == [str(n) for n in range(29, 9, -1)]


def test_a_control_plane_that_can_not_explain_hides_no_status(living: Instance, plane: Plane) -> None:
    ask = Asked(error=RetryableError("throttled", "too many requests"))
    assert observing.observe(seen(living, plane, FAILED), ask=ask)
    assert (fresh(living).phase, "events" in fresh(living).observed) == ("Degraded", False)


def since(instance: Instance, key: str, seconds: float) -> None:
    found = fresh(instance)
    found.observed["memory"][key] = (timezone.now() - dt.timedelta(seconds=seconds)).isoformat()
    found.save(update_fields=["observed"])


def test_a_change_that_nobody_looks_at_is_told_after_two_minutes(living: Instance, plane: Plane) -> None:
    """The function, or the core, is down: its conditions just stay as they were."""
    spec = {**(living.claim or {})["spec"], "contextLength": 2048}
    unseen = seen(living, plane, generation=2, spec=spec)
    observing.observe(unseen)
    assert (fresh(living).phase, fresh(living).message) == ("Updating", "serving generation 1; updating to 2")
    since(living, "generationSince", 130)
    observing.observe(unseen)
    found = fresh(living)
    assert found.phase == "Updating"
    assert "the control plane has not looked at generation 2 for 2 min" in found.message
    assert "composition function run" in found.observed["advice"]


def test_a_new_composite_whose_generation_the_core_moves_is_no_update(chat: Instance, plane: Plane) -> None:
    for generation in (1, 3, 4):
        found = seen(chat, plane, generation=generation)
        without = {"conditions": [] if generation == 1 else [{**c, "observedGeneration": 3} for c in conditions(found)]}
        observing.observe(dataclasses.replace(found, status=without))
        assert fresh(chat).phase == ("Ready" if generation == 3 else "Provisioning" if generation == 1 else "Updating")
    assert fresh(chat).message == "ready as of generation 3; the control plane itself made it 4"


def conditions(claim: ObservedClaim) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = claim.status["conditions"]
    return found


def test_an_update_that_is_not_ready_yet_is_no_damage_for_a_while(living: Instance, plane: Plane) -> None:
    spec = {**(living.claim or {})["spec"], "contextLength": 2048}
    creating = {"type": "Ready", "status": "False", "reason": "Creating", "observedGeneration": 2}
    synced = {"type": "Synced", "status": "True", "reason": "ReconcileSuccess", "observedGeneration": 2}
    moving = seen(living, plane, creating, synced, generation=2, spec=spec)
    observing.observe(moving)
    assert (fresh(living).phase, fresh(living).message) == (
        "Updating",
        "not ready while updating to generation 2: Creating",
    )
    since(living, "specSince", 3 * 3600)
    observing.observe(moving)
    assert fresh(living).phase == "Degraded"
    assert "not ready after 3 h of updating to generation 2" in fresh(living).message


def test_a_phase_that_ends_leaves_how_long_it_took(living: Instance) -> None:
    rows = list(PhaseDuration.objects.order_by("id").values_list("offering", "phase"))
    assert rows == [("modeldeployments", "Pending"), ("modeldeployments", "Provisioning")]


@pytest.mark.parametrize(("at_once", "rows"), [(3600.0, 0), (0.0, 1)])
def test_an_update_of_an_instant_is_the_cores_own_and_no_history(
    living: Instance, plane: Plane, monkeypatch: pytest.MonkeyPatch, at_once: float, rows: int
) -> None:
    monkeypatch.setattr(durations, "AT_ONCE", at_once)
    observing.observe(seen(living, plane, generation=2))
    observing.observe(seen(living, plane))
    assert PhaseDuration.objects.filter(phase="Updating").count() == rows


@pytest.mark.parametrize(
    ("seconds", "phase", "expected", "reason"),
    [
        ([10, 20, 30, 40], "Updating", None, "four are too few to call anything typical"),
        ([10, 20, 30, 40, 50], "Updating", (30, 50, 5), "from five on"),
        ([1000] * 30 + [10] * 100, "Updating", (10, 10, 100), "of the last hundred"),
        ([*range(1, 101)], "Updating", (50, 95, 100), "nearest rank"),
        ([10] * 9, "Ready", None, "how long one is Ready says nothing"),
        ([10] * 9, "Deleting", (10, 10, 9), "of each phase that moves"),
    ],
)
@pytest.mark.usefixtures("db")
def test_what_is_typical(
    seconds: list[float], phase: str, expected: tuple[float, float, int] | None, reason: str
) -> None:
    for number, each in enumerate(seconds):
        ended = AT + dt.timedelta(seconds=number)
        PhaseDuration.objects.create(offering="modeldeployments", phase=phase, seconds=each, ended_at=ended)
    PhaseDuration.objects.create(offering="vectordatabases", phase=phase, seconds=9999, ended_at=AT)
    found = durations.typical("modeldeployments", phase)
    assert (found and (found.median, found.p95, found.count)) == expected, reason


def test_a_deletion_by_others_is_told_while_it_goes_on_and_afterwards(living: Instance, plane: Plane) -> None:
    asked = timezone.now().replace(microsecond=0)
    observing.observe(seen(living, plane, deletion_requested_at=asked, finalizers=("foregroundDeletion",)))
    found = fresh(living)
    assert found.phase == "Deleting"
    assert "asked by somebody other than the portal" in found.message
    assert "ask who deleted the claim" in found.observed["advice"]
    assert held("search")[1] == 1, "held until it is gone"
    assert observing.observe_gone(living.pk, living.claim_uid)
    found = fresh(living)
    assert found.phase == "Gone"
    when = f"{asked.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    assert f"ModelDeployment search-dev/chat was deleted by somebody other than the portal at {when}." in found.message
    event = AuditEvent.objects.get(instance=living, verb="claim.deleted_by_others")
    assert (event.system, event.data["uid"], event.data["noticedOnly"]) == ("observing", living.claim_uid, False)
    assert held("search") == (0, 0)


def test_one_that_is_just_not_there_any_more_was_deleted_shortly_before(living: Instance) -> None:
    observing.observe_gone(living.pk, living.claim_uid)
    assert ", or shortly before." in fresh(living).message


def test_a_deletion_that_the_portal_asked_for_is_its_own(living: Instance, plane: Plane) -> None:
    submit("ada", {"kind": "Delete", "instance": str(living.pk)})
    claim = seen(living, plane, deletion_requested_at=timezone.now())
    work()
    observing.observe(claim)
    assert "somebody other" not in fresh(living).message
    observing.observe_gone(living.pk, living.claim_uid)
    assert fresh(living).message == "Deleted."
    assert not AuditEvent.objects.filter(verb="claim.deleted_by_others").exists()


def test_the_catalog_follows_phase_advice_and_drift(living: Instance, plane: Plane) -> None:
    spec = {**(living.claim or {})["spec"], "contextLength": 8192}
    observing.observe(seen(living, plane, FAILED, spec=spec))
    annotations = published(living)
    assert annotations["state"] == "Degraded"
    assert "Events below" in annotations["advice"]
    assert annotations["drift"] == "/spec/contextLength"
    observing.observe(seen(living, plane))
    annotations = published(living)
    assert (annotations["state"], "advice" in annotations, "drift" in annotations) == ("Ready", False, False)


def published(instance: Instance) -> dict[str, str]:
    """The portal's annotations of its catalog entry, once all that is due is published."""
    for row in OutboxRow.objects.filter(topic="publish", done_at=None).order_by("id"):
        publishing.publish(row)
    entity = FeedEntity.objects.get(instance=instance, part="main").entity
    prefix = "portal.aiplatform.example.org/"
    found = entity["metadata"]["annotations"]  # type: ignore[index]
    return {key.removeprefix(prefix): value for key, value in found.items() if key.startswith(prefix)}


def test_a_deletion_that_failed_here_and_came_through_there_is_its_own_too(living: Instance) -> None:
    """The portal had given up waiting for an answer."""
    request = submit("ada", {"kind": "Delete", "instance": str(living.pk)})
    Request.objects.filter(pk=request.pk).update(state="Failed")
    observing.observe_gone(living.pk, living.claim_uid)
    assert fresh(living).message == "Deleted."
