"""The first page: what is open, and what one's teams have."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpRequest, HttpResponse

from portal.domain.lifecycle import InstancePhase
from portal.models import OPEN_STATES, Instance
from portal.services.access import Actor, own_team_ids, visible_requests
from portal.web.doors import page, show
from portal.web.lists import request_rows
from portal.web.paging import page_of

SHOWN = 10


@page("GET")
def home(request: HttpRequest, acting: Actor) -> HttpResponse:
    teams = own_team_ids(acting)
    mine = Q(requester=acting.user) | Q(made_for=acting.user) | Q(team__in=teams)
    requests = visible_requests(acting).filter(mine, state__in=OPEN_STATES)
    requests = requests.select_related("team", "environment", "requester").order_by("-created_at", "-id")
    instances = Instance.objects.filter(team__in=teams).exclude(phase=InstancePhase.GONE.value)
    instances = instances.select_related("team", "environment").order_by("team__slug", "name")
    open_requests = page_of(request, requests, SHOWN, "requests")
    return show(
        request,
        acting,
        "home",
        {
            "requests": open_requests,
            "rows": request_rows(open_requests.rows),
            "instances": page_of(request, instances, SHOWN, "instances"),
            "in_a_team": bool(teams),
        },
    )
