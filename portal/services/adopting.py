"""Imports claims that the portal doesn't know: from then on they are instances, counted and priced like all others.

    adopt       an instance and a request that is Done, with what they hold; nothing is written to the control plane
    take_over   the portal applies the claim: its labels, annotations and approval; the spec stays

A claim that this portal has made once (facts in its annotations) gets its ids back. In charge of: these rows. Not in
charge of: which claims there are (finding), or what to do after a restore (reconciling).
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import msgspec
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from portal.domain import quota
from portal.domain.decision import Decision, Inputs, Quote, UsageLine, digest
from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import Instance, Request, Team
from portal.ports import ControlPlane, ObservedClaim
from portal.rendering.approval_token import approval_of, with_approval
from portal.rendering.claim import ADOPTED_UID, ClaimFacts, render_claim, without_machinery
from portal.services import deciding, holding, journal, locks, pausing, reapplying, signing, transitions
from portal.services.errors import Conflict
from portal.services.finding import Found, manifest_of
from portal.services.proposal import Proposal


@dataclass(frozen=True)
class Figures:
    """What an import would count. `over`: lines of quota that it does not fit, in words."""

    demand: dict[str, int]
    quote: Quote | None
    over: tuple[str, ...]
    unlimited: tuple[str, ...]  # dimensions that no quota governs


def figures(found: Found, *, actor: User) -> Figures:
    """What importing it now would count. `actor` has no say in that."""
    if found.problems or found.team is None:
        return Figures({}, None, (), ())
    proposal = _proposal(found, found.team, actor)
    decision = deciding.decide(deciding.gather(proposal, locks.team_chain(found.team)))
    return _figures(found, proposal, decision)


def adopt(found: Found, *, actor: User) -> Instance:
    """Import it. Raises Conflict: it has problems, it is over a quota (with the figures), or it is known by now."""
    if found.problems or found.team is None or found.environment is None:
        raise Conflict("not-adoptable", f"{found.place}: {'; '.join(found.problems)}.")
    revision = _revision(found)
    signing.make_first_key()
    with transaction.atomic():
        chain = locks.lock_team_chain(found.team)
        _check_unknown(found)
        proposal = _proposal(found, found.team, actor)
        inputs = deciding.gather(proposal, chain)
        decision = deciding.decide(inputs)
        counted = _figures(found, proposal, decision)
        if counted.over:
            raise over_quota(found.place, counted.over)
        instance = _instance(found, found.team)
        request = _request(found, proposal, instance, counted.quote, revision)
        instance.claim = _claim(found, instance, request, revision)
        instance.save(update_fields=["claim"])
        record(request, inputs, decision, counted, actor=actor)
        data = {"uid": found.claim.uid, "claim": found.place, "ownerBy": found.owner_by, "signed": bool(found.signed)}
        journal.record("instance.adopt", actor=actor, instance=instance, request=request, data=data)
        transitions.publish_later(instance)
    _since(instance, request, found.claim.created_at)
    return instance


def record(request: Request, inputs: Inputs, decision: Decision, counted: Figures, *, actor: User) -> None:
    """Store an adopted request with its decision, and count what it holds as used. Under the locks of its team chain.

    The decision says what the policies think of it; nobody is asked, since it is there.
    """
    stored = deciding.store(request, "submission", inputs, decision)
    assert request.instance is not None  # noqa: S101 - what is adopted is an instance's
    chain = locks.team_chain(request.team)
    holding.reserve(request, request.instance, counted.demand, counted.quote, chain)
    codes = [reason.code for reason in decision.reasons]
    data = {"decision": stored.pk, "inputs": stored.inputs_digest, "codes": codes, "outcome": decision.outcome}
    transitions.move(request, Verb.ADOPT, actor=actor, data=data)
    holding.use(request)


def take_over(instance: Instance, plane: ControlPlane, *, actor: User) -> None:
    """Have the portal apply the claim of an adopted instance, in its delivery lane. Raises PortError at once where the
    control plane would refuse it: a conflict names field and manager. The pin of its composition is taken over by
    force: the core sets it by itself."""
    if instance.claim is None:
        raise ValueError(f"instance {instance.pk} has no claim")
    plane.dry_run(without_pin(instance.claim))
    with transaction.atomic():
        reapplying.ask(instance, why="taken over", actor=actor, force=True)


def without_pin(claim: dict[str, Any]) -> dict[str, Any]:
    """A claim without what Crossplane keeps in it."""
    return {**claim, "spec": without_machinery(claim["spec"])}


def signed_claim(claim: ObservedClaim, facts: ClaimFacts, signed: dict[str, Any]) -> dict[str, Any]:
    """What the portal has applied, of a claim whose approval was signed here: with the spec that was approved."""
    rendered = render_claim(dataclasses.replace(facts, spec=signed["spec"]))
    return with_approval(rendered, approval_of(manifest_of(claim)) or "", signed["ceilings"])


def over_quota(place: str, lines: tuple[str, ...]) -> Conflict:
    """Refuses an import that the database would not let through, with the way out."""
    return Conflict(
        "over-quota",
        f"{place} can't be counted: {'; '.join(lines)}. A ceiling is never overshot, nor raised by an import: have a "
        "quota request approved first (pages: Teams), then import it.",
    )


def lines_over(usage: tuple[UsageLine, ...]) -> tuple[str, ...]:
    """Those that have a limit and are above it, in words."""
    return tuple(
        f"{line.team} would hold {line.after} of {line.limit} {line.dimension}"
        for line in usage
        if line.limit is not None and not quota.fits(line)
    )


def quote_of(facts: ClaimFacts | None, decision: Decision) -> Quote | None:
    """The quote that was approved, where the claim says it in the same currency; else today's."""
    today = decision.quote
    if facts is None or facts.quote_monthly is None or today is None or facts.quote_currency != today.currency:
        return today
    return msgspec.structs.replace(today, monthly=facts.quote_monthly.quantize(Decimal("0.01")))


