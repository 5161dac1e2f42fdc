"""The claim that a previewed creation would become, for people to read before they ask. Writes and delivers nothing.

Not in charge of: the claim that is delivered (delivering renders that one when its inputs freeze).
"""

from __future__ import annotations

from typing import Any

from portal.rendering.claim import ClaimFacts, render_claim
from portal.rendering.names import claim_name
from portal.services.submitting import Preview

NOT_YET = "00000000-0000-0000-0000-000000000000"  # ids that only a submission gives
NEWEST = "newest-at-approval"


def sketch_claim(preview: Preview) -> dict[str, Any] | None:
    """The claim, or None for what makes none (a deletion, a quota). Ids and the pinned revision are stand-ins."""
    proposal, quote = preview.proposal, preview.decision.quote
    offering, environment = proposal.offering, proposal.environment
    if proposal.kind != "Create" or offering is None or environment is None:
        return None
    return render_claim(
        ClaimFacts(
            api_version=offering.api_version,
            kind=offering.kind,
            composition=offering.composition,
            composition_revision=NEWEST,
            instance_id=NOT_YET,
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
            quote_monthly=quote.monthly if quote else None,
            quote_currency=quote.currency if quote else "",
        )
    )
