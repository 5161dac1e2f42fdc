"""Gathers what a decision depends on, asks the rules, and stores the answer with all that went in.

In charge of: reading quota, budget, prices and approvers (under the caller's locks when it counts) and writing
DecisionRecord and Stage rows. Not in charge of: the rules (domain.governance) or what follows (submitting, delivering).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence

from django.utils import timezone

from portal.domain import governance
from portal.domain.approval import count_approvers
from portal.domain.decision import APPLIED, CHANGES, Decision, HeldLine, Inputs, digest, from_json, to_json
from portal.models import DecisionRecord, Request, Stage, Team
from portal.services import holding, loading
from portal.services.access import approver_members, ownership_of
from portal.services.proposal import Proposal


def gather(
    proposal: Proposal, chain: Sequence[Team], *, besides: Request | None = None, at: dt.datetime | None = None
) -> Inputs:
    """All inputs, as they are now. `besides`: the request itself, when it is decided again."""
    bundle_digest, prices_digest = loading.active_digests()
    offering_digest = proposal.document.digest if proposal.document else None
    bundle = loading.bundle_by_digest(bundle_digest, offering_digest)
    own = ownership_of(proposal.kind, proposal.requester, proposal.made_for, proposal.team, proposal.instance)
    approvers, shared = count_approvers(approver_members(bundle.groups), own)
    skus, changing = _skus(proposal), proposal.kind in CHANGES
    return Inputs(
        request=proposal.facts(),
        offering=proposal.offering.name if proposal.offering else None,
        offering_digest=offering_digest,
        bundle_digest=bundle_digest,
        spec=proposal.spec,
        old=proposal.old,
        held=tuple(_held(proposal, chain, besides)),
        prices=loading.price_rows(prices_digest, skus) if prices_digest and skus else (),
        budgets=tuple(holding.budget_states(chain, instance=proposal.instance)) if skus or changing else (),
        approvers=approvers,
        shared_approvers=shared,
        at=at or timezone.now(),
        offering_was=proposal.instance.document_id if changing and proposal.instance else None,
        committed=holding.committed_of(proposal.instance, besides=besides) if changing and proposal.instance else None,
    )


def decide(inputs: Inputs) -> Decision:
    """The decision that the stored offering and bundle make of these inputs; the same today and in a year."""
    offering = loading.offering_by_digest(inputs.offering_digest) if inputs.offering_digest else None
    bundle = loading.bundle_by_digest(inputs.bundle_digest, inputs.offering_digest)
    return governance.decide(inputs, offering, bundle)


def store(request: Request, moment: str, inputs: Inputs, decision: Decision) -> DecisionRecord:
    """Keep a decision with its inputs, so that it can be explained and made again."""
    plain = to_json(inputs)
    return DecisionRecord.objects.create(
        request=request,
        moment=moment,
        outcome=decision.outcome,
        inputs=plain,
        inputs_digest=digest(plain),
        result=to_json(decision),
        decided_at=inputs.at,
    )


def decision_of(request: Request) -> Decision:
    """The newest decision of a request."""
    return from_json(Decision, request.decisions.latest("id").result)


def open_stages(request: Request, decision: Decision) -> list[Stage]:
    """Write the demanded stages as the next round of this request."""
    if not decision.stages:
        return []
    last = request.stages.order_by("-round").first()
    number = last.round + 1 if last else 1
    now = timezone.now()
    return Stage.objects.bulk_create(
        Stage(
            request=request,
            round=number,
            position=position,
            code=demand.code,
            group=demand.group,
            quorum=demand.quorum,
            message=demand.message,
            due_at=now + dt.timedelta(hours=demand.timeout_hours),
        )
        for position, demand in enumerate(decision.stages, start=1)
    )


def proposal_of(request: Request) -> Proposal:
    """The proposal of a stored request, to decide it again as it was asked."""
    document = request.document
    return Proposal(
        kind=request.kind,  # type: ignore[arg-type]  # written from RequestKind alone
        requester=request.requester,
        made_for=request.made_for,
        team=request.team,
        spec=request.spec,
        environment=request.environment,
        instance=request.instance,
        offering=loading.offering(document) if document else None,
        document=document,
        name=request.name,
        namespace=request.instance.namespace if request.instance else "",
        old=request.old,
        revision=request.composition_revision,
        labels=request.labels,
        reason=request.reason,
    )


def demand_of(proposal: Proposal) -> dict[str, int]:
    """What it takes of each dimension; nothing for a deletion or a governed value."""
    if proposal.kind not in APPLIED or proposal.offering is None:
        return {}
    return proposal.offering.measure(proposal.spec)


def _skus(proposal: Proposal) -> frozenset[str]:
    if proposal.kind not in APPLIED or proposal.offering is None:
        return frozenset()
    return frozenset(key.sku for key in proposal.offering.price_keys(proposal.spec))


def _held(proposal: Proposal, chain: Sequence[Team], besides: Request | None) -> list[HeldLine]:
    if proposal.kind != "Quota":
        instance = proposal.instance if proposal.kind in APPLIED else None
        return holding.held_lines(chain, demand_of(proposal), instance=instance, besides=besides)
    dimension = proposal.spec["dimension"]
    lines = [line for line in holding.held_lines(chain, [dimension]) if line.limit is not None]
    if all(line.team != proposal.team.slug for line in lines):
        # A first quota must cover what the team's instances hold already, under a group's quota.
        lines.append(HeldLine(proposal.team.slug, dimension, sum(holding.held_below(proposal.team, dimension)), None))
    return lines
