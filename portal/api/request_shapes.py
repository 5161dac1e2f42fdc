"""Requests as the API shows them, a page at a time: three queries whatever its length.

In charge of: reading rows as plain values and putting them together. Not in charge of: which requests one may see
(services.access), or which of them a page holds (pagination).
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db.models.fields.json import KeyTransform

from portal.api import decision_shapes as shapes
from portal.api.decision_shapes import moment, money
from portal.domain import approval
from portal.domain.decision import StageDemand
from portal.domain.lifecycle import RequestState
from portal.models import DecisionRecord, Stage

Row = dict[str, Any]
FIELDS = (
    "id",
    "kind",
    "state",
    "team__slug",
    "environment__slug",
    "offering",
    "instance_id",
    "name",
    "spec",
    "old",
    "difference",
    "labels",
    "reason",
    "requester__username",
    "made_for__username",
    "quote_monthly",
    "quote_currency",
    "quote_valid_until",
    "failure_code",
    "failure_message",
    "applied_at",
    "generation",
    "created_at",
    "changed_at",
)
RECEIPT = ("id", "state", "links")  # all that those without the scope `read` are told of what they wrote


def requests(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """`rows`: values of FIELDS. The same order comes back."""
    ids = [row["id"] for row in rows]
    decisions, stages = _decisions(ids), _stages(ids)
    return [_request(row, decisions.get(row["id"]), stages[row["id"]]) for row in rows]


def _request(row: Row, decision: Row | None, stages: list[Row]) -> dict[str, Any]:
    instance = str(row["instance_id"]) if row["instance_id"] else None
    path = f"{settings.PUBLIC_URL}/api/v1"
    return {
        "id": str(row["id"]),
        "kind": row["kind"],
        "state": row["state"],
        "team": row["team__slug"],
        "environment": row["environment__slug"],
        "offering": row["offering"] or None,
        "instance": instance,
        "name": row["name"],
        "spec": row["spec"],
        "old": row["old"],
        "difference": shapes.differences(row["difference"]),
        "labels": row["labels"],
        "reason": row["reason"],
        "requester": row["requester__username"],
        "madeFor": row["made_for__username"],
        "decision": _decision(decision) if decision else None,
        "stages": [_stage(stage) for stage in stages],
        "waitsFor": _waits_for(stages) if row["state"] == RequestState.WAITING else None,
        "quote": _quote(row),
        "cost": shapes.cost(decision["result"], decision["committed"], row["kind"]) if decision else None,
        "failure": {"code": row["failure_code"], "message": row["failure_message"]} if row["failure_code"] else None,
        "appliedAt": moment(row["applied_at"]),
        "generation": row["generation"],
        "createdAt": moment(row["created_at"]),
        "changedAt": moment(row["changed_at"]),
        "links": {
            "self": f"{path}/requests/{row['id']}/",
            "page": f"{settings.PUBLIC_URL}/requests/{row['id']}/",
            "instance": f"{path}/instances/{instance}/" if instance else None,
        },
    }


def _quote(row: Row) -> dict[str, Any] | None:
    """The ceiling that holds for the request, also when a later decision was asked again at another price."""
    if not row["quote_currency"]:
        return None
    return {
        "monthly": money(row["quote_monthly"]),
        "currency": row["quote_currency"],
        "validUntil": row["quote_valid_until"].isoformat() if row["quote_valid_until"] else None,
    }


def _decisions(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, Row]:
    """The last decision of each request."""
    rows = DecisionRecord.objects.filter(request__in=ids).order_by("request_id", "-id").distinct("request_id")
    committed = KeyTransform("committed", "inputs")
    found = rows.values("id", "request_id", "moment", "outcome", "result", "decided_at", committed=committed)
    return {row["request_id"]: dict(row) for row in found}


def _decision(row: Row) -> dict[str, Any]:
    result = row["result"]
    return {
        "id": row["id"],
        "moment": row["moment"],
        "outcome": row["outcome"],
        "reasons": shapes.reasons(result),
        "usage": shapes.usage(result),
        "quote": shapes.quote(result),
        "budgets": shapes.budgets(result),
        "decidedAt": moment(row["decided_at"]),
    }


_OF_STAGE = ("id", "request_id", "round", "code", "group", "quorum", "message", "due_at")
_OF_VOTE = ("votes__voter__username", "votes__answer", "votes__comment", "votes__cast_at")


def _stages(ids: Sequence[uuid.UUID]) -> defaultdict[uuid.UUID, list[Row]]:
    """The stages of each request with their votes, rounds and positions in order."""
    rows = Stage.objects.filter(request__in=ids).order_by("request_id", "round", "position", "votes__id")
    by_request: defaultdict[uuid.UUID, list[Row]] = defaultdict(list)
    known: dict[int, Row] = {}
    for row in rows.values(*_OF_STAGE, *_OF_VOTE):  # one row per vote, or one of a stage without any
        stage = known.get(row["id"])
        if stage is None:
            stage = known[row["id"]] = {**row, "votes": []}
            by_request[row["request_id"]].append(stage)
        if row["votes__answer"] is not None:
            stage["votes"].append({name.removeprefix("votes__"): row[name] for name in _OF_VOTE})
    return by_request


def _stage(stage: Row) -> dict[str, Any]:
    return {
        "code": stage["code"],
        "group": stage["group"],
        "quorum": stage["quorum"],
        "approvals": _approvals(stage),
        "message": stage["message"],
        "dueAt": moment(stage["due_at"]),
        "round": stage["round"],
        "votes": [
            {
                "voter": vote["voter__username"],
                "answer": vote["answer"],
                "comment": vote["comment"],
                "castAt": moment(vote["cast_at"]),
            }
            for vote in stage["votes"]
        ],
    }


def _approvals(stage: Row) -> int:
    return sum(vote["answer"] == "approve" for vote in stage["votes"])


def _waits_for(stages: Sequence[Row]) -> dict[str, Any] | None:
    """The group whose votes are missing now, and how many, by the same rule as the vote itself."""
    last = max((stage["round"] for stage in stages), default=0)
    current = [stage for stage in stages if stage["round"] == last]
    votes = [approval.Vote(s["code"], v["voter__username"], v["answer"]) for s in current for v in s["votes"]]
    demanded = [StageDemand(s["code"], s["group"], s["quorum"], 0, s["message"]) for s in current]
    stage = approval.open_stage(demanded, votes)
    if stage is None:
        return None
    given = sum(vote.stage == stage.code for vote in votes)
    return {"group": stage.group, "missing": stage.quorum - given}
