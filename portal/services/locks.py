"""The one place that takes row locks, and the one order: teams from the root down, then the request, then the instance.

Whoever keeps to this order can't deadlock. `no_key=True` leaves foreign-key checks of other transactions alone.
"""

from __future__ import annotations

import uuid

from portal.models import Instance, Request, Team

MAX_DEPTH = 8  # of groups above a team; bootstrap refuses more


# Rows are locked after they were sorted, so in that order: root first (PostgreSQL 18 documentation, SELECT, "The
# Locking Clause", read 2026-12). One level more than is allowed is looked for, so that too deep is noticed.
_CHAIN = """
WITH RECURSIVE chain AS (
    SELECT id, parent_id, 0 AS depth FROM portal_team WHERE id = %(team)s
  UNION ALL
    SELECT above.id, above.parent_id, chain.depth + 1
    FROM chain JOIN portal_team above ON above.id = chain.parent_id
    WHERE chain.depth < %(limit)s
)
SELECT team.* FROM chain JOIN portal_team team ON team.id = chain.id ORDER BY chain.depth DESC
"""


def team_chain(team: Team) -> list[Team]:
    """The team and every group above it, root first, without locks."""
    return _chain(team, _CHAIN)


def lock_team_chain(team: Team) -> list[Team]:
    """Lock what quota and budget of this team rest on: every group from the root down to the team."""
    return _chain(team, _CHAIN + "FOR NO KEY UPDATE OF team")


def _chain(team: Team, query: str) -> list[Team]:
    chain = list(Team.objects.raw(query, {"team": team.pk, "limit": MAX_DEPTH}))
    if len(chain) > MAX_DEPTH:
        raise ValueError(f"team {team.slug} has more than {MAX_DEPTH} groups above it")
    return chain


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
