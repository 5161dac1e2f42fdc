"""A decision as the API shows it: the stored words, in the API's spelling. Plain functions on plain JSON.

In charge of: names and order of members. Not in charge of: where a decision comes from (requests, services.submitting).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from portal.domain.decision import to_json
from portal.domain.difference import Difference
from portal.rendering.claim import claim_yaml
from portal.services.rehearsing import Rehearsal

Json = Mapping[str, Any]


def moment(value: dt.datetime | None) -> str | None:
    """A time as RFC 3339 in UTC, with Z."""
    return None if value is None else value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def money(value: Decimal | None) -> str | None:
    """An amount as a string: a JSON number would pass through binary fractions at the other end."""
    return None if value is None else format(value, "f")


def reasons(result: Json) -> list[dict[str, Any]]:
    return [
        {"code": r["code"], "effect": r["effect"], "message": r["message"], "field": r["field"]}
        for r in result["reasons"]
    ]


def usage(result: Json) -> list[dict[str, Any]]:
    return [
        {
            "team": u["team"],
            "dimension": u["dimension"],
            "before": u["before"],
            "after": u["after"],
            "limit": u["limit"],
        }
        for u in result["usage"]
    ]


def demands(result: Json) -> list[dict[str, Any]]:
    """The stages that a preview announces; those of a request are rows with votes."""
    return [
        {
            "code": s["code"],
            "group": s["group"],
            "quorum": s["quorum"],
            "timeoutHours": s["timeout_hours"],
            "message": s["message"],
        }
        for s in result["stages"]
    ]


def quote(result: Json) -> dict[str, Any] | None:
    found = result["quote"]
    if found is None:
        return None
    return {
        "currency": found["currency"],
        "monthly": found["monthly"],
        "region": found["region"],
        "validUntil": found["valid_until"],
        "lines": [_cost(line) for line in found["lines"]],
    }


def budgets(result: Json) -> list[dict[str, Any]]:
    return [
        {
            "team": b["team"],
            "currency": b["currency"],
            "before": b["before"],
            "after": b["after"],
            "soft": b["soft"],
            "hard": b["hard"],
        }
        for b in result["budgets"]
    ]


def cost(result: Json, committed: str | None, kind: str) -> dict[str, Any] | None:
    """What it costs per month before and after, and the difference; null is unknown. None: it has no price.

    `committed` is what the instance counted for before, as the inputs of the decision have it.
    """
    found = result["quote"]
    if found is None:
        return None
    before, after = "0.00" if kind == "Create" else committed, found["monthly"]
    delta = None if before is None or after is None else money(Decimal(after) - Decimal(before))
    return {"currency": found["currency"], "before": before, "after": after, "delta": delta}


def differences(found: Sequence[Difference | Json]) -> list[dict[str, Any]]:
    """What differs, field by field; null where there is nothing."""
    rows = [to_json(each) if isinstance(each, Difference) else each for each in found]
    return [{"pointer": row["pointer"], "old": row["old"], "new": row["new"]} for row in rows]


def control_plane(found: Rehearsal | None) -> dict[str, Any] | None:
    """What the control plane itself says of a claim. None: there is no claim to ask about."""
    if found is None:
        return None
    return {
        "accepted": found.accepted,
        "code": found.code,
        "message": found.message,
        "claim": claim_yaml(found.claim) if found.claim is not None else None,
        "difference": differences(found.difference),
    }


def _cost(line: Json) -> dict[str, Any]:
    return {
        "sku": line["sku"],
        "quantity": line["quantity"],
        "unit": line["unit"],
        "unitPrice": line["unit_price"],
        "region": line["region"],
        "monthly": line["monthly"],
        "source": line["source"],
        "problem": line["problem"],
    }
