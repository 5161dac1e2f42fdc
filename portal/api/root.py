"""Where everything is: the first address that a client needs, and the only one."""

from __future__ import annotations

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters
from portal.api.door import Door
from portal.api.schemas import root as described

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
                "links": {name: f"{settings.PUBLIC_URL}/api/v1/{name}/" for name in LISTS},
            }
        )
