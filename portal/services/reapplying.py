"""Applies the claim of a living instance again, with a new approval: nothing of what was approved changes.

In charge of: topic `reapply`, rows in the instance's delivery lane. Not in charge of: what was approved (delivering
freezes it), keys (signing), or which claims to adopt (adopting).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from portal.domain.lifecycle import InstancePhase
from portal.models import OPEN_STATES, Instance, OutboxRow, Request
from portal.ports import ControlPlane, RetryableError, TerminalError
from portal.services import journal, loading, locks, outbox, signing, transitions

SYSTEM = "reapplying"
TOPIC = "reapply"
Planes = Callable[[str], ControlPlane]


def ask(instance: Instance, *, why: str, actor: User | None = None, system: str = "", force: bool = False) -> None:
    """Queue it, in the caller's transaction. `force` takes back what others have set in the claim."""
    payload = {"instance": str(instance.pk), "request": str(_last_request(instance).pk), "force": force}
    outbox.put(transitions.delivery_lane(instance), TOPIC, payload)
    data = {"why": why, "force": force}
    journal.record("claim.reapply-asked", actor=actor, system=system, instance=instance, data=data)


def ask_new_approvals(*, all_of_them: bool = False, system: str = SYSTEM) -> list[Instance]:
    """Queue every living claim whose approval was signed by another key than the one that signs now, or all of them
    (their approvals' validity begins anew). Claims that wait for one already are left out. Returns the instances."""
    key = signing.current_key(timezone.now())
    asked = waiting()
    chosen = []
    for instance in signing.living_instances():
        current = not all_of_them and key is not None and signing.kid_of(instance.claim) == key.kid
        if current or not instance.claim_uid or instance.pk in asked:
            continue
        with transaction.atomic():
            ask(instance, why="new approval", system=system)
        chosen.append(instance)
    return chosen


def waiting() -> set[uuid.UUID]:
    """Ids of the instances whose claims wait for being applied again."""
    rows = OutboxRow.objects.filter(topic=TOPIC, done_at=None)
    return {uuid.UUID(row.payload["instance"]) for row in rows}


def reapply(row: OutboxRow, planes: Planes) -> None:
    """Topic `reapply`. Raises RetryableError for the caller to postpone; a refusal is kept in the audit log."""
    instance = Instance.objects.select_related("environment", "document").get(pk=row.payload["instance"])
    claim = _begin(row, instance)
    if claim is None:
        return
    plane = planes(instance.environment.control_plane)
    try:
        signing.publish(plane)
        applied = plane.apply(claim, force=bool(row.payload.get("force")))
    except TerminalError as error:
        _end(row, instance.pk, None, "failed", {"code": error.code, "message": error.message[:500]})
        return
    _end(row, instance.pk, claim, "done", {"uid": applied.uid, "kid": signing.kid_of(claim)})


def give_up(row: OutboxRow, error: RetryableError) -> None:
    """The last attempt failed too: the claim stays as it is."""
    _end(row, uuid.UUID(row.payload["instance"]), None, "failed", {"code": error.code, "message": error.message[:500]})


def _begin(row: OutboxRow, instance: Instance) -> dict[str, Any] | None:
    """The claim with a new approval; None when there is nothing to apply (any more)."""
    with transaction.atomic():
        instance = locks.lock_instance(instance.pk)
        ending = instance.requests.filter(kind="Delete", state__in=OPEN_STATES).exists()
        if ending or instance.phase == InstancePhase.GONE or instance.claim is None or not instance.claim_uid:
            outbox.acknowledge(row, "cancelled")
            return None
        return signing.approve(instance.claim, loading.offering(instance.document))


def _end(
    row: OutboxRow, instance_id: uuid.UUID, claim: dict[str, Any] | None, outcome: str, data: dict[str, Any]
) -> None:
    with transaction.atomic():
        outbox.acknowledge(row, outcome)
        instance = locks.lock_instance(instance_id)
        if claim is not None:
            instance.claim = claim
            instance.save(update_fields=["claim"])
        verb = "claim.reapply" if claim is not None else "claim.reapply-failed"
        journal.record(verb, system=SYSTEM, instance=instance, data=data)


def _last_request(instance: Instance) -> Request:
    return instance.requests.exclude(kind="Delete").latest("created_at")
