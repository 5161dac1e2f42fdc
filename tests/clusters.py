"""InferenceClusters in the embedded control plane's store, as its function left them; for tests of what is shown."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from portal.models.embedded import EmbeddedObject
from portal.services import fleet

SINCE = "2026-12-01T12:00:00Z"


def add_cluster(name: str, state: str = "Ready", used: int = 1, capacity: int = 4, resource: str = "l4") -> None:
    """A cluster in a state, with one pool. What was asked of its control plane before is forgotten."""
    conditions = [
        {"type": "Reachable", "status": "False", "lastTransitionTime": SINCE, "message": "connection refused"},
        {"type": "Schedulable", "status": "False", "lastTransitionTime": SINCE, "message": "takes nothing new"},
        {"type": "NodesCounted", "status": "True", "lastTransitionTime": SINCE, "message": "l4-3: it is cordoned"},
    ]
    pool = {"name": "small", "resource": resource, "capacity": capacity, "used": used, "free": capacity - used}
    status: dict[str, Any] = {"reachable": state != "Unreachable", "pools": [pool], "conditions": conditions}
    EmbeddedObject.objects.create(
        group="aiplatform.example.org",
        version="v1alpha1",
        kind="InferenceCluster",
        name=name,
        resource_version=EmbeddedObject.objects.count() + 1,
        manager="test",
        created_at=timezone.now(),
        body={"spec": {"region": "eu-west", "cordoned": state == "Cordoned"}},
        status={} if state == "Unknown" else status,
    )
    fleet.forget()
