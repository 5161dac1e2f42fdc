"""Status conditions as Crossplane keeps them: one of each type, with the time its status last changed."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal, NamedTuple

from portal.adapters.embedded.manifests import timestamp

Truth = Literal["True", "False", "Unknown"]


class Condition(NamedTuple):
    """What is said of one aspect. `generation` is the metadata.generation it is about; None: not said."""

    type: str
    status: Truth
    reason: str
    message: str = ""
    generation: int | None = None


def available(generation: int) -> Condition:
    """Everything composed is ready."""
    return Condition("Ready", "True", "Available", "", generation)


def creating(generation: int, message: str) -> Condition:
    """Not ready yet, or not any more."""
    return Condition("Ready", "False", "Creating", message, generation)


def deleting(generation: int) -> Condition:
    """Deletion was asked for."""
    return Condition("Ready", "False", "Deleting", "", generation)


def reconciled(generation: int) -> Condition:
    """The last reconcile did what it should."""
    return Condition("Synced", "True", "ReconcileSuccess", "", generation)


def failed(generation: int, message: str) -> Condition:
    """The last reconcile did not; the message says why."""
    return Condition("Synced", "False", "ReconcileError", message, generation)


def paused(generation: int) -> Condition:
    """Somebody set the annotation crossplane.io/paused."""
    return Condition(
        "Synced", "False", "ReconcilePaused", "Reconciliation is paused via the pause annotation", generation
    )


def merged(current: list[dict[str, Any]], new: list[Condition], now: dt.datetime) -> list[dict[str, Any]]:
    """`current` with `new` in it; lastTransitionTime moves only when a status changes, so equal input gives equal
    output."""
    result = {str(entry.get("type")): entry for entry in current}
    for condition in new:
        before = result.get(condition.type)
        same = before is not None and before.get("status") == condition.status
        entry: dict[str, Any] = {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "lastTransitionTime": before["lastTransitionTime"] if same and before else timestamp(now),
        }
        if condition.message:
            entry["message"] = condition.message
        if condition.generation is not None:
            entry["observedGeneration"] = condition.generation
        result[condition.type] = entry
    return list(result.values())
