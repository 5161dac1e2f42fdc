"""The one place that decides who may see and do what. Everything else asks here.

What one may not see is not there (404); what one sees but may not do is refused with the reason (403). Membership in a
group of teams counts for every team below it. Nobody, superusers included, votes on their own request.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from portal.domain.approval import Ownership
from portal.domain.decision import CHANGES
from portal.domain.lifecycle import RequestState
from portal.models import AuditEvent, Budget, Instance, Membership, Quota, Request, Stage, Team
from portal.services.errors import Forbidden, NotFound
from portal.services.locks import team_chain

ADMINS = "platform-admins"
AUDITORS = "auditors"
SCOPES = {
    "read": "read everything that the person may see",
    "request": "submit and withdraw requests",
    "approve": "vote on requests",
    "feed": "read the catalog feed",
}


def _found(start: str, step: str) -> str:
    """SQL for the ids that `start` selects and all that `step` finds from those in `found`, whatever the depth."""
    return f"WITH RECURSIVE found(id) AS ({start} UNION {step}) SELECT id FROM found"  # noqa: S608 - constants of this module


_GIVEN = "SELECT unnest(%(teams)s::bigint[])"
_MEMBER = "SELECT team_id FROM portal_membership WHERE user_id = %(user)s"
_BELOW = "SELECT team.id FROM portal_team team JOIN found ON team.parent_id = found.id"
_ABOVE = "SELECT team.parent_id FROM portal_team team JOIN found ON team.id = found.id WHERE team.parent_id IS NOT NULL"
_GROUPS = (
    "SELECT name FROM auth_group JOIN auth_user_groups mine ON mine.group_id = auth_group.id"
    " WHERE mine.user_id = %(user)s ORDER BY name"
)
_STANDING = f"SELECT ARRAY({_GROUPS}), ARRAY({_found(_MEMBER, _BELOW)})"


@dataclass(frozen=True)
class Actor:
    """Who is at the door. `scopes` None: a signed-in person, limited by nothing but who they are."""

    user: User
    scopes: frozenset[str] | None = None
    _standing: list[tuple[list[str], set[int]]] = field(default_factory=list, repr=False, compare=False)

    def has(self, scope: str) -> bool:
        """Whether the token at the door has this scope; a signed-in person has all of them."""
        return self.scopes is None or scope in self.scopes

    def needs(self, scope: str) -> None:
        """Raise Forbidden unless the token at the door has this scope."""
        if not self.has(scope):
            have = ", ".join(sorted(self.scopes or ())) or "none"
            raise Forbidden("missing-scope", f"This needs a token with scope '{scope}'; yours has: {have}.")

    def anew(self) -> Actor:
        """The same person, whose standing is asked for again: under a lock, what was read before it may be over."""
        return Actor(User.objects.get(pk=self.user.pk), self.scopes)

    def groups(self) -> list[str]:
        """Names of the approver groups this person is in."""
        return self.standing()[0]

    def standing(self) -> tuple[list[str], set[int]]:
        """Names of one's groups, ids of one's teams (also through a group above them). Asked once per actor."""
        if not self._standing:
            with connection.cursor() as cursor:
                cursor.execute(_STANDING, {"user": self.user.pk})
                groups, teams = cursor.fetchone()
                self._standing.append((groups, set(teams)))
        return self._standing[0]

    @property
    def is_admin(self) -> bool:
        return ADMINS in self.groups()

    @property
    def sees_all(self) -> bool:
        return self.is_admin or AUDITORS in self.groups()


def descendants(team_ids: set[int]) -> set[int]:
    """These teams and every team below them."""
    return _walk(_GIVEN, _BELOW, team_ids)


def ancestors(team_ids: set[int]) -> set[int]:
    """These teams and every group above them."""
    return _walk(_GIVEN, _ABOVE, team_ids)


def own_team_ids(actor: Actor) -> set[int]:
    """Teams that this person is in, directly or through a group above."""
    return actor.standing()[1]


def _walk(start: str, step: str, team_ids: set[int]) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(_found(start, step), {"teams": list(team_ids)})
        return {pk for (pk,) in cursor.fetchall()}


def visible_teams(actor: Actor) -> QuerySet[Team]:
    teams = Team.objects.select_related("parent")
    if actor.sees_all:
        return teams
    return teams.filter(pk__in=ancestors(own_team_ids(actor)))


def visible_requests(actor: Actor) -> QuerySet[Request]:
    """Own teams' requests, one's own, those made for one, and those whose stages ask one's groups."""
    requests = Request.objects.all()
    if actor.sees_all:
        return requests
    # The stages alone, without a second look at all requests: a tenth of the time at 10,000 of them.
    asked = Exists(Stage.objects.filter(request=OuterRef("pk"), group__in=actor.groups()))
    return requests.filter(Q(team__in=own_team_ids(actor)) | Q(requester=actor.user) | Q(made_for=actor.user) | asked)


