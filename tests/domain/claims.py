"""Claims as a control plane reports them, for tests of what is made of them.

In charge of: building one, and assessing it. Not in charge of: any outcome.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from portal.domain.claim_status import Assessment, Past, assess
from portal.ports import ClaimRef, ComposedObject, ObservedClaim

NOW = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
LONG_AGO = NOW - dt.timedelta(minutes=3)
STUCK_AFTER = 30 * 60
REF = ClaimRef("aiplatform.example.org/v1alpha1", "ModelDeployment", "modeldeployments", "search-dev", "chat")


def condition(
    kind: str, status: str, generation: int | None = 2, reason: str = "", message: str = "", minutes_ago: int = 1
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": (NOW - dt.timedelta(minutes=minutes_ago)).isoformat().replace("+00:00", "Z"),
    }
    return made if generation is None else made | {"observedGeneration": generation}


def claim(
    conditions: object = (),
    generation: int = 2,
    deleted_minutes_ago: int | None = None,
    finalizers: tuple[str, ...] = (),
    composed: tuple[ComposedObject, ...] = (),
    spec: dict[str, Any] | None = None,
    created_minutes_ago: int = 1,
) -> ObservedClaim:
    deleted = None if deleted_minutes_ago is None else NOW - dt.timedelta(minutes=deleted_minutes_ago)
    status = {"conditions": list(conditions) if isinstance(conditions, tuple) else conditions}
    created = NOW - dt.timedelta(minutes=created_minutes_ago)
    return ObservedClaim(
        REF, "uid", generation, "7", created, deleted, finalizers, {}, {}, spec or {}, status, composed
    )


def look(conditions: object, more: dict[str, Any]) -> Assessment:
    """Assess a claim of these conditions; `more` are arguments of `claim`, and the past."""
    of_claim = {name: value for name, value in more.items() if name != "past"}
    return assess(claim(conditions, **of_claim), NOW, STUCK_AFTER, more.get("past"))


READY, SYNCED = condition("Ready", "True", reason="Available"), condition("Synced", "True", reason="ReconcileSuccess")
BROKEN = condition(
    "Synced", "False", 2, "ReconcileError", "cannot compose resources: pipeline step fatal: no such class"
)
POD = ComposedObject("serving.kserve.io/v1alpha2", "LLMInferenceService", "search-dev", "chat-x", False, "no GPU free")
WAS_READY: dict[str, Any] = {"past": Past(was_ready=True)}
