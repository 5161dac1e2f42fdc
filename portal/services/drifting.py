"""Drift is shown and governed: what others set in a claim is noted, and beyond what was approved it is asked for, or
taken back.

    note      under the instance's lock, at every observation: rows and, once each, audit events
    govern    beyond the ceiling: a Change request in the owner's name; refused: taken back; gone again: withdrawn
    take_back, ask_for    what a person presses

In charge of: when to ask and when to take back; never silently, and never in a loop. Not in charge of: what counts as
drift (domain.drift), the request's life (changing, approving), applying the claim (reapplying).

What was asked is remembered in `observed.memory.drift` {values, request, askedAt, takenBackAt}. What was refused within
KNOWN_FOR is taken back without asking anew. Nothing is asked for, or taken back, twice within AGAIN_AFTER.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any

import structlog
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from portal.domain.conditions import time_of
from portal.domain.decision import APPLIED, CHANGES
from portal.domain.draft import Draft
from portal.domain.drift import Drift, DriftedField, Row, drift_of, judged, news, values_of
from portal.domain.lifecycle import FINAL, InstancePhase, RequestState, Verb
from portal.models import OPEN_STATES, Instance, OutboxRow, Request
from portal.ports import ObservedClaim
from portal.rendering.claim import machinery_of, without_machinery
from portal.services import changing, journal, loading, locks, pausing, reapplying, submitting, transitions
from portal.services.access import Actor, instance_for, team_to_request_for
from portal.services.errors import Conflict, InvalidInput, ServiceError

SYSTEM = "drifting"
KNOWN_FOR = dt.timedelta(hours=24)
AGAIN_AFTER = dt.timedelta(minutes=5)
REFUSED = {RequestState.DENIED, RequestState.REJECTED, RequestState.WITHDRAWN, RequestState.EXPIRED}

log = structlog.get_logger()


def note(instance: Instance, claim: ObservedClaim) -> None:
    """Record what differs from what was approved, under the instance's lock. Seen and ended are audited once each."""
    if instance.claim is None or claim.deletion_requested_at is not None:
        return
    rows = [field.row() for field in _fields(instance, instance.claim["spec"], claim)]
    if rows == instance.drift:
        return
    seen, ended = news(instance.drift, rows)
    instance.drift = rows
    if seen:
        drift = _judged(instance)
        beyond = [[each.dimension, each.approved, each.live] for each in drift.excess]
        data = {"fields": seen, "beyond": beyond, "unmeasurable": drift.unmeasurable}
        journal.record("drift.seen", system=SYSTEM, instance=instance, data=data)
    if ended:
        journal.record("drift.ended", system=SYSTEM, instance=instance, data={"fields": ended})
    instance.save(update_fields=["drift"])
    transitions.publish_later(instance)


def govern(instance: Instance) -> None:
    """Do what is due about its drift, outside of any transaction: ask, take back, or withdraw what needs no answer any
    more. Nothing is asked while another change is open, nor again for what was approved and could not be delivered."""
    asked = _asked(instance)
    if (not instance.drift and not asked) or instance.claim is None or instance.observed.get("deletionRequestedAt"):
        return
    request = Request.objects.filter(pk=asked["request"]).first() if asked.get("request") else None
    drift = _judged(instance)
    if not drift.is_beyond:
        _withdraw(request)
    elif request is not None and asked.get("values") == values_of(instance.drift) and _is_known(request):
        if request.state in REFUSED:
            _take_back_later(instance, why=f"request {request.pk} for it is {request.state}", request=request)
    elif request is not None and request.state == RequestState.WAITING:
        _withdraw(request, "others have set other values since")  # its yes would be to what is there no more
    elif not instance.requests.filter(kind__in=CHANGES, state__in=OPEN_STATES).exists():
        at = time_of(asked.get("askedAt"))
        if at is not None and timezone.now() - at < AGAIN_AFTER:
            _take_back_later(instance, why="it was changed again a moment after it was asked about", request=None)
        else:
            _propose(instance, drift)


def govern_all(limit: int = 200) -> None:
    """The same for every drift that is known: an answer may have come since the claim was observed."""
    paused = [each.control_plane for each in pausing.pauses()]
    rows = Instance.objects.exclude(drift=[]).exclude(phase=InstancePhase.GONE.value)
    rows = rows.exclude(environment__control_plane__in=paused)
    for instance in rows.select_related("team", "environment", "document").order_by("observed_at")[:limit]:
        govern(instance)


def take_back(instance_id: uuid.UUID, *, acting: Actor) -> Instance:
    """Somebody of its team wants the approved values again. Raises NotFound, Forbidden, Conflict."""
    instance = _for_its_team(instance_id, acting)
    with transaction.atomic():
        instance = locks.lock_instance(instance.pk)
        if not instance.drift:
            raise Conflict("no-drift", f"{instance.name} is as it was approved: there is nothing to take back.")
        if _is_waiting(instance):
            raise Conflict("already-asked", f"{instance.name} is being taken back already.")
        _queue(instance, f"asked by {acting.user.username}", actor=acting.user)
    return instance


def ask_for(instance_id: uuid.UUID, reason: str, *, acting: Actor) -> Request:
    """Somebody of its team asks for what others have set, as a change in their own name. Refused, it is taken back if
    it is beyond what was approved. Raises what submitting does."""
    instance = _for_its_team(instance_id, acting)
    if not instance.drift:
        raise Conflict("no-drift", f"{instance.name} is as it was approved: there is nothing to ask for.")
    spec = dict(instance.observed.get("spec") or {})
    draft = Draft(kind="Change", instance=str(instance.pk), spec=spec, reason=reason or told(instance.drift))
    with transaction.atomic():
        request = submitting.submit(draft, acting=acting).request
        instance = locks.lock_instance(instance.pk)
        _remember(instance, values=values_of(instance.drift), request=str(request.pk))
        data = {"fields": instance.drift}
        journal.record("drift.ask", actor=acting.user, request=request, instance=instance, data=data)
    return request


