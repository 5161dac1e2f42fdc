"""From a draft that changes a living instance (Change, Suspend, Resume) to a proposal.

In charge of: whether it may be changed so, with which offering, and what exactly would differ. Not in charge of:
policies, quotas, money (deciding), or writing anything.

A Change follows the offering as it is now, if its spec is valid there, and the newest composition revision: that is how
an instance moves on. Suspending and resuming move nothing: they keep the offering and the revision that run.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from portal.domain.difference import Difference, differences
from portal.domain.draft import Draft
from portal.domain.json_limits import pointer
from portal.domain.lifecycle import InstancePhase
from portal.domain.offerings import Offering
from portal.domain.schema import Problem
from portal.models import OPEN_STATES, UNDELIVERED_STATES, Document, Instance, Request, Team
from portal.services import loading
from portal.services.access import Actor, instance_for, team_to_request_for
from portal.services.errors import Conflict, InvalidInput, ServiceError
from portal.services.proposal import Proposal, below, made_for, newest_revision

REVISION, OFFERING = "/compositionRevision", "/offering"  # beside /spec/…: what else a change may move


def change_of(draft: Draft, actor: Actor) -> Proposal:
    """The proposal. Raises InvalidInput with every problem, NotFound, Forbidden or Conflict."""
    instance = instance_for(actor, uuid.UUID(draft.instance))
    team = team_to_request_for(actor, instance.team.slug)
    _check_living(instance)
    if draft.kind == "Change":
        offering, document, spec = _changed(instance, draft.spec)
        revision = newest_revision(instance.environment, offering) or pinned_revision(instance.claim)
    else:
        offering, document = _suspendable(instance)
        spec = _switched(draft.kind == "Suspend", instance, offering)
        revision = pinned_revision(instance.claim)
    return _proposal(draft, actor, team, instance, offering, document, spec, revision)


def check_changeable(proposal: Proposal) -> None:
    """Raise Conflict while another change waits to be delivered, or a deletion is on its way; certain only under the
    team chain's locks."""
    requests = Request.objects.filter(instance=proposal.instance)
    deletion = requests.filter(kind="Delete", state__in=OPEN_STATES).first()
    if deletion is not None:
        asked = f"The deletion of {proposal.name} was asked for (request {deletion.pk})"
        raise Conflict("being-deleted", f"{asked}: withdraw that first, if it is not too late.")
    waiting = requests.filter(kind__in=["Change", "Suspend", "Resume"], state__in=UNDELIVERED_STATES).first()
    if waiting is not None:
        asked = f"An open {waiting.kind} request for {proposal.name} is there already ({waiting.pk}, {waiting.state})"
        raise Conflict("already-asked", f"{asked}: withdraw it or wait for it.")


def pinned_revision(claim: Mapping[str, Any] | None) -> str:
    """The composition revision that a claim was rendered with."""
    spec = (claim or {}).get("spec") or {}
    machinery = spec.get("crossplane") or spec
    return str((machinery.get("compositionRevisionRef") or {}).get("name") or "")


def _proposal(
    draft: Draft,
    actor: Actor,
    team: Team,
    instance: Instance,
    offering: Offering,
    document: Document,
    spec: dict[str, Any],
    revision: str,
) -> Proposal:
    old = offering.with_defaults(instance.spec)
    if problems := [below("/spec", problem) for problem in offering.validate_change(old, spec)]:
        raise InvalidInput(problems)
    difference = _difference(instance, document, offering, old, spec, revision)
    if not difference:
        message = f"this is what {instance.name} is already; change something, or leave it as it is"
        raise InvalidInput([Problem("/spec", "unchanged", message)])
    creation = instance.requests.filter(kind="Create").order_by("created_at").first()
    return Proposal(
        kind=draft.kind,
        requester=actor.user,
        made_for=made_for(draft, team),
        team=team,
        spec=spec,
        environment=instance.environment,
        instance=instance,
        offering=offering,
        document=document,
        name=instance.name,
        namespace=instance.namespace,
        old=old,
        revision=revision,
        difference=difference,
        labels=creation.labels if creation else {},
        reason=draft.reason,
    )


def _check_living(instance: Instance) -> None:
    if instance.phase == InstancePhase.GONE:
        raise Conflict("already-gone", f"{instance.name} is gone; there is nothing to change. Request it anew.")
    if not instance.claim_uid:
        raise Conflict(
            "not-delivered",
            f"{instance.name} is not on its control plane yet: wait until it is, or withdraw its request and ask anew.",
        )


def _changed(instance: Instance, asked: dict[str, Any]) -> tuple[Offering, Document, dict[str, Any]]:
    """With which offering the new spec is valid, and the whole of it."""
    offering, document = following(instance, asked)
    kept, problems = _keeps_suspended(instance, offering, asked)
    problems += [below("/spec", problem) for problem in offering.validate(kept)]
    if problems:
        raise InvalidInput(problems)
    return offering, document, offering.with_defaults(kept)


def following(instance: Instance, asked: dict[str, Any]) -> tuple[Offering, Document]:
    """The offering as it is now; the instance's own where the spec is only valid there, or no other is left."""
    own, document = loading.offering(instance.document), instance.document
    try:
        now, active = loading.active_offering(instance.offering)
    except ServiceError:
        return own, document
    same_claim = (now.group, now.kind, now.plural) == (own.group, own.kind, own.plural)
    if not same_claim or (now.validate(asked) and not own.validate(asked)):
        return own, document
    return now, active


def _keeps_suspended(
    instance: Instance, offering: Offering, asked: dict[str, Any]
) -> tuple[dict[str, Any], list[Problem]]:
    """A change says nothing of being suspended: what it is now stays."""
    field = offering.suspend
    if field is None:
        return asked, []
    now = instance.spec.get(field) is True
    if field in asked and asked[field] is not now:
        other = "Resume" if now else "Suspend"
        message = f"is changed by a request of kind {other} alone; leave it out"
        return asked, [Problem(f"/spec{pointer(field)}", "not-here", message)]
    return {**asked, field: now}, []


def _suspendable(instance: Instance) -> tuple[Offering, Document]:
    """The offering that the instance follows; the one of now if only that can be suspended."""
    own = loading.offering(instance.document)
    if own.suspend is not None:
        return own, instance.document
    now, active = loading.active_offering(instance.offering)
    if now.suspend is None:
        message = f"A {now.title.lower()} can't be suspended; delete it, or change it to take less."
        raise Conflict("not-suspendable", message)
    return now, active


def _switched(suspend: bool, instance: Instance, offering: Offering) -> dict[str, Any]:
    spec = offering.with_defaults({**instance.spec, str(offering.suspend): suspend})
    if offering.suspended(instance.spec) == suspend:
        state = "suspended already" if suspend else "not suspended"
        raise Conflict("already-so", f"{instance.name} is {state}, or will be once its last change is delivered.")
    if problems := [below("/spec", problem) for problem in offering.validate(spec)]:
        raise InvalidInput(problems)
    return spec


def _difference(
    instance: Instance,
    document: Document,
    offering: Offering,
    old: dict[str, Any],
    spec: dict[str, Any],
    revision: str,
) -> tuple[Difference, ...]:
    found = [
        Difference(f"/spec{each.pointer}", each.old, each.new) for each in differences(old, spec, offering.spec_schema)
    ]
    before = pinned_revision(instance.claim)
    if revision != before:
        found.append(Difference(REVISION, before, revision))
    if document.digest != instance.document_id:
        found.append(Difference(OFFERING, instance.document_id[:12], document.digest[:12]))
    return tuple(found)
