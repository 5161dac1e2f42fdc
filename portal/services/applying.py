"""What follows when a control plane has taken a claim: that it did is noted once, and what was reserved is used.

Not in charge of: sending it (delivering), or what is observed of it afterwards (observing, changing).
"""

from __future__ import annotations

from django.utils import timezone

from portal.domain.lifecycle import InstancePhase
from portal.models import Instance, Request
from portal.ports import Applied
from portal.services import holding, journal, transitions


def mark_applied(request: Request, instance: Instance, applied: Applied, *, system: str = "delivering") -> bool:
    """The claim is there as this request wants it: from here on the request is a revision of its instance. True the
    first time only. Under the locks of team chain, request and instance."""
    if request.applied_at is not None:
        return False
    request.applied_at, request.generation = timezone.now(), applied.generation
    request.save(update_fields=["applied_at", "generation"])
    if instance.claim_uid != applied.uid:
        instance.claim_uid = applied.uid
        instance.save(update_fields=["claim_uid"])
    holding.use(request)
    journal.record(
        "claim.apply",
        system=system,
        request=request,
        data={
            "uid": applied.uid,
            "namespace": instance.namespace,
            "name": instance.name,
            "generation": applied.generation,
        },
    )
    if instance.phase == InstancePhase.PENDING:
        transitions.set_phase(instance, InstancePhase.PROVISIONING, "The claim was applied; nothing is reported yet.")
    return True
