"""Moves a request from state to state: the only code that writes `Request.state`. One move, one audit event.

In charge of: the table's word (domain.lifecycle), the event, and what an ending gives back. Not in charge of: whether
the verb is wanted (submitting, approving, delivering, observing).
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from portal.domain.decision import APPLIED, CHANGES
from portal.domain.lifecycle import InstancePhase, RequestState, Verb, next_state
from portal.models import Instance, Request
from portal.services import durations, holding, journal, notices, outbox

DELIVERING = RequestState.DELIVERING.value
ENDED_UNDELIVERED = {
    RequestState.DENIED,
    RequestState.REJECTED,
    RequestState.WITHDRAWN,
    RequestState.EXPIRED,
}


def move(
    request: Request,
    verb: Verb,
    *,
    actor: User | None = None,
    system: str = "",
    data: dict[str, Any] | None = None,
) -> None:
    """One step, under the locks of the request and, if it holds anything, its team chain. May be IllegalTransition.

    A new request is stored by its first step, in the state that this brings; rows that name it may be there before,
    since the database looks at foreign keys when the transaction ends.
    """
    before = request.state
    request.state = next_state(before, verb).value
    if request._state.adding:
        request.save(force_insert=True)
    else:
        request.save(update_fields=["state", "failure_code", "failure_message", "changed_at"])
    journal.record(
        f"request.{verb}",
        actor=actor,
        system=system,
        request=request,
        data={"from": before, "to": request.state, **(data or {})},
    )
    notices.step(request, before, verb)
    if request.state in ENDED_UNDELIVERED or (request.state == RequestState.SUPERSEDED and before != DELIVERING):
        give_back(request)


def give_back(request: Request) -> None:
    """A creation that ended before a claim was made: its instance never was, and holds nothing. A change that did: its
    instance holds what it held without it."""
    instance = request.instance
    if request.kind in CHANGES:
        holding.give_up(request)
    if request.kind != "Create" or instance is None:
        return
    holding.release(instance)
    set_phase(instance, InstancePhase.GONE, "never delivered")


def set_phase(instance: Instance, phase: InstancePhase, message: str) -> bool:
    """Write an instance's phase and queue its catalog entry; False if it says so already."""
    if instance.phase == phase.value and instance.message == message:
        return False
    before = instance.phase
    if before != phase.value:
        durations.ended(instance)
        instance.since = timezone.now()
        data = {"from": before, "to": phase.value, "message": message[:500]}
        journal.record("instance.phase", system="observing", instance=instance, data=data)
    instance.phase, instance.message = phase.value, message
    instance.save(update_fields=["phase", "message", "since"])
    publish_later(instance)
    return True


def publish_later(instance: Instance) -> None:
    """Queue this instance's catalog entry, in its own lane."""
    outbox.put(f"instance:{instance.pk}:catalog", "publish", {"instance": str(instance.pk)})


def deliver_later(request: Request) -> None:
    """Queue what this request wants of the control plane. A deletion overtakes an apply that can't succeed, and so does
    a change that is asked for while an earlier one is being delivered; a deletion overtakes that too."""
    lane, deletion = delivery_lane(request.instance), request.kind == "Delete"
    if deletion:
        outbox.step_back(lane)
    earlier = Request.objects.filter(instance=request.instance, kind__in=APPLIED, state=DELIVERING)
    urgent = deletion or (request.kind in CHANGES and earlier.exists())
    outbox.put(lane, "delete" if deletion else "apply", {"request": str(request.pk)}, urgent=urgent)


def delivery_lane(instance: Instance | None) -> str:
    if instance is None:
        raise ValueError("a governed value is not delivered to a control plane")
    return f"instance:{instance.pk}:control-plane"
