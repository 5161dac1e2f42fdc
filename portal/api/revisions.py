"""What an instance was asked to be, one revision after the other.

In charge of: showing them. Not in charge of: which requests are revisions (services.revisions). To have one again, a
Change with its spec is submitted.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters, pagination
from portal.api.decision_shapes import moment, money
from portal.api.door import Door
from portal.api.schemas import instances as described
from portal.services import access
from portal.services.changing import request_of
from portal.services.revisions import revisions

FIELDS = (
    "number",
    "id",
    "kind",
    "state",
    "spec",
    "document_id",
    "composition_revision",
    "requester__username",
    "reason",
    "quote_monthly",
    "quote_currency",
    "applied_at",
    "generation",
)
NEWEST_FIRST = pagination.Order((("number", pagination.whole),), descending=True)
Row = dict[str, Any]


class InstanceRevisions(Door):
    """The requests that its control plane has had, newest first."""

    @extend_schema(**described.REVISIONS, parameters=filters.described((), paged=True))
    def get(self, request: HttpRequest, instance_id: uuid.UUID) -> Response:
        pagination.read_filters(request, ())
        instance = access.instance_for(self.actor, instance_id)
        page = pagination.page(request, revisions(instance).values(*FIELDS), NEWEST_FIRST)
        current = request_of(instance.claim)
        return Response(page.of([_revision(row, row["id"] == current) for row in page.rows]))


def _revision(row: Row, current: bool) -> Row:
    monthly = money(row["quote_monthly"])
    return {
        "number": row["number"],
        "request": str(row["id"]),
        "kind": row["kind"],
        "state": row["state"],
        "current": current,
        "spec": row["spec"],
        "offeringDigest": row["document_id"],
        "compositionRevision": row["composition_revision"],
        "requester": row["requester__username"],
        "reason": row["reason"],
        "monthly": {"amount": monthly, "currency": row["quote_currency"]} if monthly is not None else None,
        "appliedAt": moment(row["applied_at"]),
        "generation": row["generation"],
        "links": {"request": f"{settings.PUBLIC_URL}/api/v1/requests/{row['id']}/"},
    }
