"""The page Fleet: the workload clusters behind all control planes, with what they have, what is taken and what is free.

Not in charge of: asking control planes (services.fleet). Everybody who may sign in sees it: it names no team.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from portal.adapters import control_plane
from portal.ports import FleetPool
from portal.services import fleet
from portal.services.access import Actor
from portal.web.doors import page, show
from portal.web.figures import BAR, Bar
from portal.web.paging import choice, page_of

SIZE = 20
MARKS = {"Ready": "ok", "Unreachable": "no", "Cordoned": "", "Unknown": ""}


@dataclass(frozen=True)
class ClusterRow:
    """A cluster as the template shows it."""

    row: fleet.Row
    mark: str
    bars: list[Bar]


@page("GET")
def clusters(request: HttpRequest, acting: Actor) -> HttpResponse:
    """Totals by class first, then cluster by cluster."""
    found = fleet.fleets(control_plane)
    totals = fleet.totals(found)
    resources = [total.resource for total in totals]
    state, resource = choice(request, "state", fleet.STATES), choice(request, "resource", resources)
    shown = page_of(request, fleet.rows(found, state, resource), SIZE)
    context = {
        "totals": totals,
        "problems": [each for each in found if each.problem],
        "several": len(found) > 1,
        "page": shown,
        "rows": [_row(row) for row in shown.rows],
        "states": fleet.STATES,
        "resources": resources,
    }
    return show(request, acting, "fleet", context)


def _row(row: fleet.Row) -> ClusterRow:
    return ClusterRow(row, MARKS.get(row.cluster.state, ""), [_bar(pool) for pool in row.cluster.pools])


def _bar(pool: FleetPool) -> Bar:
    """Use of capacity; more than all of it where capacity was taken away under what runs."""
    unit = " GiB" if pool.resource == "memory_gib" else ""
    free = pool.capacity - pool.used
    note = f"{free}{unit} free" if free >= 0 else f"{-free}{unit} more than it has"
    taken = BAR * min(1.0, pool.used / pool.capacity) if pool.capacity > 0 else BAR * (pool.used > 0)
    label = pool.name if pool.name == pool.resource else f"{pool.name} ({pool.resource})"
    return Bar(label, "", f"{pool.used} of {pool.capacity}{unit}", free >= 0, taken, 0.0, None, note)