def _figures(found: Found, proposal: Proposal, decision: Decision) -> Figures:
    unlimited = tuple(line.dimension for line in decision.usage if line.limit is None)
    return Figures(
        deciding.demand_of(proposal),
        quote_of(found.facts if found.signed else None, decision),
        lines_over(decision.usage),
        unlimited,
    )


def _check_unknown(found: Found) -> None:
    """Somebody else may have imported it meanwhile."""
    named = pausing.uuid_of(found.facts.instance_id) if found.facts else None
    same = Instance.objects.filter(claim_uid=found.claim.uid).exclude(phase=InstancePhase.GONE.value)
    if same.exists() or (named and Instance.objects.filter(pk=named).exists()):
        raise Conflict("already-adopted", f"{found.place} is an instance of the portal's by now.")


def _proposal(found: Found, team: Team, actor: User) -> Proposal:
    facts = found.facts if found.signed else None  # what nobody has signed, anybody may have written
    return Proposal(
        kind="Create",
        requester=person(facts.requester if facts else "") or actor,
        made_for=person(facts.owner) if facts and facts.owner != facts.requester else None,
        team=team,
        spec=found.spec,
        environment=found.environment,
        offering=found.offering,
        document=found.document,
        name=found.name,
        namespace=found.claim.ref.namespace,
        reason=f"Adopted: it was on {found.control_plane} already.",
    )


def _instance(found: Found, team: Team) -> Instance:
    assert found.environment is not None  # noqa: S101 - adopt has looked
    return Instance.objects.create(
        id=uuid.UUID(found.facts.instance_id) if found.facts else uuid.uuid4(),
        name=found.name,
        team=team,
        environment=found.environment,
        offering=found.offering.name,
        document=found.document,
        namespace=found.claim.ref.namespace,
        spec=found.spec,
        claim_uid=found.claim.uid,
        phase=InstancePhase.PROVISIONING.value,
        message="Adopted; nothing has been observed of it yet.",
        since=timezone.now(),
    )