def told(rows: Sequence[Row]) -> str:
    """The rows in a sentence."""
    parts = [f"{row['field']} ({row['manager'] or 'nobody says by whom'})" for row in rows]
    return f"Others have set {', '.join(parts)}."


def _fields(instance: Instance, approved: dict[str, Any], claim: ObservedClaim) -> list[DriftedField]:
    machinery = machinery_of(approved) | machinery_of(claim.spec)
    offering = loading.offering(instance.document)
    found = drift_of(approved, claim.spec, claim.managers, offering, machinery, ours=False)
    if not found:
        return []
    # While the portal's own apply is on its way, what is its own, or nobody's, may be from before. Else it is drift
    # like any other: a manager's name is whatever its client says.
    on_its_way = instance.requests.filter(kind__in=APPLIED, state=RequestState.DELIVERING.value).exists()
    if not on_its_way and not _is_waiting(instance):
        return found
    return drift_of(approved, claim.spec, claim.managers, offering, machinery) if claim.managers else []


def _judged(instance: Instance) -> Drift:
    approved = without_machinery((instance.claim or {}).get("spec") or {})
    live = instance.observed.get("spec") or {}
    return judged(instance.drift, approved, live, loading.offering(instance.document))


def _propose(instance: Instance, drift: Drift) -> None:
    """Ask for the live values in the owner's name, and remember what was asked. What may not be asked for is taken
    back."""
    spec = instance.observed.get("spec") or {}
    reason = f"Somebody changed the claim beside the portal: {drift.told()} Rejecting this takes it back."
    try:
        with transaction.atomic():
            request = changing.propose_for_drift(instance, spec, reason)
            locked = locks.lock_instance(instance.pk)
            now = timezone.now().isoformat()
            _remember(locked, values=values_of(instance.drift), request=str(request.pk), askedAt=now)
            data = {"fields": instance.drift, "request": str(request.pk), "state": request.state}
            journal.record("drift.ask", system=SYSTEM, request=request, instance=locked, data=data)
    except InvalidInput as error:
        _take_back_later(instance, why=f"it can't be approved: {error.message}", request=None)
    except ServiceError as error:  # another change is open, say: looked at again with the next observation
        log.info("drifting.not_asked", instance=str(instance.pk), code=error.code, message=error.message)
    else:
        if request.state in REFUSED:
            _take_back_later(instance, why=f"request {request.pk} for it is {request.state}", request=request)


def _take_back_later(instance: Instance, *, why: str, request: Request | None) -> None:
    with transaction.atomic():
        instance = locks.lock_instance(instance.pk)
        at = time_of(_asked(instance).get("takenBackAt"))
        recently = at is not None and timezone.now() - at < AGAIN_AFTER
        if recently or not instance.drift or _is_waiting(instance):
            return
        _remember(instance, takenBackAt=timezone.now().isoformat())
        _queue(instance, why, request=request)


def _queue(instance: Instance, why: str, *, actor: User | None = None, request: Request | None = None) -> None:
    """Have the approved claim applied by force, and say what is taken from whom."""
    system = "" if actor else SYSTEM
    data = {"fields": instance.drift, "why": why}
    journal.record("drift.take_back", actor=actor, system=system, request=request, instance=instance, data=data)
    reapplying.ask(instance, why=f"drift is taken back: {why}", actor=actor, system=system, force=True)


def _withdraw(request: Request | None, why: str = "the claim is within what was approved again") -> None:
    """What others had set is as approved again, within it, or another: nobody has to answer any more."""
    if request is None or request.state != RequestState.WAITING:
        return
    with transaction.atomic():
        locks.lock_team_chain(request.team)
        request = locks.lock_request(request.pk)
        if request.state == RequestState.WAITING:
            transitions.move(request, Verb.WITHDRAW, system=SYSTEM, data={"why": why})


def _is_known(request: Request) -> bool:
    """Whether its answer is still to come, or came a short time ago and was no yes that was carried out."""
    if request.state in {RequestState.DONE, RequestState.SUPERSEDED}:
        return False
    return request.state not in FINAL or timezone.now() - request.changed_at < KNOWN_FOR


def _is_waiting(instance: Instance) -> bool:
    lane = transitions.delivery_lane(instance)
    return OutboxRow.objects.filter(lane=lane, topic=reapplying.TOPIC, done_at=None).exists()


def _for_its_team(instance_id: uuid.UUID, acting: Actor) -> Instance:
    acting.needs("request")
    instance = instance_for(acting, instance_id)
    team_to_request_for(acting, instance.team.slug)
    if instance.phase in {InstancePhase.GONE.value, InstancePhase.DELETING.value}:
        raise Conflict("being-deleted", f"{instance.name} is {instance.phase}: nothing is changed in it any more.")
    return instance


def _asked(instance: Instance) -> dict[str, Any]:
    found: dict[str, Any] = (instance.observed.get("memory") or {}).get("drift") or {}
    return found


def _remember(instance: Instance, **what: str) -> None:
    """Keep it in the memory of what was observed, under the instance's lock."""
    memory = instance.observed.get("memory") or {}
    drift = {**_asked(instance), **what}
    instance.observed = {**instance.observed, "memory": {**memory, "drift": drift}}
    instance.save(update_fields=["observed"])
