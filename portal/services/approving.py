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

from portal.domain import approval, governance
from portal.domain.decision import StageDemand
from portal.domain.lifecycle import RequestState, Verb
from portal.domain.schema import Problem
from portal.models import DecisionRecord, Request, Stage, Team, Vote
from portal.services import deciding, journal, locks, notices, setting_up, submitting, transitions
from portal.services.access import Actor, ownership, request_for
from portal.services.errors import Conflict, Forbidden, InvalidInput

Answer = Literal["approve", "reject"]


def vote(
    request_id: uuid.UUID, answer: Answer, comment: str = "", *, acting: Actor, seen_decision: int | None = None
) -> Request:
    """Cast one vote on the open stage. `seen_decision`: the decision the voter saw; another by now is a Conflict.

    A rejection needs a comment: whoever asked must learn what would pass. Raises NotFound, Forbidden (own request, not
    in the group), Conflict (not waiting, voted already, expired), InvalidInput (a rejection without a comment).
    """
    acting.needs("approve")
    seen = request_for(acting, request_id)
    with transaction.atomic():
        chain = locks.lock_team_chain(seen.team)
        request = locks.lock_request(request_id)
        acting = acting.anew()
        stage, record = _votable(request, acting, seen_decision)
        if answer == "reject" and not comment.strip():
            raise InvalidInput(
                [Problem("/comment", "missing-field", "a rejection needs a reason: say what would pass")]
            )
        Vote.objects.create(
            stage=stage, voter=acting.user, answer=answer, comment=comment, decision=record, cast_at=timezone.now()
        )
        data = {"stage": stage.code, "answer": answer, "decision": record.pk, "comment": comment[:500]}
        journal.record("vote.cast", actor=acting.user, request=request, data=data)
        if answer == "reject":
            transitions.move(request, Verb.REJECT, actor=acting.user, data={"stage": stage.code})
        elif open_stage(request) is None:
            _conclude(request, chain, acting)
        elif open_stage(request) != stage:
            notices.put(request, notices.WAITS)
    return request


def current_stages(request: Request) -> list[Stage]:
    """The stages of the last round, in order, with their votes."""
    stages = list(request.stages.prefetch_related("votes__voter"))
    last = max((stage.round for stage in stages), default=0)
    return [stage for stage in stages if stage.round == last]


def open_stage(request: Request) -> Stage | None:
    """The stage that is voted on now, or None."""
    stages = current_stages(request)
    found = approval.open_stage([_demand(stage) for stage in stages], _votes(stages))
    return next((stage for stage in stages if found is not None and stage.code == found.code), None)


def approvals(stage: Stage) -> int:
    return sum(vote.answer == "approve" for vote in stage.votes.all())


def why_not(request: Request, acting: Actor) -> Forbidden | Conflict | None:
    """Why this person can't vote on this request now; None when they can. The page and the API show the same reason."""
    stages = current_stages(request)
    if request.state != RequestState.WAITING:
        own = approval.own_request(acting.user.username, ownership(request))
        if own:
            return Forbidden(own.code, own.message)
        return Conflict("not-waiting", f"The request is {request.state}: it does not wait for votes.")
    refusal = approval.refuse_vote(
        acting.user.username, acting.groups(), [_demand(stage) for stage in stages], _votes(stages), ownership(request)
    )
    if refusal is not None:
        kind = Conflict if refusal.code in {"already-voted", "no-open-stage"} else Forbidden
        return kind(refusal.code, refusal.message)
    whose = ownership(request)
    if set_up := setting_up.refusal(acting.user, whose.requesters | whose.made_for):
        return set_up
    stage = open_stage(request)
    if stage is not None and stage.due_at <= timezone.now():
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
    if governance.denials_after_votes(decision):
        transitions.move(request, Verb.DENY, system="deciding", data=data)
        return
    transitions.move(request, Verb.APPROVE, actor=acting.user, data=data)
    submitting.carry_out(request)


def _demand(stage: Stage) -> StageDemand:
    return StageDemand(stage.code, stage.group, stage.quorum, 0, stage.message)


def _votes(stages: Sequence[Stage]) -> list[approval.Vote]:
    return [
        approval.Vote(stage.code, vote.voter.username, "approve" if vote.answer == "approve" else "reject")
        for stage in stages
        for vote in stage.votes.all()
    ]
