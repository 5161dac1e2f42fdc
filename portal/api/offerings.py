"""Endpoints of offerings: what can be asked for, and the schema that a spec must fit."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters, pagination
from portal.api.door import Door
from portal.api.schemas import offerings as described
from portal.domain.offerings import Offering
from portal.models import ActiveDocument, Document
from portal.services import loading


class OfferingList(Door):
    """The active offerings, by name."""

    @extend_schema(**described.LIST, parameters=filters.described((), paged=True))
    def get(self, request: HttpRequest) -> Response:
        pagination.read_filters(request, ())
        active = ActiveDocument.objects.filter(kind=Document.Kind.OFFERING)
        page = pagination.page(request, active.values("name", "document_id"), pagination.BY_NAME)
        return Response(page.of([_offering(loading.offering_by_digest(row["document_id"])) for row in page.rows]))


class OfferingDetail(Door):
    @extend_schema(**described.READ)
    def get(self, request: HttpRequest, name: str) -> Response:
        filters.read(request, ())
        return Response(_offering(loading.active_offering(name)[0]))


def _offering(offering: Offering) -> dict[str, Any]:
    deprecation = offering.deprecation
    return {
        "name": offering.name,
        "title": offering.title,
        "description": offering.description,
        "owner": offering.owner,
        "kind": offering.kind,
        "apiVersion": offering.api_version,
        "digest": offering.digest,
        "schema": offering.spec_schema,
        "catalog": {
            "kind": offering.catalog.kind,
            "type": offering.catalog.type,
            "lifecycle": offering.catalog.lifecycle,
            "api": offering.catalog.api,
        },
        "deprecation": {"message": deprecation.message, "after": deprecation.after.isoformat()}
        if deprecation
        else None,
    }
