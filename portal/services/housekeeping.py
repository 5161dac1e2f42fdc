"""What time alone brings about: stages that run out, tombstones that are forgotten, outbox rows long done."""

from __future__ import annotations

import datetime as dt

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from portal.domain.lifecycle import RequestState, Verb
from portal.models import OutboxRow, Request
from portal.services import approving, durations, feed, locks, notices, transitions

KEEP_DONE = dt.timedelta(days=7)
KEEP_REMOVED = dt.timedelta(days=30)


def expire_overdue(limit: int = 200) -> int:
    """End requests whose open stage ran out of time (nothing is ever approved by waiting), and free what they held."""
    now = timezone.now()
    overdue = Request.objects.filter(state=RequestState.WAITING.value, stages__due_at__lte=now).distinct()
    ended = 0
    for request_id, team in [(row.pk, row.team) for row in overdue.select_related("team")[:limit]]:
        with transaction.atomic():
            locks.lock_team_chain(team)
            request = locks.lock_request(request_id)
            stage = approving.open_stage(request)
            if request.state != RequestState.WAITING or stage is None or stage.due_at > now:
                continue
            data = {"stage": stage.code, "group": stage.group, "dueAt": stage.due_at.isoformat()}
            transitions.move(request, Verb.EXPIRE, system="housekeeping", data=data)
            ended += 1
    return ended


def tidy() -> None:
    """Forget what nobody can ask for any more."""
    now = timezone.now()
    feed.forget_removed(now - KEEP_REMOVED)
    durations.forget_old()
    done = OutboxRow.objects.filter(done_at__lt=now - KEEP_DONE)
    done.exclude(~Q(topic=notices.TOPIC), outcome="failed").delete()  # a failure elsewhere waits for somebody
