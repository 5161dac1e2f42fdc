"""The fleet in the OpenAPI document."""

from __future__ import annotations

from portal.api.schemas import examples
from portal.api.schemas.common import example, number, operation, shape, text, time, url
from portal.services.fleet import STATES

_FREE = "Left for others; below zero if capacity was taken away under what runs"
Pool = shape(
    "FleetPool",
    name=text(),
    resource=text(help_text="An accelerator class, or memory_gib"),
    capacity=number(help_text="Counted from nodes that would take a pod"),
    used=number(help_text="Held by claims at their maximum"),
    free=number(help_text=_FREE),
)
Cluster = shape(
    "FleetCluster",
    controlPlane=text(),
    name=text(),
    region=text(),
    state=text(choices=STATES),
    since=time(null=True),
    message=text(),
    pools=Pool(many=True),
)
Total = shape(
    "FleetTotal",
    resource=text(),
    capacity=number(),
    used=number(),
    free=number(help_text="Of clusters that take something new"),
)
Problem = shape("FleetProblem", controlPlane=text(), message=text())
FleetPage = shape(
    "FleetPage",
    items=Cluster(many=True),
    next=url(null=True),
    previous=url(null=True),
    totals=Total(many=True, help_text="By class, over all clusters"),
    problems=Problem(many=True, help_text="Control planes that could not be asked, and why"),
)
LIST = operation("listFleet", "List workload clusters", "fleet", FleetPage, [example("fleet", examples.FLEET)])
