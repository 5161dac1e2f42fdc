"""After a restore: what a control plane has against what the database remembers, and how the two come together again.

    compare    what each knows of what the other doesn't; writes nothing
    adopt      claims of instances that the database does not know, with their ids
    catch_up   a known instance whose claim is of a later request
    resume     go on, once nothing is left that would pause it again

Evidence is an approval that was signed here. What is gone on the control plane is ended by the mirror after the
resume, and what waits in the outbox goes out then: both are shown before. In charge of: comparing and these steps. Not
in charge of: pausing, or claims that nobody has signed (finding, adopting).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from portal.domain.decision import APPLIED, RequestKind
from portal.domain.difference import differences
from portal.domain.lifecycle import InstancePhase, Verb
from portal.models import UNDELIVERED_STATES, Document, Instance, OutboxRow, Pause, Request
from portal.ports import ControlPlane, ObservedClaim
from portal.rendering.claim import ClaimFacts, facts_from_claim
from portal.services import (
    adopting,
    deciding,
    delivering,
    finding,
    holding,
    journal,
    loading,
    locks,
    observing,
    outbox,
    pausing,
    transitions,
)
from portal.services.errors import Conflict
from portal.services.finding import Defaults, Found
from portal.services.proposal import Proposal


@dataclass(frozen=True)
class Newer:
    """A known instance whose claim is of a request that the database does not know as delivered."""

    instance: Instance
    claim: ObservedClaim
    signed: dict[str, Any]
    why: str


@dataclass(frozen=True)
class Comparison:
    """What one control plane has, against the database."""

    control_plane: str
    pause: Pause | None
    unknown: list[Found]  # signed here
    strangers: list[Found]  # not proven to be ours: for `manage.py adopt`
    newer: list[Newer]
    gone: list[Instance]  # whose claim is not there any more
    drifted: list[tuple[Instance, list[str]]]  # JSON pointers into the spec
    waiting: list[Request]  # what will be delivered

    @property
    def is_settled(self) -> bool:
        """Whether nothing is left that proves the database to be older."""
        return not self.unknown and not self.newer


def compare(plane: ControlPlane) -> Comparison:
    """Reads both. Raises PortError: a list that can't be complete is none."""
    claims = finding.all_claims(plane)
    found = finding.unknown_claims(plane, Defaults(), claims)
    known = [(claim, instance) for claim in claims if (instance := _instance_of(claim)) is not None]
    newer = [
        Newer(instance, claim, signed, why)
        for claim, instance in known
        if (signed := pausing.approval_of(claim)) and (why := pausing.unknown_to_us(claim))
    ]
    later = {each.instance.pk for each in newer}
    drifted = [(instance, _differences(instance, claim)) for claim, instance in known if instance.pk not in later]
    return Comparison(
        control_plane=plane.name,
        pause=Pause.objects.filter(control_plane=plane.name).first(),
        unknown=[each for each in found if each.signed],
        strangers=[each for each in found if not each.signed],
        newer=newer,
        gone=_gone(plane, claims),
        drifted=[(instance, fields) for instance, fields in drifted if fields],
        waiting=_waiting(plane.name),
    )


def catch_up(newer: Newer, *, actor: User) -> Instance:
    """Make the instance what its claim says, by the request that was signed. Raises Conflict, naming the figures, where
    a quota does not hold it."""
    facts = facts_from_claim(finding.manifest_of(newer.claim))
    with transaction.atomic():
        locks.lock_team_chain(newer.instance.team)
        requests = _lock_undelivered(newer.instance)
        instance = locks.lock_instance(newer.instance.pk)
        if not pausing.unknown_to_us(newer.claim):
            raise Conflict("already-adopted", f"{instance} is as its claim says by now.")
        named = uuid.UUID(newer.signed["request"])
        for request in requests:
            if request.pk == named or request.kind == "Create":  # what it was changed by came after its creation
                _as_delivered(request, newer.claim, actor)
        before = instance.spec
        _become(instance, newer, facts)
        if not any(request.pk == named for request in requests):
            _adopt_change(instance, newer, facts, named, before, actor)
        data = {"uid": newer.claim.uid, "request": str(named), "why": newer.why}
        journal.record("instance.catch-up", actor=actor, instance=instance, data=data)
        if instance.phase == InstancePhase.PENDING:
            transitions.set_phase(instance, InstancePhase.PROVISIONING, "Found on its control plane after a restore.")
        transitions.publish_later(instance)
    return instance


