"""Reads of an instance that several doors share: its endpoint and its price. Writes nothing."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from portal.domain.decision import CHANGES
from portal.models import UNDELIVERED_STATES, Commitment, Instance
from portal.services import loading


def endpoint_of(instance: Instance) -> dict[str, str | int]:
    """The named endpoint values that its offering points to, as far as its status holds them."""
    return endpoint_at(instance.document_id, instance.observed)


def endpoint_at(offering_digest: str, observed: dict[str, Any]) -> dict[str, str | int]:
    """The same, of plain values."""
    pointers = loading.offering_by_digest(offering_digest).endpoint
    found = {name: _at({"status": observed.get("status", {})}, pointer) for name, pointer in pointers.items()}
    return {name: value for name, value in found.items() if isinstance(value, str | int)}


def monthly_of(instance: Instance) -> Commitment | None:
    """What it commits per month, or None while its price is unknown or nothing is held any more."""
    return committed_by([instance.pk]).get(instance.pk)


def committed_by(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Commitment]:
    """The same for many at once: the dearest of what may be running. What a change would cost that isn't delivered yet
    is left out."""
    rows = Commitment.objects.filter(instance__in=ids, released=False)
    rows = rows.exclude(request__kind__in=CHANGES, request__state__in=UNDELIVERED_STATES)
    return {row.instance_id: row for row in rows.order_by("monthly", "id")}


def _at(value: Any, pointer: str) -> Any:
    for step in pointer.strip("/").split("/"):
        value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return value
