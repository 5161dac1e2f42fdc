"""Effects to bring about outside, as rows: written with the change that wants them, leased, done, acknowledged.

Lanes are per (Instance, destination): rows of a lane run one after the other, a deletion before all else. A lease that
runs out (its worker was killed) is given to another. An advisory lock on the lane, which dies with its connection,
keeps a message that the broker delivers twice from running twice. Not in charge of: what a topic does (delivering,
publishing).
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from portal.models import OutboxRow
from portal.services import pausing


class LeaseLost(Exception):
    """The row was done, cancelled or leased to another meanwhile: roll back and leave it to them."""


def put(lane: str, topic: str, payload: dict[str, Any], *, urgent: bool = False) -> OutboxRow:
    """Add a row, in the transaction of the change that wants it."""
    if not connection.in_atomic_block:
        raise RuntimeError(f"outbox row {topic} outside of a transaction")
    return OutboxRow.objects.create(lane=lane, topic=topic, payload=payload, urgent=urgent, due_at=timezone.now())


def lease_due(limit: int = 100) -> list[tuple[int, uuid.UUID]]:
    """Lease the head of each lane that is due. Rows that another sweep is looking at are skipped, and so are those of
    paused control planes."""
    now = timezone.now()
    ahead = OutboxRow.objects.filter(lane=OuterRef("lane"), done_at=None).filter(
        Q(urgent__gt=OuterRef("urgent")) | Q(urgent=OuterRef("urgent"), id__lt=OuterRef("id"))
    )
    at_work = OutboxRow.objects.filter(lane=OuterRef("lane"), done_at=None, leased_until__gte=now)
    with transaction.atomic():
        rows = list(
            pausing.not_held_back(OutboxRow.objects.select_for_update(skip_locked=True, of=("self",)))
            # The row's own lease too: of what is asked, that alone is looked at again once another sweep let go of it.
            .filter(Q(leased_until=None) | Q(leased_until__lt=now), done_at=None, due_at__lte=now)
            .filter(~Exists(ahead), ~Exists(at_work))
            .order_by("id")[:limit]
        )
        for row in rows:
            row.lease = uuid.uuid4()
            row.leased_until = now + dt.timedelta(seconds=settings.OUTBOX_LEASE_SECONDS)
        OutboxRow.objects.bulk_update(rows, ["lease", "leased_until"])
    return [(row.pk, row.lease) for row in rows if row.lease is not None]


@contextmanager
def working(row_id: int, lease: uuid.UUID) -> Iterator[OutboxRow | None]:
    """Hold the row's lane while working on it; None when it is not ours to do (done, leased anew, lane busy)."""
    row = OutboxRow.objects.filter(pk=row_id, lease=lease, done_at=None).first()
    if row is None or not _lock_lane(row.lane):
        yield None
        return
    try:
        # Read again under the lane's lock: another worker may have finished between the two.
        held = OutboxRow.objects.filter(pk=row_id, lease=lease, done_at=None)
        held.update(attempts=row.attempts + 1)
        yield held.first()
    finally:
        _unlock_lane(row.lane)


def acknowledge(row: OutboxRow, outcome: str = "done") -> None:
    """Mark done, in the transaction of the result. Raises LeaseLost if the row is no longer ours."""
    if not connection.in_atomic_block:
        raise RuntimeError("acknowledge belongs into the transaction of the result")
    done = OutboxRow.objects.filter(pk=row.pk, lease=row.lease, done_at=None).update(
        done_at=timezone.now(), outcome=outcome, leased_until=None
    )
    if not done:
        raise LeaseLost(f"outbox row {row.pk}")


def postpone(row: OutboxRow, error: str, retry_after: float | None = None) -> bool:
    """Try again later, backing off; False when this was the last attempt and the caller must end it."""
    if row.attempts >= settings.OUTBOX_MAX_ATTEMPTS:
        return False
    wait = min(settings.OUTBOX_BACKOFF_SECONDS * 2 ** max(row.attempts - 1, 0), settings.OUTBOX_BACKOFF_LIMIT_SECONDS)
    OutboxRow.objects.filter(pk=row.pk, lease=row.lease, done_at=None).update(
        due_at=timezone.now() + dt.timedelta(seconds=max(wait, retry_after or 0)),
        last_error=error[:2000],
        lease=None,
        leased_until=None,
    )
    return True


def cancel(lane: str, *, topics: list[str], request: uuid.UUID | None = None) -> int:
    """Cancel open rows of a lane (a deletion makes an apply pointless), in the caller's transaction. `request`: only
    those of one request."""
    rows = OutboxRow.objects.filter(lane=lane, topic__in=topics, done_at=None)
    if request is not None:
        rows = rows.filter(payload__request=str(request))
    return rows.update(done_at=timezone.now(), outcome="cancelled", leased_until=None)


def step_back(lane: str) -> None:
    """What was urgent in a lane is so no more: something more urgent comes."""
    OutboxRow.objects.filter(lane=lane, urgent=True, done_at=None).update(urgent=False)


def _lock_lane(lane: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [f"outbox:{lane}"])
        return bool(cursor.fetchone()[0])


def _unlock_lane(lane: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [f"outbox:{lane}"])
