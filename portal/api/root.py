"""Where everything is: the first address that a client needs, and the only one."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters
from portal.api.door import Door
from portal.api.schemas import root as described
from portal.models import Membership
from portal.services import identities

ME = "me"
LISTS = (
    "requests",
    "instances",
    "offerings",
    "teams",
    "quotas",
    "budgets",
    "prices",
    "environments",
    "fleet",
    "audit",
    "catalog/entities",
    "catalog/changes",
    "schema",
    "docs",
)


class Root(Door):
    """Links to every list, and who is asking."""

    @extend_schema(**described.ROOT)
    def get(self, request: HttpRequest) -> Response:
        filters.read(request, ())
        scopes = self.actor.scopes
        return Response(
            {
                "version": "v1",
                "you": {
                    "username": self.actor.user.username,
                    "groups": self.actor.groups(),
                    "scopes": sorted(scopes) if scopes is not None else None,
                },
                "links": {name: f"{settings.PUBLIC_URL}/api/v1/{name}/" for name in (ME, *LISTS)},
            }
        )


class Me(Door):
    """Who is asking, whatever token they came with."""

    reading = ""  # a service learns its own name too

    @extend_schema(**described.ME)
    def get(self, request: HttpRequest) -> Response:
        filters.read(request, ())
        actor = self.actor
        rows = Membership.objects.filter(user=actor.user).order_by("team__slug").values("team__slug", "role")
        return Response(
            {
                "username": actor.user.username,
                "ref": identities.ref_of(actor.user),
                "teams": [{"slug": row["team__slug"], "role": row["role"]} for row in rows],
                "groups": actor.groups(),
                "scopes": sorted(actor.scopes) if actor.scopes is not None else None,
            }
        )
