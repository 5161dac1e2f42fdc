"""Preview and submit: the same code, of which a preview writes nothing.

In charge of: deciding a draft under the locks of its team chain, reserving what it takes, and what follows at once.
Not in charge of: what is wrong with a draft (drafting), votes (approving), delivery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from portal.domain.decision import APPLIED, CHANGES, Decision, Inputs, digest, to_json
from portal.domain.draft import Draft
from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import Instance, Request
from portal.services import deciding, governing, holding, journal, locks, transitions
from portal.services.access import Actor
from portal.services.drafting import check_free, resolve
from portal.services.errors import Conflict
from portal.services.proposal import Proposal


@dataclass(frozen=True)
class Preview:
    """What would be decided now, of what. Nothing was written, and nothing is held for it."""

    proposal: Proposal
    inputs: Inputs
    decision: Decision


@dataclass(frozen=True)
class Submitted:
    """`created` False: an earlier submission with the same key and body; this is its request as it stands now."""

    request: Request
    created: bool


def preview(draft: Draft, *, acting: Actor) -> Preview:
    """What submitting this now would bring. Raises what submit raises."""
    proposal = resolve(draft, acting)
    check_free(proposal)
    inputs = deciding.gather(proposal, locks.team_chain(proposal.team))
    return Preview(proposal, inputs, deciding.decide(inputs))


def submit(draft: Draft, *, acting: Actor, system: str = "") -> Submitted:
    """Decide and store a request; a denial is stored too. Raises InvalidInput, NotFound, Forbidden, Conflict.

    `system`: the part of the portal that proposes it by itself, in the name of `acting`, who has no vote on it.
    """
    acting.needs("request")
    body = digest(draft)
    earlier = _replayed(draft, body, acting)
    if earlier:
        return Submitted(earlier, created=False)
    proposal = resolve(draft, acting)
    try:
        with transaction.atomic():
            return _submit(draft, body, proposal, acting, system)
    except IntegrityError as error:
        return _lost_race(error, draft, body, acting)


def _submit(draft: Draft, body: str, proposal: Proposal, acting: Actor, system: str) -> Submitted:
    chain = locks.lock_team_chain(proposal.team)
    earlier = _replayed(draft, body, acting)  # the same click may have come through while this one waited for the lock
    if earlier:
        return Submitted(earlier, created=False)
    if proposal.kind in CHANGES:
        proposal = resolve(draft, acting)  # what it changes may have become another while this one waited for the lock
    check_free(proposal)
    inputs = deciding.gather(proposal, chain)
    decision = deciding.decide(inputs)
    instance = proposal.instance or _instance(proposal, decision)
    quote = decision.quote
    request = Request(
        kind=proposal.kind,
        state=RequestState.DRAFT.value,
        team=proposal.team,
        environment=proposal.environment,
        instance=instance,
        offering=proposal.offering.name if proposal.offering else "",
        document=proposal.document,
        composition_revision=proposal.revision,
        name=proposal.name,
        spec=proposal.spec,
        old=proposal.old,
        difference=[to_json(each) for each in proposal.difference],
        labels=proposal.labels,
        reason=proposal.reason,
        requester=acting.user,
        made_for=proposal.made_for,
        idempotency_key=draft.idempotency_key or None,
        body_digest=body,
        quote_monthly=quote.monthly if quote else None,
        quote_currency=quote.currency if quote else "",
        quote_valid_until=quote.valid_until if quote else None,
    )
    record = deciding.store(request, "submission", inputs, decision)
    verb = {"Allowed": Verb.ALLOW, "NeedsApproval": Verb.ASK, "Denied": Verb.DENY}[decision.outcome]
    data = {"decision": record.pk, "inputs": record.inputs_digest, "codes": [r.code for r in decision.reasons]}
    if decision.outcome != "Denied" and instance is not None and proposal.kind in APPLIED:
        holding.reserve(request, instance, deciding.demand_of(proposal), quote, chain)
    deciding.open_stages(request, decision)
    who: dict[str, Any] = {"system": system} if system else {"actor": acting.user}
    transitions.move(request, verb, **who, data=data)
    if request.state == RequestState.APPROVED:
        carry_out(request)
    return Submitted(request, created=True)


def carry_out(request: Request) -> None:
    """What an approval sets off, in its transaction: a governed value is written, all else is queued for delivery."""
    if request.kind == "Quota":
        governing.write_quota(request)
    else:
        transitions.deliver_later(request)


def _instance(proposal: Proposal, decision: Decision) -> Instance | None:
    if proposal.kind != "Create" or decision.outcome == "Denied":
        return None
    if proposal.environment is None or proposal.document is None:
        raise ValueError("a creation has an environment and an offering")
    instance = Instance.objects.create(
        name=proposal.name,
        team=proposal.team,
        environment=proposal.environment,
        offering=proposal.document.name,
        document=proposal.document,
        namespace=proposal.namespace,
        spec=proposal.spec,
        phase=InstancePhase.PENDING.value,
        since=timezone.now(),
    )
    journal.record("instance.create", actor=proposal.requester, instance=instance, data={"name": instance.name})
    return instance


def _replayed(draft: Draft, body: str, acting: Actor) -> Request | None:
    if not draft.idempotency_key:
        return None
    earlier = Request.objects.filter(requester=acting.user, idempotency_key=draft.idempotency_key).first()
    if earlier is not None and earlier.body_digest != body:
        raise Conflict(
            "idempotency-key-reused",
            f"The key '{draft.idempotency_key}' was used for another body, in request {earlier.pk}. "
            "Use a new key for a new request.",
        )
    return earlier


def _lost_race(error: IntegrityError, draft: Draft, body: str, acting: Actor) -> Submitted:
    """Two at once: the database let one through. Say to the other what it would have been told a moment later."""
    earlier = _replayed(draft, body, acting)
    if earlier is not None:
        return Submitted(earlier, created=False)
    text = str(error)
    if "one_living_instance_per_name" in text:
        raise Conflict("name-taken", f"A living '{draft.name}' is there already: choose another name.") from None
    if "one_open_request_per_instance_and_kind" in text or "one_open_change_per_instance" in text:
        raise Conflict("already-asked", f"An open {draft.kind} request for this instance is there already.") from None
    raise error
