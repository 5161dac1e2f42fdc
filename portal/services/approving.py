"""Votes: who may, on what they saw, and what the last one sets off.

In charge of: one person, one vote; never on one's own request; stages in order; deciding again before it counts. Not in
charge of: the pure rules of stages and votes (domain.approval), or delivery.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Literal

from django.db import transaction
from django.utils import timezone

from portal.domain import approval
from portal.domain.lifecycle import RequestState, Verb
from portal.models import DecisionRecord, Request, Stage, Team, Vote
from portal.services import deciding, journal, locks, submitting, transitions
from portal.services.access import Actor, owners_of_request, request_for
from portal.services.errors import Conflict, Forbidden

Answer = Literal["approve", "reject"]


def vote(
    request_id: uuid.UUID, answer: Answer, comment: str = "", *, acting: Actor, seen_decision: int | None = None
) -> Request:
    """Cast one vote on the open stage. `seen_decision`: the decision the voter saw; another by now is a Conflict.

    Raises NotFound, Forbidden (own request, not in the group), Conflict (not waiting, voted already, expired).
    """
    acting.needs("approve")
    seen = request_for(acting, request_id)
    with transaction.atomic():
        chain = locks.lock_team_chain(seen.team)
        request = locks.lock_request(request_id)
        stage, record = _votable(request, acting, seen_decision)
        Vote.objects.create(
            stage=stage, voter=acting.user, answer=answer, comment=comment, decision=record, cast_at=timezone.now()
        )
        data = {"stage": stage.code, "answer": answer, "decision": record.pk, "comment": comment[:500]}
        journal.record("vote.cast", actor=acting.user, request=request, data=data)
        if answer == "reject":
            transitions.move(request, Verb.REJECT, actor=acting.user, data={"stage": stage.code})
        elif open_stage(request) is None:
            _conclude(request, chain, acting)
    return request


def current_stages(request: Request) -> list[Stage]:
    """The stages of the last round, in order."""
    stages = list(request.stages.prefetch_related("votes__voter"))
    last = max((stage.round for stage in stages), default=0)
    return [stage for stage in stages if stage.round == last]


def open_stage(request: Request) -> Stage | None:
    """The first stage of the last round that still lacks votes."""
    return next((stage for stage in current_stages(request) if approvals(stage) < stage.quorum), None)


def approvals(stage: Stage) -> int:
    return sum(vote.answer == "approve" for vote in stage.votes.all())


def why_not(request: Request, acting: Actor) -> Forbidden | Conflict | None:
    """Why this person can't vote on this request now; None when they can. The page and the API show the same reason."""
    if acting.user.pk in owners_of_request(request):
        return Forbidden("own-request", "This is your own request: somebody else must decide on it.")
    if request.state != RequestState.WAITING:
        return Conflict("not-waiting", f"The request is {request.state}: it does not wait for votes.")
    stage = open_stage(request)
    if stage is None:
        return Conflict("not-waiting", "Every stage has its votes already.")
    if stage.group not in acting.groups():
        return Forbidden("not-an-approver", f"It waits for the group {stage.group}, which you are not in.")
    if any(vote.voter_id == acting.user.pk for each in current_stages(request) for vote in each.votes.all()):
        return Conflict("already-voted", "You have voted on this request; a person counts once.")
    if stage.due_at <= timezone.now():
        return Conflict("expired", f"The time to decide ended at {stage.due_at.isoformat()}.")
    return None


def _votable(request: Request, acting: Actor, seen_decision: int | None) -> tuple[Stage, DecisionRecord]:
    refusal = why_not(request, acting)
    if refusal is not None:
        raise refusal
    record = request.decisions.latest("id")
    if seen_decision is not None and seen_decision != record.pk:
        raise Conflict("decision-changed", f"You saw decision {seen_decision}; it is {record.pk} now. Look again.")
    stage = open_stage(request)
    if stage is None:
        raise Conflict("not-waiting", "Every stage has its votes already.")
    return stage, record


def _conclude(request: Request, chain: Sequence[Team], acting: Actor) -> None:
    """All votes are in: decide again, since a quota or a policy may deny by now what it did not then."""
    inputs = deciding.gather(deciding.proposal_of(request), chain, besides=request)
    decision = deciding.decide(inputs)
    record = deciding.store(request, "approval", inputs, decision)
    data = {"decision": record.pk, "inputs": record.inputs_digest}
    if decision.outcome == "Denied":
        transitions.move(request, Verb.DENY, system="deciding", data=data)
        return
    transitions.move(request, Verb.APPROVE, actor=acting.user, data=data)
    submitting.carry_out(request)


__all__ = ["Answer", "approval", "approvals", "current_stages", "open_stage", "vote", "why_not"]
