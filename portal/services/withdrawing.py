"""Takes a request back before it is delivered: by whose own it is, or an owner of the team."""

from __future__ import annotations

import uuid

from django.db import transaction

from portal.domain.lifecycle import IllegalTransition, Verb
from portal.models import Membership, Request
from portal.services import locks, outbox, transitions
from portal.services.access import Actor, request_for
from portal.services.errors import Conflict, Forbidden


def withdraw(request_id: uuid.UUID, *, acting: Actor) -> Request:
    """End an undelivered request and give back what it held. Raises NotFound, Forbidden, Conflict."""
    acting.needs("request")
    seen = request_for(acting, request_id)
    own = acting.user.pk in {seen.requester_id, seen.made_for_id}
    if not own and not _owns_team(acting, seen):
        raise Forbidden("not-yours", "Only its requester, whom it is for, or an owner of the team can withdraw it.")
    with transaction.atomic():
        locks.lock_team_chain(seen.team)
        request = locks.lock_request(request_id)
        try:
            transitions.move(request, Verb.WITHDRAW, actor=acting.user)
        except IllegalTransition as error:
            way_out = " Ask for its deletion instead." if request.kind == "Create" else ""
            raise Conflict("too-late", f"{error}.{way_out}") from None
        if request.instance is not None:
            outbox.cancel(transitions.delivery_lane(request.instance), topics=[_topic(request)], request=request.pk)
    return request


def _topic(request: Request) -> str:
    return "delete" if request.kind == "Delete" else "apply"


def _owns_team(acting: Actor, request: Request) -> bool:
    chain = locks.team_chain(request.team)
    owner = Membership.Role.OWNER
    return Membership.objects.filter(user=acting.user, team__in=chain, role=owner).exists()
