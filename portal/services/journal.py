"""Writes audit events. One step, one event, in the transaction of the step."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from portal.models import AuditEvent, Instance, Request, Team


def record(
    verb: str,
    *,
    actor: User | None = None,
    system: str = "",
    team: Team | None = None,
    request: Request | None = None,
    instance: Instance | None = None,
    data: dict[str, Any] | None = None,
) -> AuditEvent:
    """Append one event. Either `actor` or `system` (the part of the portal that acted by itself) is given."""
    if not connection.in_atomic_block:
        raise RuntimeError(f"audit event {verb} outside of the transaction of its step")
    if (actor is None) == (system == ""):
        raise ValueError(f"audit event {verb} needs either an actor or the part of the portal that acted")
    return AuditEvent.objects.create(
        at=timezone.now(),
        verb=verb,
        actor=actor,
        system=system,
        team=team or (request.team if request else instance.team if instance else None),
        request=request,
        instance=instance or (request.instance if request else None),
        data=data or {},
    )
