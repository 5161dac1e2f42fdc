"""From a draft to a proposal: finds what it names, and checks it against what governs, before anything is locked.

In charge of: existence, permission to ask, the spec against its schema, names. Not in charge of: policies, quotas,
money (deciding), or writing anything.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from portal.domain.decision import RequestFacts, RequestKind
from portal.domain.draft import Draft
from portal.domain.lifecycle import InstancePhase
from portal.domain.offerings import Offering
from portal.domain.schema import Problem
from portal.models import OPEN_STATES, Document, Environment, Instance, Request, Team
from portal.rendering.names import NamingError, namespace
from portal.services import loading
from portal.services.access import Actor, instance_for, team_to_request_for
from portal.services.errors import Conflict, InvalidInput
from portal.services.locks import team_chain


@dataclass(frozen=True)
class Proposal:
    """All that a decision needs to know of what is asked. `offering` None: a governed value (a quota)."""

    kind: RequestKind
    requester: User
    made_for: User | None
    team: Team
    spec: dict[str, Any]
    environment: Environment | None = None
    instance: Instance | None = None
    offering: Offering | None = None
    document: Document | None = None
    name: str = ""
    namespace: str = ""
    old: dict[str, Any] | None = None
    labels: dict[str, str] = field(default_factory=dict)
    reason: str = ""

    def facts(self) -> RequestFacts:
        """What policies see of it."""
        groups = self.requester.groups.order_by().values_list("name", flat=True)
        return RequestFacts(
            kind=self.kind,
            requester=self.requester.username,
            groups=tuple(sorted(groups)),
            team=self.team.slug,
            environment=self.environment.slug if self.environment else "",
            # The environment's labels win: nobody gets out of a policy for tier=prod by asking with tier=dev.
            labels={**self.labels, **(self.environment.labels if self.environment else {})},
            reason=self.reason,
        )


def resolve(draft: Draft, actor: Actor) -> Proposal:
    """The proposal. Raises InvalidInput with every problem, NotFound, Forbidden or Conflict."""
    actor.needs("request")
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
    problems = [_below("/name", p) for p in offering.check_name(draft.name, place)]
    problems += [_below("/spec", p) for p in offering.validate(draft.spec)]
    if problems:
        raise InvalidInput(problems)
    return Proposal(
        kind="Create",
        requester=actor.user,
        made_for=_made_for(draft, team),
        team=team,
        spec=offering.with_defaults(draft.spec),
        environment=environment,
        offering=offering,
        document=document,
        name=draft.name,
        namespace=place,
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
        made_for=_made_for(draft, team),
        team=team,
        spec=instance.spec,
        environment=instance.environment,
        instance=instance,
        offering=loading.offering(instance.document),
        document=instance.document,
        name=instance.name,
        namespace=instance.namespace,
        old=instance.spec,
        reason=draft.reason,
    )


def _quota(draft: Draft, actor: Actor) -> Proposal:
    team = team_to_request_for(actor, draft.team)
    dimension, limit = draft.spec["dimension"], int(draft.spec["limit"])
    current = team.quotas.filter(dimension=dimension).first()
    return Proposal(
        kind="Quota",
        requester=actor.user,
        made_for=_made_for(draft, team),
        team=team,
        spec={"dimension": dimension, "limit": limit},
        old={"dimension": dimension, "limit": current.limit} if current else None,
        reason=draft.reason,
    )


def _made_for(draft: Draft, team: Team) -> User | None:
    """Somebody of the team or of a group above it: whom it is made for has no vote, so it can't be just anybody."""
    if not draft.made_for:
        return None
    user = User.objects.filter(username=draft.made_for, is_active=True, memberships__team__in=team_chain(team)).first()
    if user is None:
        message = f"nobody active in {team.slug}, or in a group above it, is called '{draft.made_for}'"
        raise InvalidInput([Problem("/madeFor", "unknown-person", message)])
    return user


def check_free(proposal: Proposal) -> None:
    """Raise Conflict when something living has the name already, or the same quota is being asked for; certain only
    under the team chain's locks."""
    if proposal.kind == "Quota":
        _check_not_asked(proposal)
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


def _below(prefix: str, problem: Problem) -> Problem:
    return Problem(prefix + problem.pointer, problem.code, problem.message)
