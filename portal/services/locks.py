"""The one place that takes row locks, and the one order: teams from the root down, then the request, then the instance.

Whoever keeps to this order can't deadlock. `no_key=True` leaves foreign-key checks of other transactions alone.
"""

from __future__ import annotations

import uuid

from portal.models import Instance, Request, Team

MAX_DEPTH = 8  # of groups above a team; bootstrap refuses more


def team_chain(team: Team) -> list[Team]:
    """The team and every group above it, root first, without locks."""
    chain = [team]
    while chain[0].parent_id is not None:
        chain.insert(0, Team.objects.get(pk=chain[0].parent_id))
        if len(chain) > MAX_DEPTH:
            raise ValueError(f"team {team.slug} has more than {MAX_DEPTH} groups above it")
    return chain


def lock_team_chain(team: Team) -> list[Team]:
    """Lock what quota and budget of this team rest on: every group from the root down to the team."""
    return [Team.objects.select_for_update(no_key=True).get(pk=member.pk) for member in team_chain(team)]


def lock_request(request_id: uuid.UUID) -> Request:
    """Lock one request; take its team chain first when anything that is held may change."""
    return (
        Request.objects.select_for_update(of=("self",), no_key=True)
        .select_related("team", "environment", "instance", "requester", "made_for", "document")
        .get(pk=request_id)
    )


def lock_instance(instance_id: uuid.UUID) -> Instance:
    """Lock one instance, last."""
    return (
        Instance.objects.select_for_update(of=("self",), no_key=True)
        .select_related("team", "environment", "document")
        .get(pk=instance_id)
    )
