"""From a draft to a proposal: finds what it names, and checks it against what governs, before anything is locked.

In charge of: existence, permission to ask, the spec against its schema, names. Not in charge of: policies, quotas,
money (deciding), or writing anything.
"""

from __future__ import annotations

import uuid

from django.utils import timezone

from portal.domain.decision import CHANGES
from portal.domain.draft import Draft
from portal.domain.lifecycle import InstancePhase
from portal.domain.schema import Problem
from portal.models import OPEN_STATES, Environment, Instance, Request
from portal.rendering.names import NamingError, namespace
from portal.services import loading
from portal.services.access import Actor, instance_for, team_to_request_for
from portal.services.drafting_change import change_of, check_changeable
from portal.services.errors import Conflict, InvalidInput
from portal.services.proposal import Proposal, below, made_for, newest_revision, refuse_suspended

__all__ = ["Proposal", "check_free", "resolve"]


def resolve(draft: Draft, actor: Actor) -> Proposal:
    """The proposal. Raises InvalidInput with every problem, NotFound, Forbidden or Conflict."""
    actor.needs("request")
    if draft.kind in CHANGES:
        return change_of(draft, actor)
    return {"Create": _create, "Delete": _delete, "Quota": _quota}[draft.kind](draft, actor)


def _create(draft: Draft, actor: Actor) -> Proposal:
    team = team_to_request_for(actor, draft.team)
    environment = Environment.objects.filter(slug=draft.environment).first()
    if environment is None:
        known = ", ".join(Environment.objects.values_list("slug", flat=True)[:20]) or "none yet"
        raise InvalidInput(
            [Problem("/environment", "unknown-environment", f"'{draft.environment}' is not one of: {known}")]
        )
    offering, document = loading.active_offering(draft.offering)
    if offering.deprecation is not None and timezone.localdate() > offering.deprecation.after:
        ended = f"'{offering.name}' takes no new requests since {offering.deprecation.after}"
        raise Conflict("offering-deprecated", f"{ended}: {offering.deprecation.message}")
    try:
        place = namespace(environment.namespace_rule, team.slug, environment.slug)
    except NamingError as error:
        raise InvalidInput([Problem("/team", error.code, error.message)]) from None
    problems = [below("/name", p) for p in offering.check_name(draft.name, place)]
    problems += [below("/spec", p) for p in offering.validate(draft.spec)]
    problems += refuse_suspended(offering, draft.spec)
    if problems:
        raise InvalidInput(problems)
    return Proposal(
        kind="Create",
        requester=actor.user,
        made_for=made_for(draft, team),
        team=team,
        spec=offering.with_defaults(draft.spec),
        environment=environment,
        offering=offering,
        document=document,
        name=draft.name,
        namespace=place,
        revision=newest_revision(environment, offering),
        labels=draft.labels,
        reason=draft.reason,
    )


def _delete(draft: Draft, actor: Actor) -> Proposal:
    instance = instance_for(actor, uuid.UUID(draft.instance))
    team = team_to_request_for(actor, instance.team.slug)
    if instance.phase == InstancePhase.GONE:
        raise Conflict("already-gone", f"{instance.name} is gone already; there is nothing to delete.")
    if instance.claim is None:
        raise Conflict("withdraw-first", f"{instance.name} was not delivered yet: withdraw its request instead.")
    return Proposal(
        kind="Delete",
        requester=actor.user,
        made_for=made_for(draft, team),
        team=team,
        spec=instance.spec,
        environment=instance.environment,
        instance=instance,
        offering=loading.offering(instance.document),
        document=instance.document,
        name=instance.name,
        namespace=instance.namespace,
        old=instance.spec,
        revision=newest_revision(instance.environment, loading.offering(instance.document)),
        reason=draft.reason,
    )


def _quota(draft: Draft, actor: Actor) -> Proposal:
    team = team_to_request_for(actor, draft.team)
    dimension, limit = draft.spec["dimension"], int(draft.spec["limit"])
    current = team.quotas.filter(dimension=dimension).first()
    return Proposal(
        kind="Quota",
        requester=actor.user,
        made_for=made_for(draft, team),
        team=team,
        spec={"dimension": dimension, "limit": limit},
        old={"dimension": dimension, "limit": current.limit} if current else None,
        reason=draft.reason,
    )


def check_free(proposal: Proposal) -> None:
    """Raise Conflict when something living has the name already, or the same is being asked for; certain only under the
    team chain's locks."""
    if proposal.kind == "Quota":
        _check_not_asked(proposal)
    if proposal.kind in CHANGES:
        check_changeable(proposal)
    if proposal.kind != "Create":
        return
    place, name = proposal.namespace, proposal.name
    taken = Instance.objects.filter(
        environment=proposal.environment,
        namespace=place,
        offering=proposal.offering.name if proposal.offering else "",
        name=name,
    )
    if taken.exclude(phase=InstancePhase.GONE).exists():
        raise Conflict("name-taken", f"{place} has a living '{name}' already: choose another name, or delete that one.")


def _check_not_asked(proposal: Proposal) -> None:
    """Two open requests for one quota would each show approvers a change from a limit that the other alters."""
    dimension = proposal.spec["dimension"]
    waiting = Request.objects.filter(kind="Quota", team=proposal.team, spec__dimension=dimension, state__in=OPEN_STATES)
    found = waiting.first()
    if found is not None:
        asked = f"An open request for {proposal.team.slug}'s quota of {dimension} is there already ({found.pk})"
        raise Conflict("already-asked", f"{asked}: withdraw it or wait for it.")
