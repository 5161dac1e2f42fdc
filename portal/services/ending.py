"""What follows when the claim of an instance is not there: everything is given back, and what waited for it ends.

In charge of: that one step. Not in charge of: finding out that it is not there (observing, delivering).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.db.models import Q
from django.utils import timezone

from portal.domain.conditions import time_of
from portal.domain.decision import CHANGES
from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import Instance, Request
from portal.services import holding, journal, locks, transitions

OPEN = [RequestState.APPROVED.value, RequestState.DELIVERING.value]
_SENT = [RequestState.DELIVERING.value, RequestState.DONE.value, RequestState.FAILED.value]


def lock_open_requests(instance: Instance) -> list[Request]:
    """The requests of an instance that end with it, locked; after its team chain, before itself: the approved ones that
    have not ended, and changes of it that wait."""
    waiting = Q(kind__in=CHANGES, state=RequestState.WAITING.value)
    ids = instance.requests.filter(Q(state__in=OPEN) | waiting).order_by("id").values_list("id", flat=True)
    return [locks.lock_request(pk) for pk in ids]


def deletion_was_asked(instance: Instance) -> bool:
    """Whether the portal may have asked the control plane to delete its claim."""
    return instance.requests.filter(kind="Delete", state__in=_SENT).exists()


def end(instance: Instance, waiting: Sequence[Request], *, system: str) -> None:
    """Its claim is not there (any more): it is Gone and holds nothing. `waiting`: its open requests.

    Locks of the team chain, the requests and the instance are the caller's.
    """
    ours = any(request.kind == "Delete" for request in waiting) or deletion_was_asked(instance)
    message = "Deleted." if ours else _deleted_by_others(instance, system)
    holding.release(instance)
    transitions.set_phase(instance, InstancePhase.GONE, message)
    for request in waiting:
        if request.state != RequestState.DELIVERING:
            if request.kind in CHANGES:
                request.failure_code, request.failure_message = "instance-gone", message
                transitions.move(request, Verb.EXPIRE, system=system, data={"code": "instance-gone"})
            continue
        if request.kind == "Delete":
            transitions.move(request, Verb.FINISH, system=system)
        else:
            request.failure_code, request.failure_message = "deleted-before-ready", message
            transitions.move(request, Verb.FAIL, system=system, data={"code": "deleted-before-ready"})


def _deleted_by_others(instance: Instance, system: str) -> str:
    """What people are told of it. Kubernetes keeps no record of who asks for a deletion, only of when."""
    asked = time_of(instance.observed.get("deletionRequestedAt"))
    at = asked or timezone.now()
    when = f"at {at.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
    claim = instance.claim or {}
    name = f"{claim.get('kind', 'claim')} {instance.namespace}/{claim.get('metadata', {}).get('name', instance.name)}"
    data = {"claim": name, "uid": instance.claim_uid, "at": at.isoformat(), "noticedOnly": asked is None}
    journal.record("claim.deleted_by_others", system=system, instance=instance, data=data)
    noticed = "" if asked else ", or shortly before"
    return (
        f"{name} was deleted by somebody other than the portal {when}{noticed}. What it held of quota and budget is "
        "given back; request it anew if it is wanted."
    )
