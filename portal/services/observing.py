"""Takes in what a control plane reports of a claim, and finishes what was waiting for it.

In charge of: writing observed state, and never anything that was asked for; asking why something is not well, not too
often. Not in charge of: what the conditions mean (domain.claim_status), what is kept of them (sightings), watching
(tasks and the mirror command), or claims that no instance is known for (listed only).
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable, Sequence

import msgspec
import structlog
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.domain import claim_status
from portal.domain.conditions import time_of
from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import CompositionRevision, Instance, Request
from portal.ports import Applied, Explanation, ObservedClaim, PortError
from portal.rendering.names import ANNOTATION_PREFIX
from portal.services import applying, changing, delivering, drifting, ending, locks, sightings, transitions

SYSTEM = "observing"
ASKED_AGAIN_AFTER = dt.timedelta(seconds=30)  # why one instance is not well is asked no more often than this
WELL = {InstancePhase.READY.value, InstancePhase.SUSPENDED.value, InstancePhase.GONE.value}
Ask = Callable[[ObservedClaim], Sequence[Explanation]]

log = structlog.get_logger()


def instance_id_of(claim: ObservedClaim) -> uuid.UUID | None:
    """The instance that a claim's label names, else the one that it was adopted as; None when it isn't the portal's."""
    try:
        return uuid.UUID(claim.labels.get(f"{ANNOTATION_PREFIX}instance", ""))
    except ValueError:
        adopted = Instance.objects.filter(claim_uid=claim.uid).exclude(phase=InstancePhase.GONE.value)
        return adopted.values_list("pk", flat=True).first() if claim.uid else None


def observe(claim: ObservedClaim, *, ask: Ask | None = None, comparing: bool = False) -> bool:
    """Record a claim as it is now; False when no instance is known for it, or it is an older state.

    `ask` (the control plane's `explanations`) is called where something is not well and that is new, or everything is
    being compared.
    """
    instance = _observe(claim)
    if instance is None:
        return False
    drifting.govern(instance)
    if ask is not None and _asks_why(instance, comparing):
        try:
            explain(instance.pk, ask(claim))
        except PortError as error:  # the status is recorded; why will be asked again
            log.info("observing.unexplained", instance=str(instance.pk), code=error.code, message=error.message)
    return True


def explain(instance_id: uuid.UUID, explanations: Sequence[Explanation]) -> None:
    """Keep the Events that say why an instance is as it is; those that expired on the control plane stay."""
    with transaction.atomic():
        instance = locks.lock_instance(instance_id)
        events = sightings.events_of(instance.observed.get("events") or [], explanations)
        explained = {"at": timezone.now().isoformat(), "phase": instance.phase, "message": instance.message}
        instance.observed = {**instance.observed, "events": events, "explained": explained}
        instance.save(update_fields=["observed"])


def _observe(claim: ObservedClaim) -> Instance | None:
    instance_id = instance_id_of(claim)
    instance = Instance.objects.select_related("team").filter(pk=instance_id).first() if instance_id else None
    if instance is None or instance.claim is None or instance.phase == InstancePhase.GONE:
        return None
    with transaction.atomic():
        # Teams only when holdings move: at the first sight of a claim whose worker died before it could say so, and
        # where a change is waited for.
        change = changing.unsettled(instance)
        if not instance.claim_uid or change:
            locks.lock_team_chain(instance.team)
        request = locks.lock_request(change) if change else _open_creation(instance)
        instance = locks.lock_instance(instance.pk)
        if instance.claim_uid and instance.claim_uid != claim.uid:
            return None
        if not instance.claim_uid and claim.ref != delivering.claim_ref(instance):
            return None  # a label alone makes no claim an instance's
        if not instance.claim_uid:
            # Its label says whose it is, also when the request that made it was given up meanwhile.
            creation = request or instance.requests.filter(kind="Create").latest("created_at")
            applying.mark_applied(creation, instance, _applied(claim))
        assessment = _record(instance, claim)
        transitions.set_phase(instance, assessment.phase, assessment.message)
        if change and request is not None:
            changing.note(request, instance, claim, assessment.phase)
        elif assessment.phase == InstancePhase.READY and request is not None:
            transitions.move(request, Verb.FINISH, system=SYSTEM, data={"uid": claim.uid})
        drifting.note(instance, claim)
    return instance


def _record(instance: Instance, claim: ObservedClaim) -> claim_status.Assessment:
    """Judge the claim, and write what was seen and what comes of it; the phase is still the one before."""
    now = timezone.now()
    memory = sightings.remembered(instance.observed, claim, now)
    was_ready = changing.was_ready(instance)
    ours = claim.deletion_requested_at is None or ending.deletion_was_asked(instance)
    past = sightings.past_of(memory, was_ready=was_ready, deletion_is_ours=ours)
    assessment = claim_status.assess(claim, now, settings.STUCK_AFTER_SECONDS, past)
    if assessment.phase == InstancePhase.PENDING:  # a claim that nobody has looked at yet is there all the same
        assessment = msgspec.structs.replace(assessment, phase=InstancePhase.PROVISIONING)
    instance.observed = sightings.observed_of(instance, claim, memory, assessment)
    instance.composed = [sightings.composed_of(each) for each in claim.composed]
    instance.observed_at = now
    instance.save(update_fields=["observed", "composed", "observed_at"])
    return assessment


def _asks_why(instance: Instance, comparing: bool) -> bool:
    """Whether to ask the control plane for Events: not for what is well, not again for the same within one comparison,
    and never more often than every ASKED_AGAIN_AFTER."""
    if instance.phase in WELL and not instance.observed.get("advice"):
        return False
    before = instance.observed.get("explained") or {}
    at = time_of(before.get("at"))
    if at is not None and timezone.now() - at < ASKED_AGAIN_AFTER:
        return False
    return comparing or (before.get("phase"), before.get("message")) != (instance.phase, instance.message)


def observe_gone(instance_id: uuid.UUID, uid: str = "") -> bool:
    """A claim is not there any more: everything it held is given back, and a deletion that waited for it is done."""
    found = Instance.objects.select_related("team").filter(pk=instance_id).first()
    if found is None:
        return False
    with transaction.atomic():
        locks.lock_team_chain(found.team)
        waiting = ending.lock_open_requests(found)
        instance = locks.lock_instance(instance_id)
        if instance.phase == InstancePhase.GONE or not instance.claim_uid or (uid and instance.claim_uid != uid):
            return False
        ending.end(instance, waiting, system=SYSTEM)
    return True


def living_instances(control_plane: str) -> list[Instance]:
    """Instances whose claim should be there, to compare with a complete list."""
    return list(
        Instance.objects.filter(environment__control_plane=control_plane, claim__isnull=False)
        .exclude(phase=InstancePhase.GONE.value)
        .exclude(claim_uid="")
        .select_related("document", "environment", "team")
    )


def note_revision(control_plane: str, composition: str, revision: str) -> None:
    """Remember the newest revision of a Composition, for submissions to be approved with."""
    CompositionRevision.objects.update_or_create(
        control_plane=control_plane,
        composition=composition,
        defaults={"revision": revision, "seen_at": timezone.now()},
    )


def _open_creation(instance: Instance) -> Request | None:
    row = instance.requests.filter(kind="Create", state=RequestState.DELIVERING.value).first()
    return locks.lock_request(row.pk) if row else None


def _applied(claim: ObservedClaim) -> Applied:
    return Applied(claim.uid, claim.generation, claim.resource_version)
