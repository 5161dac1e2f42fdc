"""Endpoints about what others have set in an instance's claim: take it back, or ask for it.

Not in charge of: showing it (instances), or when the portal does either by itself (services.drifting).
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import parsing
from portal.api.door import Door
from portal.api.schemas import drift as described
from portal.domain.draft import MAX_REASON
from portal.domain.schema import Problem
from portal.services import drifting
from portal.services.errors import InvalidInput


class InstanceTakeBack(Door):
    """What was approved is applied again, by force, at the next chance; who had set what is audited."""

    @extend_schema(**described.TAKE_BACK)
    def post(self, request: HttpRequest, instance_id: uuid.UUID) -> Response:
        parsing.object_of(request.data, set())
        instance = drifting.take_back(instance_id, acting=self.actor)
        links = _links("instances", instance.pk)
        return Response({"instance": str(instance.pk), "fields": instance.drift, "links": links})


class InstanceAskForDrift(Door):
    """A change request for the values that are live, in one's own name."""

    @extend_schema(**described.ASK)
    def post(self, request: HttpRequest, instance_id: uuid.UUID) -> Response:
        asked = drifting.ask_for(instance_id, _reason(request.data), acting=self.actor)
        links = _links("requests", asked.pk)
        return Response({"request": str(asked.pk), "state": asked.state, "links": links})


def _reason(body: Any) -> str:
    reason = parsing.object_of(body, {"reason"}).get("reason", "")
    if not isinstance(reason, str):
        raise InvalidInput([Problem("/reason", "wrong-type", "a string")])
    if len(reason) > MAX_REASON:
        raise InvalidInput([Problem("/reason", "too-long", f"{len(reason)} characters; at most {MAX_REASON}")])
    return reason


def _links(what: str, key: uuid.UUID) -> dict[str, str]:
    base = settings.PUBLIC_URL
    return {"self": f"{base}/api/v1/{what}/{key}/", "page": f"{base}/{what}/{key}/"}
