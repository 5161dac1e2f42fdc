"""Compares a request's decisions, stages and votes with what the audit log says of them. Reads only.

In charge of: rows that were altered, added or removed beside the portal in a way that making a decision again alone
would not show. Not in charge of: making decisions again (explaining), or keeping the log as it is (the migration).
"""

from __future__ import annotations

import uuid
from collections import Counter
from dataclasses import dataclass
from typing import Any

from portal.domain.lifecycle import RequestState, Verb
from portal.models import AuditEvent, DecisionRecord, Stage, Vote

_MOMENTS = {
    RequestState.DRAFT.value: "submission",
    RequestState.WAITING.value: "approval",
    RequestState.APPROVED.value: "delivery",
}
_OUTCOMES = {f"request.{Verb.ALLOW}": "Allowed", f"request.{Verb.ASK}": "NeedsApproval"}


@dataclass(frozen=True)
class Difference:
    """`path` names what differs, as a JSON pointer; `stored` is what the rows say, `again` what they should say."""

    path: str
    stored: Any
    again: Any


def attest(request_id: uuid.UUID) -> list[Difference]:
    """Where the rows of a request and the audit log disagree; nowhere, if all is well."""
    events = list(AuditEvent.objects.filter(request=request_id).select_related("actor").order_by("id"))
    return _decisions(request_id, events) + _stages(request_id, events) + _votes(request_id, events)


def _decisions(request_id: uuid.UUID, events: list[AuditEvent]) -> list[Difference]:
    records = {str(record.pk): record for record in DecisionRecord.objects.filter(request=request_id).order_by("id")}
    told = [event for event in events if event.verb.startswith("request.") and "decision" in event.data]
    named = {str(event.data["decision"]) for event in told}
    found = []
    if not any(record.moment == "submission" for record in records.values()):
        found.append(Difference("/decisions", None, "a decision at submission, as every request has"))
    for event in told:
        record = records.get(str(event.data["decision"]))
        found += _record(record, event) if record else [_missing(event)]
    for pk, record in records.items():
        if pk not in named:
            found.append(Difference(f"/decisions/{pk}", f"{record.outcome} at {record.moment}", None))
    return found


def _missing(event: AuditEvent) -> Difference:
    return Difference(f"/decisions/{event.data['decision']}", None, f"named by {event.verb} (event {event.pk})")


def _record(record: DecisionRecord, event: AuditEvent) -> list[Difference]:
    """What an event says of the decision that it names: the digest of its inputs, its moment, and some outcomes."""
    path = f"/decisions/{record.pk}"
    pairs = [
        ("inputsDigest", record.inputs_digest, event.data.get("inputs")),
        ("moment", record.moment, _MOMENTS.get(str(event.data.get("from")))),
    ]
    if event.verb in _OUTCOMES:
        pairs.append(("outcome", record.outcome, _OUTCOMES[event.verb]))
    return [Difference(f"{path}/{name}", stored, told) for name, stored, told in pairs if stored != told]


def _stages(request_id: uuid.UUID, events: list[AuditEvent]) -> list[Difference]:
    """The stages that are voted on against those that the decision of their round demanded."""
    stored: dict[int, list[str]] = {}
    for stage in Stage.objects.filter(request=request_id).order_by("round", "position"):
        stored.setdefault(stage.round, []).append(_stage(stage.code, stage.group, stage.quorum))
    opening = [
        str(event.data.get("decision"))
        for event in events
        if event.data.get("from") == RequestState.DRAFT.value or event.verb == f"request.{Verb.ASK_AGAIN}"
    ]
    results = {str(record.pk): record.result for record in DecisionRecord.objects.filter(request=request_id)}
    told = {
        number: [_stage(each["code"], each["group"], each["quorum"]) for each in results[decision]["stages"]]
        for number, decision in enumerate((pk for pk in opening if results.get(pk, {}).get("stages")), start=1)
    }
    return [
        Difference(f"/stages/{number}", stored.get(number), told.get(number))
        for number in sorted(stored.keys() | told.keys())
        if stored.get(number) != told.get(number)
    ]


def _stage(code: str, group: str, quorum: int) -> str:
    return f"{code}: {quorum} of {group}"


def _votes(request_id: uuid.UUID, events: list[AuditEvent]) -> list[Difference]:
    votes = Vote.objects.filter(stage__request=request_id).select_related("stage", "voter").order_by("id")
    stored = Counter(
        _vote(vote.stage.code, vote.voter.username, vote.answer, str(vote.decision_id), vote.comment[:500])
        for vote in votes
    )
    told = Counter(
        _vote(
            str(event.data.get("stage")),
            event.actor.username if event.actor else "",
            str(event.data.get("answer")),
            str(event.data.get("decision")),
            str(event.data.get("comment", "")),
        )
        for event in events
        if event.verb == "vote.cast"
    )
    extra = [Difference("/votes", vote, None) for vote in (stored - told).elements()]
    return extra + [Difference("/votes", None, vote) for vote in (told - stored).elements()]


def _vote(stage: str, voter: str, answer: str, decision: str, comment: str) -> str:
    said = f": {comment}" if comment else ""
    return f"{answer} by {voter} on stage {stage}, of decision {decision}{said}"
