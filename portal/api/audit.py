"""The audit log, and the timeline of a request: append-only, read by number."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters, pagination
from portal.api.decision_shapes import moment
from portal.api.door import Door
from portal.api.schemas import governed as described
from portal.models import AuditEvent
from portal.services import access

FIELDS = ("id", "at", "verb", "actor__username", "system", "team__slug", "request_id", "instance_id", "data")
FILTERS = (
    filters.pattern("verb", "verb", r"[a-z0-9_.-]{1,63}", "a verb as request.approve", "Only steps of this verb"),
    filters.identifier("request", "request", "Only steps of this request"),
    filters.identifier("instance", "instance", "Only steps of this instance"),
    filters.slug("team", "team__slug", "Only steps of this team"),
)


class AuditLog(Door):
    """What happened, newest first."""

    @extend_schema(**described.AUDIT, parameters=filters.described(FILTERS, paged=True))
    def get(self, request: HttpRequest) -> Response:
        found = pagination.read_filters(request, FILTERS)
        rows = access.visible_audit(self.actor).filter(**found)
        return Response(events(request, rows, pagination.BY_NUMBER_LAST_FIRST))


def events(request: HttpRequest, rows: QuerySet[AuditEvent], order: pagination.Order) -> dict[str, Any]:
    """A page of events."""
    # The relations of objects are not those of plain values: select_related is the caller's and is dropped here.
    page = pagination.page(request, rows.select_related(None).values(*FIELDS), order)
    return page.of([_event(row) for row in page.rows])


def _event(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": row["id"],
        "at": moment(row["at"]),
        "verb": row["verb"],
        "actor": row["actor__username"],
        "system": row["system"],
        "team": row["team__slug"],
        "request": str(row["request_id"]) if row["request_id"] else None,
        "instance": str(row["instance_id"]) if row["instance_id"] else None,
        "data": row["data"],
    }
