"""The workload clusters behind a control plane, with capacity and use.

Not in charge of: claims (observe).
"""

from __future__ import annotations

from portal.adapters.kubernetes.client import Client
from portal.ports import FleetCluster


def read_fleet(client: Client) -> tuple[FleetCluster, ...]:
    """See ports.Observe.fleet."""
    raise NotImplementedError
