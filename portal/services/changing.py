"""A change of a living instance, from its first delivery attempt to its end: observed as asked, refused, or overtaken.

    freeze     the instance is what was approved, and remembers what it was; an earlier change that is still being
               delivered is superseded
    note       observed as asked: done, and what it replaced is given back
    restore    refused by the control plane: the instance is what it was

In charge of: what an instance's spec, offering and claim are through all this, and when which holdings end. Not in
charge of: drafting, deciding or sending a change, or what a claim's conditions mean (domain.claim_status).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User

from portal.domain.decision import APPLIED, CHANGES
from portal.domain.difference import differences
from portal.domain.draft import Draft
from portal.domain.lifecycle import InstancePhase, RequestState, Verb
from portal.models import OPEN_STATES, Document, Instance, Membership, Request
from portal.ports import Applied, ObservedClaim
from portal.rendering.names import ANNOTATION_PREFIX
from portal.services import applying, holding, loading, locks, submitting, transitions
from portal.services.access import Actor, own_team_ids
from portal.services.errors import Conflict

SYSTEM = "changing"
SERVING = {InstancePhase.READY, InstancePhase.SUSPENDED}  # a claim in one of them is what its newest spec says
# States of a creation whose claim was not seen Ready.
_UNSEEN = [RequestState.APPROVED.value, RequestState.DELIVERING.value, RequestState.SUPERSEDED.value]
REQUEST = f"{ANNOTATION_PREFIX}request"


def freeze(request: Request, instance: Instance) -> None:
    """From here on the instance is what this change says; its claim is to be rendered anew. Under their locks."""
    request.replaces = {"spec": instance.spec, "claim": instance.claim, "document": instance.document_id}
    request.save(update_fields=["replaces"])
    earlier = instance.requests.filter(kind__in=APPLIED, state=RequestState.DELIVERING.value)
    _supersede(earlier.exclude(pk=request.pk).order_by("created_at"), request)
    instance.spec = request.spec
    if request.document is not None:
        instance.document = request.document


def restore(request: Request, instance: Instance) -> None:
    """The control plane refused it: the instance is what it was before, and holds what it held. Under their locks."""
    before = request.replaces
    if before is not None and request_of(instance.claim) == request.pk:
        instance.spec, instance.claim = before["spec"], before["claim"]
        instance.document = Document.objects.get(pk=before["document"])
        instance.save(update_fields=["spec", "claim", "document"])
    holding.give_up(request)


def overtake(instance: Instance, deletion: Request) -> None:
    """A deletion begins: no change comes through any more. What was being delivered may run until all of it is gone."""
    _supersede(instance.requests.filter(kind__in=CHANGES, state__in=OPEN_STATES).order_by("created_at"), deletion)


def unsettled(instance: Instance) -> uuid.UUID | None:
    """The change that the instance's claim was rendered for, if seeing it as asked would end or release something. Read
    without locks, to know which are wanted."""
    named = request_of(instance.claim)
    request = Request.objects.filter(pk=named, kind__in=CHANGES).first() if named else None
    if request is None:
        return None
    open_or_more = request.state == RequestState.DELIVERING or holding.overdue(instance, request)
    return request.pk if open_or_more else None


def note(request: Request, instance: Instance, claim: ObservedClaim, phase: InstancePhase) -> bool:
    """Take in a claim that was observed in `phase`: a change that it shows as asked is finished. True if it does.

    Under the locks of team chain, request and instance.
    """
    if request_of(instance.claim) != request.pk or claim.annotations.get(REQUEST) != str(request.pk):
        return False  # the state of before, or of somebody else's making
    applying.mark_applied(request, instance, Applied(claim.uid, claim.generation, claim.resource_version))
    if phase not in SERVING or not as_asked(instance, claim):
        return False
    finish_change(request, instance, claim)
    return True


def was_ready(instance: Instance) -> bool:
    """Whether it has ever been what was asked: then what isn't ready is no longer so, and not not yet."""
    made = instance.requests.filter(kind__in=APPLIED)
    if made.filter(state=RequestState.DONE.value).exists():
        return True
    return not made.filter(kind="Create", state__in=_UNSEEN).exists()


def as_asked(instance: Instance, claim: ObservedClaim) -> bool:
    """Whether every field that was asked for is in the claim, equal by its meaning. More (defaults, what the core keeps
    there) may be in it."""
    schema = loading.offering(instance.document).spec_schema
    return all(each.old is None for each in differences(instance.spec, claim.spec, schema))


def finish_change(request: Request, instance: Instance, claim: ObservedClaim) -> None:
    """It was observed as asked: it is done, and what it replaced is given back."""
    holding.settle(request)
    if request.state == RequestState.DELIVERING:
        transitions.move(request, Verb.FINISH, system=SYSTEM, data={"uid": claim.uid, "generation": claim.generation})
    transitions.publish_later(instance)


def propose_for_drift(instance: Instance, spec: Mapping[str, Any], reason: str) -> Request:
    """Ask, in its owner's name, for what others have made of an instance beyond what was approved. The portal proposed
    it (the audit log says so), and its owner has no vote on it.

    Raises Conflict when another change is open already, or nobody is left in whose name to ask; InvalidInput when this
    may not be asked for at all.
    """
    draft = Draft(kind="Change", instance=str(instance.pk), spec=dict(spec), reason=reason)
    return submitting.submit(draft, acting=_owner(instance), system="drift").request


def request_of(claim: Mapping[str, Any] | None) -> uuid.UUID | None:
    """The request that a claim was rendered for."""
    annotations = ((claim or {}).get("metadata") or {}).get("annotations") or {}
    try:
        return uuid.UUID(annotations.get(REQUEST, ""))
    except ValueError:
        return None


def _supersede(requests: Any, by: Request) -> None:
    for pk in list(requests.values_list("pk", flat=True)):
        data = {"by": str(by.pk), "kind": by.kind}
        transitions.move(locks.lock_request(pk), Verb.SUPERSEDE, system=SYSTEM, data=data)


def _owner(instance: Instance) -> Actor:
    """Whom it was made for, who asked for it, or an owner of its team: the first who is still there and may ask."""
    creation = instance.requests.filter(kind="Create").select_related("made_for", "requester").first()
    people = [creation.made_for, creation.requester] if creation else []
    chain = locks.team_chain(instance.team)
    owners = User.objects.filter(memberships__team__in=chain, memberships__role=Membership.Role.OWNER).distinct()
    for user in [*people, *owners.order_by("pk")[:20]]:
        if user is not None and user.is_active:
            actor = Actor(user)
            if actor.is_admin or instance.team_id in own_team_ids(actor):
                return actor
    raise Conflict(
        "nobody-to-ask-for",
        f"Nobody of team {instance.team.slug} is left who owns {instance.name}: give the team an owner.",
    )
