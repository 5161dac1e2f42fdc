"""The workload clusters that the embedded control plane plays.

Not in charge of: what a cluster's status means (adapters.fleet), or who writes it (the function; nodes).
"""

from __future__ import annotations

from portal.adapters.embedded import store
from portal.adapters.embedded.manifests import manifest_of
from portal.adapters.embedded.names import GroupKind, split_api_version
from portal.adapters.fleet import API_VERSION, KIND, fleet_cluster
from portal.ports import FleetCluster


def read_fleet() -> tuple[FleetCluster, ...]:
    """See ports.Observe.fleet."""
    with store.reading():
        rows = list(store.of_kind(GroupKind(split_api_version(API_VERSION)[0], KIND)).order_by("name"))
    return tuple(fleet_cluster(manifest_of(row)) for row in rows)
