"""Suspended claims: what was composed for them is stopped, and nothing else of it changes.

Everything stays as it was composed, whatever the rest of the claim's spec says by now: stopping must not depend on a
class, a region or a cluster that went away meanwhile. In charge of the conditions and the status meanwhile; not of
resuming, which is placing and composing as ever (``workloads``), nor of how each kind is stopped (its own module).
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

from composition_function import objects
from composition_function.contract import (
    TTL_PENDING,
    TTL_SETTLED,
    Composed,
    Condition,
    Manifest,
    Outcome,
    Request,
    at,
)
from composition_function.slots import Slot

NOT_SUSPENDED = Condition("Suspended", False, "NotSuspended")


@dataclass(frozen=True)
class Stopping:
    """How a kind is stopped. ``stop`` changes the manifest of a workload, by the key of its Object; ``still_runs`` says
    of the main workload, as it is on its cluster, why it is not at zero yet; ``stopped_when`` is the same in CEL."""

    stop: dict[str, Callable[[Manifest], None]]
    still_runs: Callable[[Manifest], str | None]
    stopped_when: str
    is_stopped: Callable[[Manifest], bool]  # whether a manifest, as composed, asks for zero
    keeps_slot: bool  # data that stays keeps its place; what has none gives it to others


def compose(request: Request, main: str, stopping: Stopping, status: Manifest) -> Outcome:
    """The outcome for a claim that is to be suspended. ``status`` is what its kind observed of it."""
    observed = request.observed.get(main)
    slot = objects.slot_of(observed)
    if observed is None or slot is None:
        return _nothing_composed(request)
    resources = {key: Composed(_stopped(key, item, main, stopping)) for key, item in request.observed.items()}
    running = objects.applied(observed, resources[main].manifest) or stopping.still_runs(objects.workload(observed))
    for composed in resources.values():
        composed.ready = running is None
    # An operator may leave the old address in its status.
    kept = {key: value for key, value in status.items() if key != "endpoint"}
    kept["placement"] = _placement(request.composite, slot)
    outcome = Outcome(ready=running is None, resources=resources, status=kept)
    outcome.ttl = TTL_PENDING if running else TTL_SETTLED
    outcome.conditions = _conditions(slot, running, stopping.keeps_slot)
    if "replicas" in kept:
        _tell_replicas(kept, running)
    return outcome


def _nothing_composed(request: Request) -> Outcome:
    """It runs nowhere, so it is at zero already. A slot that it only reserved is free again."""
    why = "nothing was composed before it was suspended"
    # Resources without the main one are what a move leaves behind for a moment.
    resources = {key: Composed(objects.as_it_was(item), ready=True) for key, item in request.observed.items()}
    return Outcome(
        ready=True,
        resources=resources,
        conditions=[
            Condition("Placed", True, "Suspended", "takes nothing while it is suspended"),
            Condition("WorkloadReady", True, "Suspended", why),
            Condition("Suspended", True, "Suspended", why),
        ],
    )


def _stopped(key: str, observed: Manifest, main: str, stopping: Stopping) -> Manifest:
    """An observed resource as it was, but stopped if it is one of those that can be."""
    kept = objects.as_it_was(observed)
    stop = stopping.stop.get(key)
    if stop is None:
        return kept
    kept = copy.deepcopy(kept)
    stop(kept["spec"]["forProvider"]["manifest"])
    if key == main:
        kept["spec"]["readiness"] = {"policy": "DeriveFromCelQuery", "celQuery": stopping.stopped_when}
        if not stopping.keeps_slot:
            kept["metadata"]["annotations"] = {objects.UNITS_ANNOTATION: "0"}
    return kept


def _placement(composite: Manifest, slot: Slot) -> Manifest:
    """Where it is, or is looked for first when it is resumed."""
    before: Manifest = at(composite, "status", "placement", default={})
    where = {"cluster": slot.cluster, "pool": slot.pool}
    return before if where.items() <= before.items() else {**where, "reasons": []}


def _conditions(slot: Slot, running: str | None, keeps_slot: bool) -> list[Condition]:
    where = f"{slot.cluster}/{slot.pool}"
    if running is not None:
        return [
            Condition("Placed", True, "Placed", f"is being stopped in {where}"),
            Condition("WorkloadReady", False, "Stopping", running),
            Condition("Suspended", False, "Stopping", running),
        ]
    if keeps_slot:
        placed = f"keeps {where} while it is suspended"
        what = "nothing runs; its data and its place are kept"
    else:
        placed = f"holds nothing while it is suspended; when it is resumed, {where} is tried first"
        what = "nothing runs; its accelerators are free for others"
    return [
        Condition("Placed", True, "Suspended", placed),
        Condition("WorkloadReady", True, "Suspended", what),
        Condition("Suspended", True, "Suspended", what),
    ]


def _tell_replicas(status: Manifest, running: str | None) -> None:
    """Replicas are in the status as long as accelerators are held: others read that from it."""
    if running is None:
        del status["replicas"]
    else:
        status["replicas"] = {**status["replicas"], "total": 0}


def suspended_as_composed(request: Request, main: str, stopping: Stopping) -> bool:
    """Whether what was composed last asks for zero, whatever the claim asks for now."""
    observed = request.observed.get(main)
    return observed is not None and stopping.is_stopped(at(observed, "spec", "forProvider", "manifest", default={}))
