"""What may be said of an object that a composition made, whichever control plane it is on.

Not in charge of: fetching it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HIDDEN = "(hidden)"
_SECRET_FIELDS = ("data", "stringData")


def without_secrets(value: Any) -> Any:
    """A manifest as people may see it: of every Secret in it, however deep, the keys remain and the values do not."""
    if isinstance(value, list):
        return [without_secrets(item) for item in value]
    if not isinstance(value, dict):
        return value
    hides = _SECRET_FIELDS if value.get("kind") == "Secret" else ()
    return {
        key: dict.fromkeys(inner, HIDDEN) if key in hides and isinstance(inner, dict) else without_secrets(inner)
        for key, inner in value.items()
    }


def readiness(status: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Whether the object says that it is ready (None: it does not say), and the message that goes with it."""
    listed = status.get("conditions") or ()
    conditions = {condition.get("type"): condition for condition in listed if isinstance(condition, dict)}
    ready, synced = conditions.get("Ready"), conditions.get("Synced")
    if synced is not None and synced.get("status") == "False":
        return False, synced.get("message") or ""
    if ready is None:
        return None, ""
    verdict = {"True": True, "False": False}.get(str(ready.get("status")))
    return verdict, ready.get("message") or ""
