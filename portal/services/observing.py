"""Takes in what a control plane reports of a claim, and finishes what was waiting for it.

In charge of: writing observed state, and never anything that was asked for. Not in charge of: what the conditions mean
(domain.claim_status), watching (tasks and the mirror command), or claims that no instance is known for (listed only).
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.domain import claim_status
from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import CompositionRevision, Instance, Request
from portal.ports import Applied, ComposedObject, ObservedClaim
from portal.rendering.names import ANNOTATION_PREFIX
from portal.services import delivering, ending, locks, transitions

SYSTEM = "observing"


def instance_id_of(claim: ObservedClaim) -> uuid.UUID | None:
    """The instance that a claim's label names, or None when it isn't the portal's."""
    try:
        return uuid.UUID(claim.labels.get(f"{ANNOTATION_PREFIX}instance", ""))
    except ValueError:
        return None


def observe(claim: ObservedClaim) -> bool:
    """Record a claim as it is now; False when no instance is known for it, or it is an older state."""
    instance_id = instance_id_of(claim)
    instance = Instance.objects.select_related("team").filter(pk=instance_id).first() if instance_id else None
    if instance is None or instance.claim is None or instance.phase == InstancePhase.GONE:
        return False
    with transaction.atomic():
        # Teams only when holdings move: at the first sight of a claim whose worker died before it could say so.
        if not instance.claim_uid:
            locks.lock_team_chain(instance.team)
        request = _open_creation(instance)
        instance = locks.lock_instance(instance.pk)
        if instance.claim_uid and instance.claim_uid != claim.uid:
            return False
        if not instance.claim_uid:
            # Its label says whose it is, also when the request that made it was given up meanwhile.
            creation = request or instance.requests.filter(kind="Create").latest("created_at")
            delivering.mark_applied(creation, instance, _applied(claim))
        was_ready = not instance.requests.filter(kind="Create", state__in=ending.OPEN).exists()
        assessment = claim_status.assess(claim, timezone.now(), settings.STUCK_AFTER_SECONDS, was_ready)
        instance.observed = _observed(claim)
        instance.composed = [_composed(each) for each in claim.composed]
        instance.observed_at = timezone.now()
        instance.save(update_fields=["observed", "composed", "observed_at"])
        transitions.set_phase(instance, _phase(assessment), assessment.message)
        if assessment.phase == InstancePhase.READY and request is not None:
            transitions.move(request, Verb.FINISH, system=SYSTEM, data={"uid": claim.uid})
    return True


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


def _phase(assessment: claim_status.Assessment) -> InstancePhase:
    """A claim that nobody has looked at yet is there all the same: Pending is only what was not delivered yet."""
    pending = assessment.phase == InstancePhase.PENDING
    return InstancePhase.PROVISIONING if pending else assessment.phase


def _open_creation(instance: Instance) -> Request | None:
    row = instance.requests.filter(kind="Create", state=RequestState.DELIVERING.value).first()
    return locks.lock_request(row.pk) if row else None


def _applied(claim: ObservedClaim) -> Applied:
    return Applied(claim.uid, claim.generation, claim.resource_version)


def _observed(claim: ObservedClaim) -> dict[str, Any]:
    asked = claim.deletion_requested_at
    return {
        "status": claim.status,
        "generation": claim.generation,
        "resourceVersion": claim.resource_version,
        "deletionRequestedAt": asked.isoformat() if asked else None,
        "finalizers": list(claim.finalizers),
    }


def _composed(each: ComposedObject) -> dict[str, Any]:
    return {
        "apiVersion": each.api_version,
        "kind": each.kind,
        "namespace": each.namespace,
        "name": each.name,
        "ready": each.ready,
        "message": each.message,
        "manifest": each.manifest,
    }
