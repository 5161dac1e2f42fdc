"""Holds a control plane back: nothing is delivered to it, published of it or recorded of it until somebody says so.

The database of a portal that was restored from a backup does not know what happened since. The first claim that proves
it (its approval was signed here for a request that is not in the database) pauses its control plane; people compare and
adopt (reconciling), and resume. Rows of the outbox wait meanwhile and lose no attempts.

In charge of: pauses, and what proves a restore. Not in charge of: comparing, or when the mirror looks.
"""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import CharField, F, Func, QuerySet, Value
from django.db.models.functions import Cast
from django.utils import timezone

from portal.domain.lifecycle import RequestState
from portal.models import Instance, OutboxRow, Pause, Request
from portal.ports import ObservedClaim, RetryableError
from portal.services import journal, signing

SYSTEM = "pausing"
DELIVERED = [
    state.value for state in (RequestState.DELIVERING, RequestState.DONE, RequestState.FAILED, RequestState.SUPERSEDED)
]


class Paused(RetryableError):
    """The control plane is paused: nothing is done about it now."""

    def __init__(self, name: str) -> None:
        super().__init__("control-plane-paused", f"{name} is paused: see `manage.py reconcile --control-plane {name}`.")


def pauses() -> list[Pause]:
    """Every pause, by control plane."""
    return list(Pause.objects.order_by("control_plane"))


def is_paused(control_plane: str) -> bool:
    return Pause.objects.filter(control_plane=control_plane).exists()


def pause(control_plane: str, reason: str, *, actor: User | None = None, system: str = "") -> bool:
    """Hold it back. False if it is held back already; the first reason stays."""
    with transaction.atomic():
        defaults = {"reason": reason, "since": timezone.now()}
        _, created = Pause.objects.get_or_create(control_plane=control_plane, defaults=defaults)
        if created:
            data = {"controlPlane": control_plane, "reason": reason}
            journal.record("control-plane.pause", actor=actor, system=system, data=data)
    return created


def resume(control_plane: str, *, actor: User) -> bool:
    """Go on. False if it was not paused. Whether that is wise is for reconciling to say."""
    with transaction.atomic():
        deleted, _ = Pause.objects.filter(control_plane=control_plane).delete()
        if deleted:
            journal.record("control-plane.resume", actor=actor, data={"controlPlane": control_plane})
    return bool(deleted)


def check(control_plane: str, claim: ObservedClaim) -> None:
    """Before a claim is recorded. Raises Paused where its control plane is, or from now on is, since this claim proves
    that the database is older than the control plane."""
    if unknown := unknown_to_us(claim):
        reason = (
            f"{claim.ref.kind} {claim.ref.namespace}/{claim.ref.name} carries an approval that was signed here for "
            f"{unknown}, which the database does not know: it seems to have been restored from a backup."
        )
        pause(control_plane, reason, system=SYSTEM)
    if is_paused(control_plane):
        raise Paused(control_plane)


def unknown_to_us(claim: ObservedClaim) -> str:
    """What an approval of ours in this claim names and the database does not know; empty if it knows all.

    A signature is looked at only where something is unknown: most claims cost one query.
    """
    payload = signing.claimed_payload(_manifest(claim))
    unknown = _unknown(payload) if payload is not None else ""
    return unknown if unknown and approval_of(claim) is not None else ""


def _unknown(payload: dict[str, Any]) -> str:
    instance, request = uuid_of(payload.get("sub")), uuid_of(payload.get("request"))
    # It was signed in the transaction that made it so: whoever says less is older.
    delivered = Request.objects.filter(instance=instance, state__in=DELIVERED) if instance else Request.objects.none()
    if request is not None and delivered.filter(pk=request).exists():
        return ""
    if instance is None or not Instance.objects.filter(pk=instance).exists():
        return f"instance {payload.get('sub')}"
    return f"a delivery of request {payload.get('request')}"


def approval_of(claim: ObservedClaim) -> dict[str, Any] | None:
    """What was signed here for this very claim; None for a claim without an approval, with a stranger's or another
    claim's."""
    payload = signing.verified_payload(_manifest(claim))
    here = {
        "apiVersion": claim.ref.api_version,
        "kind": claim.ref.kind,
        "namespace": claim.ref.namespace,
        "name": claim.ref.name,
    }
    return payload if payload is not None and payload.get("claim") == here else None


def not_held_back(rows: QuerySet[OutboxRow]) -> QuerySet[OutboxRow]:
    """Of these rows those that may be done now. Lanes begin with `instance:<id>:`."""
    paused = [each.control_plane for each in pauses()]
    if not paused:
        return rows
    ids = Instance.objects.filter(environment__control_plane__in=paused).annotate(text=Cast("id", CharField()))
    owner = Func(F("lane"), Value(":"), Value(2), function="split_part", output_field=CharField())
    return rows.annotate(owner=owner).exclude(owner__in=ids.values("text"))


def _manifest(claim: ObservedClaim) -> dict[str, Any]:
    return {"metadata": {"annotations": claim.annotations}}


def uuid_of(text: Any) -> uuid.UUID | None:
    """The id that a text from outside names, if it is one."""
    try:
        return uuid.UUID(str(text))
    except ValueError:
        return None
