"""What others have set in an instance's claim, and the two things that its team may do about it: take it back, or ask
for it. Not in charge of: what the portal does about it by itself (services.drifting)."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.domain.draft import MAX_REASON
from portal.domain.lifecycle import InstancePhase
from portal.models import Instance
from portal.services import drifting
from portal.services.access import Actor, instance_for, own_team_ids
from portal.services.errors import ServiceError
from portal.web import status
from portal.web.doors import page, show, status_of


@page("GET", "POST")
def drift(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponseBase:
    """Asks back first; a press answers 303, or this page again with what is wrong."""
    found = instance_for(acting, instance_id)
    context = {"instance": found, "may_govern": may_govern(found, acting), **status.shown(found)}
    if request.method != "POST":
        return show(request, acting, "drift", context)
    try:
        if request.POST.get("answer") == "ask":
            reason = request.POST.get("reason", "").strip()[:MAX_REASON]
            asked = drifting.ask_for(found.pk, reason, acting=acting)
            messages.info(request, "Asked for what others have set.")
            return redirect("request", request_id=asked.pk)
        drifting.take_back(found.pk, acting=acting)
    except ServiceError as error:
        return show(request, acting, "drift", {**context, "refused": error.message}, status_of(error))
    messages.info(request, "What was approved is applied again.")
    return redirect("instance", instance_id=found.pk)


def may_govern(found: Instance, acting: Actor) -> bool:
    """Whether the buttons are shown; services decide."""
    going = {InstancePhase.GONE.value, InstancePhase.DELETING.value}
    mine = acting.is_admin or found.team_id in own_team_ids(acting)
    return mine and bool(found.drift) and found.phase not in going
