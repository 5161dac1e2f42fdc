"""What is asked, found and checked: all that a decision needs to know, whichever kind of request it is.

In charge of: the shape, and what several kinds have in common. Not in charge of: making one of a draft (drafting,
drafting_change), or deciding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User

from portal.domain.decision import RequestFacts, RequestKind
from portal.domain.difference import Difference
from portal.domain.draft import Draft
from portal.domain.json_limits import pointer
from portal.domain.offerings import Offering
from portal.domain.schema import Problem
from portal.models import CompositionRevision, Document, Environment, Instance, Team
from portal.services.errors import InvalidInput
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
    revision: str = ""  # of the composition; empty while the mirror has seen none: then delivery pins the newest
    difference: tuple[Difference, ...] = ()  # of a change, as people vote on it
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


def made_for(draft: Draft, team: Team) -> User | None:
    """Somebody of the team or of a group above it: whom it is made for has no vote, so it can't be just anybody."""
    if not draft.made_for:
        return None
    user = User.objects.filter(username=draft.made_for, is_active=True, memberships__team__in=team_chain(team)).first()
    if user is None:
        message = f"nobody active in {team.slug}, or in a group above it, is called '{draft.made_for}'"
        raise InvalidInput([Problem("/madeFor", "unknown-person", message)])
    return user


def newest_revision(environment: Environment, offering: Offering) -> str:
    """The newest revision of the composition that the mirror saw; empty while it has seen none."""
    seen = CompositionRevision.objects.filter(
        control_plane=environment.control_plane, composition=offering.composition
    ).first()
    return seen.revision if seen else ""


def refuse_suspended(offering: Offering, spec: Mapping[str, Any]) -> Iterator[Problem]:
    """To be suspended is asked for by a request of that kind, so that its price and quota are seen as that."""
    if offering.suspended(spec):
        message = "is set by a request of kind Suspend, once the instance is there; leave it out"
        yield Problem(f"/spec{pointer(str(offering.suspend))}", "not-here", message)


def below(prefix: str, problem: Problem) -> Problem:
    """The problem of a part, as one of the whole body."""
    return Problem(prefix + problem.pointer, problem.code, problem.message)
