"""Taking work that is due, so that no two workers, in whatever process, have the same object at once.

An object is held by a session-level advisory lock: when a process dies its locks go with its connection, and another
goes on at once. Not in charge of: what makes work necessary (store), or doing it (controller).
"""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from django.db import connection
from django.utils import timezone

from portal.adapters.embedded.store import RECONCILE, SIMULATE, port_errors
from portal.models.embedded import EmbeddedWork

# First key of pg_try_advisory_lock(int, int) per role: "EmbR" and "EmbS" in ASCII, so that nobody else meets them by
# chance.
_LOCK_CLASS = {RECONCILE: 0x456D6252, SIMULATE: 0x456D6253}
_CANDIDATES = 16  # more than there are workers, so that one that finds all of them taken has nothing to do


class Taken(NamedTuple):
    """Work that this worker holds until it calls `finish`."""

    work_id: int
    object_id: int
    role: str
    dirty: int
    attempts: int


def take(role: str) -> Taken | None:
    """The work that is due for longest and that nobody holds, or None."""
    with port_errors():
        due = EmbeddedWork.objects.filter(role=role, due_at__lte=timezone.now()).order_by("due_at")
        for object_id in list(due.values_list("object_id", flat=True)[:_CANDIDATES]):
            if not _try_lock(role, object_id):
                continue
            # Read again under the lock: somebody may have done it between the two steps.
            work = due.filter(object_id=object_id).first()
            if work is not None:
                return Taken(work.pk, object_id, role, work.dirty, work.attempts)
            _unlock(role, object_id)
    return None


def finish(taken: Taken, due_in: float | None, attempts: int) -> None:
    """Let go. It is due again in `due_in` seconds (None: only when something happens), or now if that came
    meanwhile."""
    due_at = None if due_in is None else timezone.now() + dt.timedelta(seconds=due_in)
    try:
        with port_errors(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE embedded_work SET attempts = %s, due_at = CASE WHEN dirty = %s THEN %s ELSE due_at END "
                "WHERE id = %s",
                [attempts, taken.dirty, due_at, taken.work_id],
            )
    finally:
        _unlock(taken.role, taken.object_id)


def seconds_to_next(role: str, since: dt.datetime, at_most: float) -> float:
    """How long to wait for what is due after `since`. What was due before is in somebody's hands, or was taken."""
    with port_errors():
        later = EmbeddedWork.objects.filter(role=role, due_at__gt=since).order_by("due_at")
        due_at = later.values_list("due_at", flat=True).first()
    if due_at is None:
        return at_most
    return float(min(at_most, max(0.0, (due_at - timezone.now()).total_seconds())))


def _try_lock(role: str, object_id: int) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK_CLASS[role], _lock_key(object_id)])
        return bool(cursor.fetchone()[0])


def _unlock(role: str, object_id: int) -> None:
    with port_errors(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS[role], _lock_key(object_id)])


def _lock_key(object_id: int) -> int:
    """Within int4. Two objects 2**31 apart would share a lock, which costs them waiting and nothing else."""
    return object_id % 2**31