def visible_instances(actor: Actor) -> QuerySet[Instance]:
    instances = Instance.objects.all()
    if actor.sees_all:
        return instances
    asked = Exists(Stage.objects.filter(request__instance=OuterRef("pk"), group__in=actor.groups()))
    return instances.filter(Q(team__in=own_team_ids(actor)) | asked)


def visible_quotas(actor: Actor) -> QuerySet[Quota]:
    return Quota.objects.filter(team__in=visible_teams(actor)).select_related("team")


def visible_budgets(actor: Actor) -> QuerySet[Budget]:
    return Budget.objects.filter(team__in=visible_teams(actor)).select_related("team")


def visible_audit(actor: Actor) -> QuerySet[AuditEvent]:
    """Auditors and admins see all; others the steps of requests and instances that they see."""
    events = AuditEvent.objects.select_related("actor", "team")
    if actor.sees_all:
        return events
    return events.filter(
        Q(request__in=visible_requests(actor).values("pk")) | Q(instance__in=visible_instances(actor).values("pk"))
    )


def request_for(actor: Actor, request_id: uuid.UUID) -> Request:
    """The request, or NotFound when it isn't there or not theirs to see."""
    found = visible_requests(actor).filter(pk=request_id).select_related("team", "instance").first()
    if found is None:
        raise NotFound("request", request_id)
    return found


def request_values(actor: Actor, request_id: uuid.UUID, fields: Sequence[str]) -> dict[str, Any]:
    """These fields of the request that request_for finds, as plain values, in one query."""
    found: dict[str, Any] | None = visible_requests(actor).filter(pk=request_id).values(*fields).first()
    if found is None:
        raise NotFound("request", request_id)
    return found


def instance_for(actor: Actor, instance_id: uuid.UUID) -> Instance:
    found = visible_instances(actor).filter(pk=instance_id).select_related("team", "environment", "document").first()
    if found is None:
        raise NotFound("instance", instance_id)
    return found


def team_to_request_for(actor: Actor, slug: str) -> Team:
    """The team, if this person may submit for it: a member of it or of a group above, or an admin."""
    team = Team.objects.filter(slug=slug).first()
    if team is not None and (team.pk in own_team_ids(actor) or actor.is_admin):
        return team
    if team is None or not visible_teams(actor).filter(pk=team.pk).exists():
        raise NotFound("team", slug)
    raise Forbidden("not-a-member", f"Only members of {team.slug} (or of a group above it) can request for it.")


def ownership(request: Request) -> Ownership:
    """Whose own request a stored one is."""
    return ownership_of(request.kind, request.requester, request.made_for, request.team, request.instance)


def ownership_of(
    kind: str, requester: User, made_for: User | None, team: Team, instance: Instance | None = None
) -> Ownership:
    """Whose own request it is: requester, made-for, and for a quota everyone who gains from it; for a change of an
    instance also whose that is, and who asked for the change that this one would replace."""
    owners, before = _whose(instance) if instance is not None and kind in CHANGES else (set(), set())
    return Ownership(
        kind=kind,  # type: ignore[arg-type]  # written from RequestKind alone
        requesters=frozenset({requester.username} | before),
        made_for=frozenset(({made_for.username} if made_for else set()) | owners),
        gaining=frozenset(gaining_members(team)) if kind == "Quota" else frozenset(),
    )


def _whose(instance: Instance) -> tuple[set[str], set[str]]:
    """(whose instance it is, who asked for a change of it that is being delivered)."""
    owners: set[str] = set()
    asked: set[str] = set()
    rows = instance.requests.filter(Q(kind="Create") | Q(kind__in=CHANGES, state=RequestState.DELIVERING.value))
    for kind, requester, made_for in rows.values_list("kind", "requester__username", "made_for__username"):
        (owners if kind == "Create" else asked).update(name for name in (requester, made_for) if name)
    return owners, asked


def gaining_members(team: Team) -> set[str]:
    """User names of all who would gain from a higher quota of this team: its members, those of groups above, who act
    for it, and those of teams below, who share in it."""
    teams = {member.pk for member in team_chain(team)} | descendants({team.pk})
    return set(Membership.objects.filter(team__in=teams).values_list("user__username", flat=True))


def approver_members(groups: Collection[str]) -> dict[str, set[str]]:
    """User names of the active members of each approver group."""
    members: dict[str, set[str]] = {name: set() for name in groups}
    rows = User.objects.filter(is_active=True, groups__name__in=groups)
    for username, group in rows.values_list("username", "groups__name"):
        if group in members:
            members[group].add(username)
    return members


def may_read_feed(actor: Actor) -> None:
    """The feed shows every team's entities: a service token with scope `feed`, or someone who sees all."""
    actor.needs("feed")
    if not (actor.sees_all or (actor.scopes is not None and "feed" in actor.scopes)):
        raise Forbidden("not-a-service", "The catalog feed needs a service token with scope 'feed'.")