def _request(found: Found, proposal: Proposal, instance: Instance, quote: Quote | None, revision: str) -> Request:
    facts = found.facts
    named = pausing.uuid_of(facts.request_id) if facts else None
    free = named if named and not Request.objects.filter(pk=named).exists() else uuid.uuid4()
    return adopted_request(proposal, instance, quote, revision, request_id=free, generation=found.claim.generation)


def adopted_request(
    proposal: Proposal,
    instance: Instance,
    quote: Quote | None,
    revision: str,
    *,
    request_id: uuid.UUID,
    generation: int,
) -> Request:
    """The row of a request that was asked, approved and delivered without this database's knowing; not stored yet."""
    return Request(
        id=request_id,
        kind=proposal.kind,
        state=RequestState.DRAFT.value,
        team=proposal.team,
        environment=proposal.environment,
        instance=instance,
        offering=instance.offering,
        document=proposal.document,
        composition_revision=revision,
        name=instance.name,
        spec=proposal.spec,
        old=proposal.old,
        reason=proposal.reason,
        requester=proposal.requester,
        made_for=proposal.made_for,
        body_digest=digest({"adopted": str(request_id), "spec": proposal.spec}),
        quote_monthly=quote.monthly if quote else None,
        quote_currency=quote.currency if quote else "",
        quote_valid_until=quote.valid_until if quote else None,
        applied_at=timezone.now(),
        generation=generation,
    )


def _claim(found: Found, instance: Instance, request: Request, revision: str) -> dict[str, Any]:
    """What the portal would apply: the same spec, pinned where it is, with the portal's marks. The approval that is
    there stays where it was signed here."""
    facts, environment = found.facts, instance.environment
    if facts is not None and found.signed is not None:
        return signed_claim(found.claim, facts, found.signed)
    claim = render_claim(
        ClaimFacts(
            api_version=found.claim.ref.api_version,
            kind=found.claim.ref.kind,
            composition=facts.composition
            if facts
            else _machinery(found, "compositionRef") or found.offering.composition,
            composition_revision=revision,
            offering=found.offering.name,
            offering_digest=found.offering.digest,
            instance_id=str(instance.pk),
            instance_name=instance.name,
            name=found.claim.ref.name,
            namespace=instance.namespace,
            team=instance.team.slug,
            team_title=instance.team.title,
            environment=environment.slug,
            environment_labels=environment.labels,
            request_id=str(request.pk),
            requester=request.requester.username,
            owner=(request.made_for or request.requester).username,
            quote_monthly=request.quote_monthly,
            quote_currency=request.quote_currency,
            spec=instance.spec,
        )
    )
    claim["metadata"]["annotations"][ADOPTED_UID] = found.claim.uid
    return signing.approve(claim, found.offering)


def _revision(found: Found) -> str:
    revision = found.facts.composition_revision if found.facts else _machinery(found, "compositionRevisionRef")
    if not revision:
        raise Conflict(
            "not-adoptable",
            f"{found.place} has no compositionRevisionRef: Crossplane has not taken it up yet. Try again when it has.",
        )
    return revision


def _machinery(found: Found, key: str) -> str:
    reference = (found.claim.spec.get("crossplane") or {}).get(key) or {}
    return str(reference.get("name") or "")


def person(username: str) -> User | None:
    """Who is called so; None for an empty name."""
    return User.objects.filter(username=username).first() if username else None


def _since(instance: Instance, request: Request, created_at: dt.datetime) -> None:
    """Both are as old as the claim; a row's own time is that of its import."""
    Instance.objects.filter(pk=instance.pk).update(created_at=created_at)
    Request.objects.filter(pk=request.pk).update(created_at=created_at)
