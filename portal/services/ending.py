"""What follows when the claim of an instance is not there: everything is given back, and what waited for it ends.

In charge of: that one step. Not in charge of: finding out that it is not there (observing, delivering).
"""

from __future__ import annotations

from collections.abc import Sequence

from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import Instance, Request
from portal.services import holding, locks, transitions

OPEN = [RequestState.APPROVED.value, RequestState.DELIVERING.value]


def lock_open_requests(instance: Instance) -> list[Request]:
    """The approved requests of an instance that have not ended, locked; after its team chain, before itself."""
    ids = instance.requests.filter(state__in=OPEN).order_by("id").values_list("id", flat=True)
    return [locks.lock_request(pk) for pk in ids]


def end(instance: Instance, waiting: Sequence[Request], *, system: str) -> None:
    """Its claim is not there (any more): it is Gone and holds nothing. `waiting`: its open requests.

    Locks of the team chain, the requests and the instance are the caller's.
    """
    deletions = [request for request in waiting if request.kind == "Delete"]
    message = "Deleted." if deletions else "The claim was deleted by somebody other than the portal."
    holding.release(instance)
    transitions.set_phase(instance, InstancePhase.GONE, message)
    for request in waiting:
        if request.state != RequestState.DELIVERING:
            continue
        if request.kind == "Delete":
            transitions.move(request, Verb.FINISH, system=system)
        else:
            request.failure_code, request.failure_message = "deleted-before-ready", message
            transitions.move(request, Verb.FAIL, system=system, data={"code": "deleted-before-ready"})
