"""Writes governed values (quotas) once their request was approved, in the transaction of the approval."""

from __future__ import annotations

from portal.domain.lifecycle import Verb
from portal.models import Request
from portal.services import holding, journal, transitions


def write_quota(request: Request) -> None:
    """Write the limit that was approved; deciding has made sure that it covers what is held. Locks are the caller's."""
    transitions.move(request, Verb.DELIVER, system="governing")
    dimension, limit = request.spec["dimension"], request.spec["limit"]
    _, before = holding.set_quota(request.team, dimension, limit)
    journal.record(
        "quota.set",
        system="governing",
        request=request,
        data={"team": request.team.slug, "dimension": dimension, "before": before, "limit": limit},
    )
    transitions.move(request, Verb.FINISH, system="governing")
