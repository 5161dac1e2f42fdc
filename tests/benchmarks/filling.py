"""Rows to measure with: copies of real submissions, so that each has its instance, decision, stages and votes.

In charge of: the sample world with ceilings that are never reached, and any number of requests in it.
"""

from __future__ import annotations

import uuid
from copy import copy
from typing import Any

from django.db import connection, models
from django.utils import timezone

from portal.models import Budget, DecisionRecord, Instance, Quota, Request, Stage, Team, Vote
from portal.services import approving, submitting
from tests.sample import actor, draft, load_sample, model_body

TEAMS = {"search": "ada", "ads": "carol", "research": "dave"}
STEP = 1000


def open_world() -> None:
    """The sample world, in which every team of the sample may hold as much as it asks for."""
    load_sample()
    for slug in ("acme", *TEAMS):
        team = Team.objects.get(slug=slug)
        Quota.objects.update_or_create(team=team, dimension="gpu.l4", defaults={"limit": 10**12})
    Budget.objects.update(soft=10**12, hard=10**12)


def fill(count: int) -> None:
    """About `count` requests: of three teams in turn, every fourth one waits for its second vote in prod."""
    templates = [_submitted(slug, number) for number in range(4) for slug in TEAMS]
    for start in range(len(templates), count, STEP):
        _copy([templates[number % len(templates)] for number in range(start, min(start + STEP, count))])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _submitted(slug: str, number: int) -> Request:
    environment = "prod" if number == 3 else "dev"
    body = model_body(f"template-{number}", team=slug, environment=environment, reason="Answers of the help centre")
    request = submitting.submit(draft(body), acting=actor(TEAMS[slug])).request
    if environment == "prod":
        approving.vote(request.pk, "approve", "fits the plan of this quarter", acting=actor("frank"))
    return request


def _copy(originals: list[Request]) -> None:
    """One new row for each, with all that the API shows of it."""
    instances, requests, decisions, stages, votes = [], [], [], [], []
    for original in originals:
        instance = _again(original.instance, name=f"m-{uuid.uuid4().hex[:12]}")
        request = _again(original, instance=instance, name=instance.name, state=original.state)
        made = [_again(row, request=request) for row in original.decisions.all()]
        for stage in original.stages.all():
            stages.append(_again(stage, request=request))
            votes += [_again(vote, stage=stages[-1], decision=made[-1]) for vote in stage.votes.all()]
        instances.append(instance)
        requests.append(request)
        decisions += made
    for model, rows in ((Instance, instances), (Request, requests), (DecisionRecord, decisions), (Stage, stages)):
        model._default_manager.bulk_create(rows)  # type: ignore[attr-defined]  # a row of any of these models
    Vote.objects.bulk_create(votes)


def _again(row: Any, **changes: Any) -> Any:
    new = copy(row)
    new._state = models.base.ModelState()
    new.pk = uuid.uuid4() if isinstance(row.pk, uuid.UUID) else None
    for name, value in changes.items():
        setattr(new, name, value)
    return new


def bare_body(original: Request) -> dict[str, Any]:
    """What a bare view is sent to make a row like this one."""
    return {
        "kind": original.kind,
        "state": original.state,
        "team": original.team_id,
        "environment": original.environment_id,
        "offering": original.offering,
        "document": original.document_id,
        "name": f"m-{uuid.uuid4().hex[:12]}",
        "spec": original.spec,
        "labels": original.labels,
        "reason": original.reason,
        "requester": original.requester_id,
        "body_digest": original.body_digest,
        "quote_monthly": str(original.quote_monthly),
        "quote_currency": original.quote_currency,
        "quote_valid_until": original.quote_valid_until.isoformat() if original.quote_valid_until else None,
        "failure_code": "",
        "changed_at": timezone.now().isoformat(),
    }
