"""The fleet: workload clusters behind all control planes, with capacity and use. Read only.

Not in charge of: asking control planes (services.fleet). It names no team: every token that may read sees it.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.adapters import control_plane
from portal.api import filters, pagination
from portal.api.decision_shapes import moment
from portal.api.door import Door
from portal.api.schemas import fleet as described
from portal.services import fleet

FILTERS = (
    filters.choice("state", "state", fleet.STATES, "Only clusters in this state"),
    filters.pattern(
        "resource",
        "resource",
        r"[a-z0-9][a-z0-9_.-]{0,62}",
        "the name of an accelerator class, or memory_gib",
        "Only clusters that have this class",
    ),
)


class FleetList(Door):
    """Workload clusters by control plane and name; `problems` names control planes that could not be asked."""

    @extend_schema(**described.LIST, parameters=filters.described(FILTERS, paged=True))
    def get(self, request: HttpRequest) -> Response:
        found = pagination.read_filters(request, FILTERS)
        known = fleet.fleets(control_plane)
        rows = fleet.rows(known, found.get("state", ""), found.get("resource", ""))
        page = pagination.page_of_list(request, rows, lambda row: [row.control_plane, row.cluster.name])
        problems = [{"controlPlane": each.control_plane, "message": each.problem} for each in known if each.problem]
        totals = [_total(total) for total in fleet.totals(known)]
        return Response({**page.of([_cluster(row) for row in page.rows]), "totals": totals, "problems": problems})


def _total(total: fleet.Total) -> dict[str, Any]:
    return {"resource": total.resource, "capacity": total.capacity, "used": total.used, "free": total.free}


def _cluster(row: fleet.Row) -> dict[str, Any]:
    cluster = row.cluster
    return {
        "controlPlane": row.control_plane,
        "name": cluster.name,
        "region": cluster.region,
        "state": cluster.state,
        "since": moment(cluster.since) if cluster.since else None,
        "message": cluster.message,
        "pools": [
            {
                "name": pool.name,
                "resource": pool.resource,
                "capacity": pool.capacity,
                "used": pool.used,
                "free": pool.capacity - pool.used,
            }
            for pool in cluster.pools
        ],
    }
