"""Which requests wait for one person's vote: the approver's inbox, in one query.

In charge of: the same rules as `approving.why_not`, as a filter over many requests. Not in charge of: deciding
whether a vote counts: that is `approving`, under the request's lock.
"""

from __future__ import annotations

from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from portal.domain.lifecycle import RequestState
from portal.models import Membership, Request, Stage, Vote
from portal.services.access import Actor, ancestors, descendants, visible_requests


def waiting_for(actor: Actor) -> QuerySet[Request]:
    """Requests whose open stage asks this person's groups, that aren't their own, and that they have not voted on."""
    lacking = (
        Stage.objects.filter(request=OuterRef("pk"))
        .annotate(given=Count("votes", filter=Q(votes__answer="approve")))
        .filter(given__lt=F("quorum"))
        .order_by("-round", "position")
    )
    voted = Vote.objects.filter(stage__request=OuterRef("pk"), stage__round=OuterRef("open_round"), voter=actor.user)
    return (
        visible_requests(actor)
        .filter(state=RequestState.WAITING.value)
        .exclude(_own(actor))
        .annotate(open_stage=Subquery(lacking.values("pk")[:1]), open_round=Subquery(lacking.values("round")[:1]))
        .filter(
            Exists(Stage.objects.filter(pk=OuterRef("open_stage"), group__in=actor.groups(), due_at__gt=timezone.now()))
        )
        .exclude(Exists(voted))
    )


def _own(actor: Actor) -> Q:
    """One's own requests: asked for, made for one, or (a quota) of a team whose gain is one's own."""
    mine = set(Membership.objects.filter(user=actor.user).values_list("team_id", flat=True))
    gaining = descendants(mine) | ancestors(mine)
    made_for = Q(made_for__isnull=False, made_for=actor.user)
    return Q(requester=actor.user) | made_for | Q(kind="Quota", team__in=gaining)
