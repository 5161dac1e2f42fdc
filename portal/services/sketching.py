"""The claim that a request would become, for people to read and a control plane to be asked about. Writes nothing.

Not in charge of: the claim that is delivered (delivering renders that one when its inputs freeze, and signs it).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from portal.domain.decision import APPLIED, CHANGES
from portal.models import Request
from portal.rendering.claim import ClaimFacts, facts_from_claim, render_claim
from portal.rendering.names import claim_name
from portal.services import deciding
from portal.services.proposal import Proposal
from portal.services.submitting import Preview

NOT_YET = "00000000-0000-0000-0000-000000000000"  # ids that only a submission gives
NEWEST = "newest-at-approval"


def sketch_claim(preview: Preview) -> dict[str, Any] | None:
    """The claim of a preview, or None for what makes none (a deletion, a quota). Ids that aren't given yet, and a
    revision that nobody has seen, are stand-ins."""
    quote = preview.decision.quote
    return _sketch(preview.proposal, NOT_YET, quote.monthly if quote else None, quote.currency if quote else "")


def sketch_request(request: Request) -> dict[str, Any] | None:
    """The claim that a stored request would become now; None for what makes none."""
    proposal = deciding.proposal_of(request)
    return _sketch(proposal, str(request.pk), request.quote_monthly, request.quote_currency)


def _sketch(proposal: Proposal, request_id: str, monthly: Decimal | None, currency: str) -> dict[str, Any] | None:
    if proposal.kind not in APPLIED or proposal.offering is None or proposal.environment is None:
        return None
    facts = _changed(proposal) if proposal.kind in CHANGES else _created(proposal)
    if facts is None:
        return None
    return render_claim(replace(facts, request_id=request_id, quote_monthly=monthly, quote_currency=currency))


def _changed(proposal: Proposal) -> ClaimFacts | None:
    instance, offering = proposal.instance, proposal.offering
    if instance is None or instance.claim is None or offering is None:
        return None
    return replace(
        facts_from_claim(instance.claim),
        api_version=offering.api_version,
        composition=offering.composition,
        composition_revision=proposal.revision or NEWEST,
        offering_digest=offering.digest,
        requester=proposal.requester.username,
        spec=proposal.spec,
    )


def _created(proposal: Proposal) -> ClaimFacts | None:
    offering, environment, instance = proposal.offering, proposal.environment, proposal.instance
    if offering is None or environment is None:
        return None
    return ClaimFacts(
        api_version=offering.api_version,
        kind=offering.kind,
        composition=offering.composition,
        composition_revision=proposal.revision or NEWEST,
        instance_id=str(instance.pk) if instance else NOT_YET,
        instance_name=proposal.name,
        name=claim_name(proposal.name, proposal.namespace, offering.naming.max_length, offering.naming.derived),
        namespace=proposal.namespace,
        team=proposal.team.slug,
        team_title=proposal.team.title,
        environment=environment.slug,
        environment_labels=environment.labels,
        spec=proposal.spec,
        request_id=NOT_YET,
        requester=proposal.requester.username,
        owner=(proposal.made_for or proposal.requester).username,
        offering=offering.name,
        offering_digest=offering.digest,
        quote_monthly=None,
        quote_currency="",
    )
