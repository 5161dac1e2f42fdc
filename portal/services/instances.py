"""Reads of an instance that several doors share: its endpoint and its price. Writes nothing."""

from __future__ import annotations

from typing import Any

from portal.models import Commitment, Instance
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
    return Commitment.objects.filter(instance=instance, released=False).order_by("-id").first()


def _at(value: Any, pointer: str) -> Any:
    for step in pointer.strip("/").split("/"):
        value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return value
