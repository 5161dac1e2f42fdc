"""The fleets behind all control planes, for people and machines to look at: kept for a few seconds.

In charge of: asking each control plane at once, within a time, and never failing because one doesn't answer. Not in
charge of: placement, which looks for itself (the composition function), or of what anybody may do with a cluster.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from django.conf import settings
from django.db import connections

from portal.models import Environment
from portal.ports import ControlPlane, FleetCluster, PortError

STATES = ("Ready", "Cordoned", "Unreachable", "Unknown")
KEPT_SECONDS = 5.0
ANSWER_SECONDS = 8.0
ASKED_AT_ONCE = 8

Planes = Callable[[str], ControlPlane]


@dataclass(frozen=True)
class PlaneFleet:
    """A control plane and its workload clusters; `problem` says why they are not known, else it is empty."""

    control_plane: str
    clusters: tuple[FleetCluster, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class Row:
    """A workload cluster, and the control plane that it is behind."""

    control_plane: str
    cluster: FleetCluster


@dataclass(frozen=True)
class Total:
    """One class over all clusters. `free` is what clusters that take something new have left, none below zero."""

    resource: str
    capacity: int
    used: int
    free: int


_kept: dict[str, tuple[float, PlaneFleet]] = {}
_lock = threading.Lock()
_pool = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="fleet")


def fleets(planes: Planes) -> list[PlaneFleet]:
    """The fleet of each control plane that an Environment or the settings name, by name."""
    named = Environment.objects.order_by("control_plane").values_list("control_plane", flat=True).distinct()
    names = sorted({*named, *settings.CONTROL_PLANES} - {""})
    found = _fresh(names)
    missing = [name for name in names if name not in found]
    # What is not in the settings is embedded: in the portal's database, which this thread is connected to already.
    far = [name for name in missing if name in settings.CONTROL_PLANES]
    found |= {name: _ask(name, planes) for name in missing if name not in far}
    found |= {far[0]: _ask(far[0], planes)} if len(far) == 1 else _ask_all(far, planes)
    return [found[name] for name in names]


def rows(found: Iterable[PlaneFleet], state: str = "", resource: str = "") -> list[Row]:
    """The clusters of all control planes in a stable order: those in a state, those that have a class."""
    return [
        Row(fleet.control_plane, cluster)
        for fleet in found
        for cluster in fleet.clusters
        if (not state or cluster.state == state)
        and (not resource or any(pool.resource == resource for pool in cluster.pools))
    ]


def totals(found: Iterable[PlaneFleet]) -> list[Total]:
    """Capacity, use and what is free, by class."""
    sums: dict[str, list[int]] = {}
    for fleet in found:
        for cluster in fleet.clusters:
            for pool in cluster.pools:
                row = sums.setdefault(pool.resource, [0, 0, 0])
                row[0] += pool.capacity
                row[1] += pool.used
                row[2] += max(0, pool.capacity - pool.used) if cluster.state == "Ready" else 0
    return [Total(resource, *row) for resource, row in sorted(sums.items())]


def forget() -> None:
    """Ask all of them the next time."""
    with _lock:
        _kept.clear()


def _fresh(names: list[str]) -> dict[str, PlaneFleet]:
    now = time.monotonic()
    with _lock:
        return {name: _kept[name][1] for name in names if name in _kept and _kept[name][0] > now}


def _ask_all(names: list[str], planes: Planes) -> dict[str, PlaneFleet]:
    """All at once, so that one that is away costs no more than its own time."""
    asked = {name: _pool.submit(_ask_apart, name, planes) for name in names}
    deadline = time.monotonic() + ANSWER_SECONDS
    return {name: _answer(name, answer, max(0.0, deadline - time.monotonic())) for name, answer in asked.items()}


def _answer(name: str, answer: Future[PlaneFleet], seconds: float) -> PlaneFleet:
    try:
        return answer.result(seconds)
    except TimeoutError:
        return PlaneFleet(name, problem=f"it has not answered within {ANSWER_SECONDS:g} s; look again in a moment")


def _ask_apart(name: str, planes: Planes) -> PlaneFleet:
    try:
        return _ask(name, planes)
    finally:
        connections.close_all()  # this thread's own


def _ask(name: str, planes: Planes) -> PlaneFleet:
    try:
        found = PlaneFleet(name, planes(name).fleet())
    except PortError as error:
        found = PlaneFleet(name, problem=error.message)
    except ValueError as error:  # an Environment names what the settings don't know
        found = PlaneFleet(name, problem=str(error))
    with _lock:
        _kept[name] = (time.monotonic() + KEPT_SECONDS, found)
    return found
