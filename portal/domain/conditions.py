"""Status conditions as they come: any part of one may be missing, null or of another type (case 8), and none of that
raises.

Not in charge of: what they mean for an Instance (claim_status).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import msgspec

NO_TROUBLE = frozenset({"Ready", "Synced", "Suspended"})  # standard ones, and one that is False while all is well


class Condition(msgspec.Struct, frozen=True):
    """One condition. What it didn't say is empty or None."""

    type: str
    status: str
    reason: str
    message: str
    since: dt.datetime | None
    observed_generation: int | None

    def text(self) -> str:
        """Reason and message, whichever there are."""
        return ": ".join(part for part in (self.reason, self.message) if part) or "no reason given"


def conditions(status: Mapping[str, Any]) -> dict[str, Condition]:
    """The conditions by type; whatever isn't one is left out, and a type that is there twice counts as it came last."""
    listed = status.get("conditions")
    made = [_condition(item) for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return {condition.type: condition for condition in made if condition.type}


def of_manifest(manifest: Mapping[str, Any]) -> dict[str, Condition]:
    """The conditions of a whole object."""
    status = manifest.get("status")
    return conditions(status) if isinstance(status, Mapping) else {}


def behind(found: Mapping[str, Condition]) -> list[Condition]:
    """What the composition's own conditions, or Responsive, say is not well; at most three."""
    return [c for c in found.values() if c.type not in NO_TROUBLE and c.status == "False"][:3]


def time_of(value: object) -> dt.datetime | None:
    """A time as Kubernetes writes one; None for anything else. One without a zone is taken for UTC."""
    try:
        time = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time.replace(tzinfo=dt.UTC) if time and time.tzinfo is None else time


def _condition(item: Mapping[str, Any]) -> Condition:
    return Condition(
        type=_text(item.get("type")),
        status=_text(item.get("status")),
        reason=_text(item.get("reason")),
        message=_text(item.get("message")),
        since=time_of(item.get("lastTransitionTime")),
        observed_generation=_whole(item.get("observedGeneration")),
    )


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    """2.0 is 2: numbers may have passed through a float on their way (case 11)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
