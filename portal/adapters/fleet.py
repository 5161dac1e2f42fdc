"""An InferenceCluster's manifest -> ports.FleetCluster; what both control planes that have one read.

Not in charge of: fetching them. Units and states are the composition function's (crossplane/apis/inferenceclusters).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from portal.ports import FleetCluster, FleetPool

API_VERSION, KIND, PLURAL = "aiplatform.example.org/v1alpha1", "InferenceCluster", "inferenceclusters"


def fleet_cluster(manifest: Mapping[str, Any]) -> FleetCluster:
    """A workload cluster as its control plane last saw it. What a status lacks or has malformed is not known."""
    spec, status = _dict(manifest.get("spec")), _dict(manifest.get("status"))
    conditions = {str(each.get("type")): each for each in status.get("conditions") or () if isinstance(each, dict)}
    state, condition = _state(spec, status, conditions)
    pools = [_pool(each) for each in status.get("pools") or () if isinstance(each, dict)]
    return FleetCluster(
        name=str(_dict(manifest.get("metadata")).get("name", "")),
        region=str(spec.get("region", "")),
        state=state,
        message=_message(state, condition, conditions),
        since=_time(condition.get("lastTransitionTime")),
        pools=tuple(pools),
    )


def _state(
    spec: Mapping[str, Any], status: Mapping[str, Any], conditions: Mapping[str, Mapping[str, Any]]
) -> tuple[str, Mapping[str, Any]]:
    """The state, and the condition whose time of transition it dates from. Unreachable outweighs cordoned."""
    reachable = conditions.get("Reachable", {})
    if status.get("reachable") is False:
        return "Unreachable", reachable
    if spec.get("cordoned") is True:
        return "Cordoned", conditions.get("Schedulable", {})
    if status.get("reachable") is not True or "pools" not in status:
        return "Unknown", conditions.get("NodesCounted", reachable)
    return "Ready", reachable


def _message(state: str, condition: Mapping[str, Any], conditions: Mapping[str, Mapping[str, Any]]) -> str:
    """The condition's own words; a cluster that is fine may still have nodes that don't count."""
    said = condition if state != "Ready" else conditions.get("NodesCounted", {})
    return str(said.get("message") or ("" if state == "Ready" else "nothing was reported yet"))


def _pool(pool: Mapping[str, Any]) -> FleetPool:
    return FleetPool(
        name=str(pool.get("name", "")),
        resource=str(pool.get("resource", "")),
        capacity=_whole(pool.get("capacity")),
        used=_whole(pool.get("used")),
    )


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _time(value: object) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(str(value))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None
