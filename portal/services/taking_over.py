"""A change of a field that somebody else has set too, to what was approved: it becomes the portal's.

Once others' values were approved (drifting asked, and people said yes), the field is theirs and the portal's, and
server-side apply lets neither change it. What is live is what was approved last: nobody's value is lost by taking the
field over, which is audited. Anything else stays a conflict, for people to sort out.

Not in charge of: taking back what was not approved (drifting, reapplying).
"""

from __future__ import annotations

import uuid
from typing import Any

from django.db import transaction

from portal.domain.drift import drift_of
from portal.models import Request
from portal.ports import Applied, ClaimRef, ControlPlane, TerminalError
from portal.rendering.claim import machinery_of
from portal.services import journal, loading

SYSTEM = "delivering"


def apply(plane: ControlPlane, request_id: uuid.UUID, ref: ClaimRef, claim: dict[str, Any]) -> Applied:
    """Apply the claim of a request. Raises what the port raises; `field-conflict` only where what is live was not
    approved."""
    try:
        return plane.apply(claim)
    except TerminalError as error:
        if error.code != "field-conflict":
            raise
        request = Request.objects.get(pk=request_id)  # now that its inputs are frozen
        if not _is_as_approved(plane, request, ref):
            raise
        conflict = error.message
    with transaction.atomic():
        journal.record("drift.take_over", system=SYSTEM, request=request, data={"conflict": conflict[:2000]})
    return plane.apply(claim, force=True)


def _is_as_approved(plane: ControlPlane, request: Request, ref: ClaimRef) -> bool:
    """Whether the live claim has, in every field, what was approved before this request."""
    before = request.replaces or {}
    live = plane.get(ref) if before.get("claim") else None
    if live is None:
        return False
    approved = before["claim"]["spec"]
    machinery = machinery_of(approved) | machinery_of(live.spec)
    # Without managers every difference counts, whoever made it.
    return not drift_of(approved, live.spec, (), loading.offering_by_digest(before["document"]), machinery)