def resume(comparison: Comparison, *, actor: User) -> bool:
    """Go on with a control plane. False if it was not paused. Conflict while something is left that would pause it at
    once again."""
    left = [each.place for each in comparison.unknown if pausing.unknown_to_us(each.claim)] + [
        str(each.instance) for each in comparison.newer
    ]
    if left:
        raise Conflict(
            "not-settled",
            f"{len(left)} claims on {comparison.control_plane} are of requests that the database does not know "
            f"({', '.join(left[:10])}): import them (--adopt), or delete them there. It would pause again at once.",
        )
    return pausing.resume(comparison.control_plane, actor=actor)


def _instance_of(claim: ObservedClaim) -> Instance | None:
    named = observing.instance_id_of(claim)
    rows = Instance.objects.exclude(phase=InstancePhase.GONE.value).select_related("team", "environment", "document")
    instance = rows.filter(pk=named).first() if named else None
    return instance if instance is not None and instance.claim_uid in {"", claim.uid} else None


def _differences(instance: Instance, claim: ObservedClaim) -> list[str]:
    """Fields that were asked for and are not so in the claim."""
    if instance.claim is None:
        return []
    schema = loading.offering(instance.document).spec_schema
    return [each.pointer for each in differences(instance.spec, claim.spec, schema) if each.old is not None]


def _gone(plane: ControlPlane, claims: Sequence[ObservedClaim]) -> list[Instance]:
    there = {claim.uid for claim in claims}
    missing = [each for each in observing.living_instances(plane.name) if each.claim_uid not in there]
    found = [(each, plane.get(delivering.claim_ref(each))) for each in missing]
    return [instance for instance, claim in found if claim is None or claim.uid != instance.claim_uid]


def _waiting(control_plane: str) -> list[Request]:
    """Requests with a delivery in the outbox."""
    rows = OutboxRow.objects.filter(done_at=None, topic__in=["apply", "delete"]).order_by("id")
    ids = [row.payload["request"] for row in rows]
    found = Request.objects.filter(pk__in=ids, environment__control_plane=control_plane)
    return list(found.select_related("instance", "requester"))


def _lock_undelivered(instance: Instance) -> list[Request]:
    rows = instance.requests.filter(kind__in=APPLIED, state__in=UNDELIVERED_STATES).order_by("id")
    return [locks.lock_request(pk) for pk in rows.values_list("id", flat=True)]


def _as_delivered(request: Request, claim: ObservedClaim, actor: User) -> None:
    """Its votes or its delivery are not in the database any more; they were. What it reserved is used."""
    outbox.cancel(transitions.delivery_lane(request.instance), topics=["apply"], request=request.pk)
    request.applied_at, request.generation = timezone.now(), claim.generation
    request.save(update_fields=["applied_at", "generation"])
    transitions.move(request, Verb.ADOPT, actor=actor, data={"uid": claim.uid})
    holding.use(request)


def _become(instance: Instance, newer: Newer, facts: ClaimFacts) -> None:
    """The instance as its claim was rendered."""
    made_with = Document.objects.filter(kind=Document.Kind.OFFERING, digest=facts.offering_digest).first()
    if made_with is not None:
        instance.document = made_with
    instance.spec = newer.signed["spec"]
    instance.claim = adopting.signed_claim(newer.claim, facts, newer.signed)
    instance.claim_uid = newer.claim.uid
    instance.save(update_fields=["document", "spec", "claim", "claim_uid"])


def _adopt_change(
    instance: Instance, newer: Newer, facts: ClaimFacts, named: uuid.UUID, before: dict[str, Any], actor: User
) -> None:
    """The request that the claim is of, which the database does not know at all."""
    offering = loading.offering(instance.document)
    proposal = Proposal(
        kind=_kind(offering.suspended(before), offering.suspended(instance.spec)),
        requester=adopting.person(facts.requester) or actor,
        made_for=None,
        team=instance.team,
        spec=instance.spec,
        environment=instance.environment,
        instance=instance,
        offering=offering,
        document=instance.document,
        name=instance.name,
        namespace=instance.namespace,
        old=before,
        reason="Found on the control plane after a restore.",
    )
    inputs = deciding.gather(proposal, locks.team_chain(instance.team))
    decision = deciding.decide(inputs)
    over = adopting.lines_over(decision.usage)
    if over:
        raise adopting.over_quota(str(instance), over)
    if Request.objects.filter(pk=named).exists():
        raise Conflict("request-taken", f"{instance}: request {named} is another one in the database.")
    quote = adopting.quote_of(facts, decision)
    request = adopting.adopted_request(
        proposal,
        instance,
        quote,
        facts.composition_revision,
        request_id=named,
        generation=newer.claim.generation,
    )
    counted = adopting.Figures(deciding.demand_of(proposal), quote, (), ())
    adopting.record(request, inputs, decision, counted, actor=actor)


def _kind(was_suspended: bool, is_suspended: bool) -> RequestKind:
    if was_suspended == is_suspended:
        return "Change"
    return "Suspend" if is_suspended else "Resume"
