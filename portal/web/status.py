"""What an instance's page tells of its phase beside the phase: what to do, how long it takes as a rule, the Events that
explain, and what others have changed.

In charge of: texts and rows that a template shows as they are. Not in charge of: finding any of it out (services), or
the page (instances).
"""

from __future__ import annotations

import json
from typing import Any

from portal.domain.conditions import time_of
from portal.domain.spans import span
from portal.models import Instance


def shown(found: Instance) -> dict[str, Any]:
    """For the templates _status, _explanations and _drift."""
    observed = found.observed
    return {
        "advice": observed.get("advice") or "",
        "decided_by": observed.get("condition") or "",
        "decided_since": time_of(observed.get("since")),
        "typical": typical_text(observed.get("typical")),
        "explanations": [{**each, "last_seen": time_of(each.get("lastSeen"))} for each in observed.get("events") or []],
        "drift": [_drifted(row) for row in found.drift],
    }


def typical_text(typical: dict[str, Any] | None) -> str:
    """`typically 40 s (median of the last 100); 95 of 100 take at most 2 min`; empty when it isn't known."""
    if not typical:
        return ""
    median, p95, count = typical["median"], typical["p95"], typical["count"]
    return f"typically {span(median)} (median of the last {count}); 95 of 100 take at most {span(p95)}"


def mark(found: Instance, last_event: int) -> str:
    """What a page that was loaded before has to differ in for it to be loaded anew."""
    explained = (found.observed.get("explained") or {}).get("at") or ""
    return f"{found.phase}-{last_event}-{explained}"


def _drifted(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "field": row["field"],
        "approved": _value(row.get("approved")),
        "live": _value(row.get("live")),
        "manager": row.get("manager") or "",
        "at": time_of(row.get("at")),
        "metered": row.get("metered", False),
    }


def _value(value: Any) -> str:
    if value is None:
        return "not set"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
