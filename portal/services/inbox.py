"""Which requests wait for whom: the approver's inbox as a query, so that it can be counted and paged.

In charge of: the same rules as `approving.why_not`, said for many requests at once. Not in charge of: deciding whether
a vote counts: that is `approving`, under the request's lock. Reads only.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from portal.domain.lifecycle import RequestState
from portal.models import Membership, Request, Stage
from portal.services import approving
from portal.services.access import Actor, ancestors, descendants


@dataclass(frozen=True)
class WaitsFor:
    """The open stage of a request: how many more of which group."""

    group: str
    missing: int
    stage: Stage


def waits_for(request: Request) -> WaitsFor | None:
    """Whom a waiting request waits for."""
    if request.state != RequestState.WAITING:
        return None
    stage = approving.open_stage(request)
    return WaitsFor(stage.group, stage.quorum - approving.approvals(stage), stage) if stage else None


def waits_for_each(requests: Sequence[Request]) -> dict[uuid.UUID, WaitsFor]:
    """The same for many requests at once, by id; those that wait for nobody are left out."""
    waiting = [request for request in requests if request.state == RequestState.WAITING]
    stages = Stage.objects.filter(pk__in=_open_stages(None).values("pk"), request__in=waiting)
    return {
        stage.request_id: WaitsFor(stage.group, stage.quorum - approving.approvals(stage), stage)
        for stage in (stages.prefetch_related("votes") if waiting else [])
    }


def for_groups(acting: Actor) -> QuerySet[Request]:
    """Waiting requests whose open stage asks a group of this person and is not overdue, oldest first."""
    stages = _open_stages(acting.groups()).filter(due_at__gt=timezone.now())
    return Request.objects.filter(pk__in=stages.values("request")).order_by("created_at", "id")


def answerable(acting: Actor) -> QuerySet[Request]:
    """Those of them that this person can vote on: not their own, and not voted on by them in this round."""
    return for_groups(acting).exclude(_own(acting)).exclude(pk__in=_voted(acting).values("request"))


def own(acting: Actor) -> QuerySet[Request]:
    """Those of them that are this person's own, so that somebody else has to vote."""
    return for_groups(acting).filter(_own(acting))


def count(acting: Actor) -> int:
    """How many wait for this person's vote; 0 without a query for people in no group."""
    return answerable(acting).count() if acting.groups() else 0


def _own(acting: Actor) -> Q:
    return Q(requester=acting.user) | Q(made_for=acting.user) | Q(kind="Quota", team__in=_gaining_teams(acting))


def _open_stages(groups: list[str] | None) -> QuerySet[Stage]:
    """The first stage of the last round that still lacks approvals, of waiting requests, if it asks one of `groups`
    (None: whomever it asks)."""
    approved = Count("votes", filter=Q(votes__answer="approve"))
    later_round = Stage.objects.filter(request=OuterRef("request"), round__gt=OuterRef("round"))
    earlier = (
        Stage.objects.filter(request=OuterRef("request"), round=OuterRef("round"), position__lt=OuterRef("position"))
        .annotate(approved=approved)
        .filter(approved__lt=F("quorum"))
    )
    asked = {} if groups is None else {"group__in": groups}
    return (
        Stage.objects.filter(request__state=RequestState.WAITING.value, **asked)
        .annotate(approved=approved)
        .filter(approved__lt=F("quorum"))
        .filter(~Exists(later_round), ~Exists(earlier))
        .order_by()
    )


def _voted(acting: Actor) -> QuerySet[Stage]:
    """The stages of last rounds that this person has answered in."""
    later_round = Stage.objects.filter(request=OuterRef("request"), round__gt=OuterRef("round"))
    answered = Stage.objects.filter(votes__voter=acting.user, request__state=RequestState.WAITING.value)
    return answered.filter(~Exists(later_round)).order_by()


def _gaining_teams(acting: Actor) -> set[int]:
    """Teams whose higher quota this person would gain from: their own, those below, and the groups above."""
    own = set(Membership.objects.filter(user=acting.user).values_list("team_id", flat=True))
    return descendants(own) | ancestors(own)
