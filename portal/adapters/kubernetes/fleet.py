"""The workload clusters behind a control plane, with capacity and use.

Not in charge of: claims (observe), or what a cluster's status means (adapters.fleet).
"""

from __future__ import annotations

from portal.adapters.fleet import API_VERSION, KIND, PLURAL, fleet_cluster
from portal.adapters.kubernetes import paths
from portal.adapters.kubernetes.client import Client
from portal.adapters.kubernetes.paging import every_item
from portal.adapters.kubernetes.refusals import Action
from portal.ports import FleetCluster, RetryableError


def read_fleet(client: Client) -> tuple[FleetCluster, ...]:
    """See ports.Observe.fleet. None where the kind is not installed: such a control plane has no fleet."""
    action = Action(client.plane, "list", f"{KIND}s", "")
    try:
        items = every_item(client, action, paths.of_kind(API_VERSION, PLURAL), {})
    except RetryableError as error:
        if error.code != "offering-not-installed":
            raise
        items = []
    return tuple(sorted(map(fleet_cluster, items), key=lambda cluster: cluster.name))
