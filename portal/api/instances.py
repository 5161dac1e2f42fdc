"""Endpoints of instances: what was asked for, and what was observed of it.

In charge of: reading rows and showing them. Not in charge of: what a phase means (domain.claim_status).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.adapters import control_plane
from portal.api import filters, pagination
from portal.api.decision_shapes import moment, money
from portal.api.door import Door
from portal.api.schemas import instances as described
from portal.domain.conditions import time_of
from portal.domain.lifecycle import InstancePhase
from portal.rendering.claim import claim_yaml
from portal.services import access
from portal.services.errors import NotFound
from portal.services.instances import committed_by, endpoint_at

FIELDS = (
    "id",
    "name",
    "team__slug",
    "environment__slug",
    "environment__control_plane",
    "offering",
    "document_id",
    "phase",
    "message",
    "since",
    "spec",
    "observed",
    "observed_at",
    "created_at",
)
FILTERS = (
    filters.slug("team", "team__slug", "Only instances of this team"),
    filters.slug("environment", "environment__slug", "Only instances in this environment"),
    filters.slug("offering", "offering", "Only instances of this offering"),
    filters.choice("phase", "phase", InstancePhase, "Only instances in this phase"),
)
Row = dict[str, Any]


class InstanceList(Door):
    """All instances that one may see, newest first, in short."""

    @extend_schema(**described.LIST, parameters=filters.described(FILTERS, paged=True))
    def get(self, request: HttpRequest) -> Response:
        found = pagination.read_filters(request, FILTERS)
        rows = access.visible_instances(self.actor).filter(**found).values(*FIELDS)
        page = pagination.page(request, rows, pagination.NEWEST_FIRST)
        return Response(page.of(summaries(page.rows)))


class InstanceDetail(Door):
    """One instance with its claim, its status and the objects composed for it."""

    @extend_schema(**described.READ)
    def get(self, request: HttpRequest, instance_id: uuid.UUID) -> Response:
        filters.read(request, ())
        rows = access.visible_instances(self.actor).filter(pk=instance_id).values(*FIELDS, "claim", "composed", "drift")
        row = rows.first()
        if row is None:
            raise NotFound("instance", instance_id)
        return Response({**summaries([row])[0], **_details(row)})


def summaries(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """`rows`: values of FIELDS. One more query, for what they cost."""
    monthly = _monthly([row["id"] for row in rows])
    return [_summary(row, monthly.get(row["id"])) for row in rows]


def _summary(row: Row, monthly: tuple[Decimal, str] | None) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "name": row["name"],
        "team": row["team__slug"],
        "environment": row["environment__slug"],
        "offering": row["offering"],
        "offeringDigest": row["document_id"],
        "phase": row["phase"],
        "message": row["message"],
        "since": moment(row["since"]),
        **_judged(row["observed"]),
        "spec": row["spec"],
        "endpoint": endpoint_at(row["document_id"], row["observed"]),
        "monthly": {"amount": money(monthly[0]), "currency": monthly[1]} if monthly else None,
        "controlPlane": label_of(row["environment__control_plane"]),
        "observedAt": moment(row["observed_at"]),
        "createdAt": moment(row["created_at"]),
        "links": {
            "self": f"{settings.PUBLIC_URL}/api/v1/instances/{row['id']}/",
            "page": f"{settings.PUBLIC_URL}/instances/{row['id']}/",
        },
    }


def _judged(observed: dict[str, Any]) -> dict[str, Any]:
    """What was made of the claim's conditions; nothing before it was seen."""
    return {
        "condition": observed.get("condition"),
        "conditionSince": moment(time_of(observed.get("since"))),
        "advice": observed.get("advice", ""),
        "typicalSeconds": observed.get("typical"),
    }


def _details(row: Row) -> dict[str, Any]:
    return {
        "status": row["observed"].get("status", {}),
        "events": [
            {**each, "lastSeen": moment(time_of(each["lastSeen"]))} for each in row["observed"].get("events", [])
        ],
        "drift": row["drift"],
        "claim": row["claim"],
        "claimYaml": claim_yaml(row["claim"]) if row["claim"] is not None else None,
        "composed": [
            {
                "apiVersion": each["apiVersion"],
                "kind": each["kind"],
                "namespace": each["namespace"],
                "name": each["name"],
                "ready": each["ready"],
                "message": each["message"],
            }
            for each in row["composed"]
        ],
    }


def _monthly(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, tuple[Decimal, str]]:
    """What each commits per month; nothing for one whose price is unknown or that holds nothing any more."""
    return {instance: (row.monthly, row.currency) for instance, row in committed_by(ids).items()}


@lru_cache(maxsize=64)
def label_of(name: str) -> str:
    """What people are told of a control plane: a simulated one says so."""
    try:
        return control_plane(name).label
    except ValueError:
        return name
