"""Every Celery task: take an id, pick adapters, call one service. Nothing is decided here.

A message may come twice or late (the broker's visibility timeout): the outbox's lease and lane lock sort that out. A
broken broker loses nothing: rows stay due, and the next sweep hands them out again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

import structlog

from portal.adapters import backstage, control_plane
from portal.celery import app
from portal.models import OutboxRow
from portal.ports import RetryableError
from portal.services import (
    delivering,
    drifting,
    housekeeping,
    notices,
    notifying,
    outbox,
    publishing,
    reapplying,
)

log = structlog.get_logger()


def _apply(row: OutboxRow) -> None:
    delivering.apply(row, control_plane)


def _delete(row: OutboxRow) -> None:
    delivering.delete(row, control_plane)


def _reapply(row: OutboxRow) -> None:
    reapplying.reapply(row, control_plane)


def _notify(row: OutboxRow) -> None:
    notifying.notify(row, backstage.notifier())


TOPICS: dict[str, Callable[[OutboxRow], None]] = {
    "apply": _apply,
    "delete": _delete,
    "publish": publishing.publish,
    reapplying.TOPIC: _reapply,
    notices.TOPIC: _notify,
}


@app.task(name="portal.tasks.sweep")
def sweep() -> int:
    """Lease what is due and hand it out; each row is a task of its own, so that a slow one holds up nothing else."""
    leased = outbox.lease_due()
    for row_id, lease in leased:
        perform.delay(row_id, str(lease))
    return len(leased)


@app.task(name="portal.tasks.perform")
def perform(row_id: int, lease: str) -> str:
    """Do one outbox row. What may pass later is postponed, backing off; the last failure ends it."""
    with outbox.working(row_id, uuid.UUID(lease)) as row:
        if row is None:
            return "not ours"
        try:
            TOPICS[row.topic](row)
        except outbox.LeaseLost:
            log.info("outbox.lease_lost", row=row_id)
            return "lease lost"
        except RetryableError as error:
            return _again(row, error)
        except Exception as error:
            # A fault of our own must neither lose the row nor run for ever: it is tried again like any other failure.
            log.exception("outbox.fault", row=row_id, topic=row.topic)
            return _again(row, RetryableError("internal-fault", f"{type(error).__name__}: {error}"))
    return "done"


@app.task(name="portal.tasks.housekeep")
def housekeep() -> None:
    """What time alone brings about."""
    housekeeping.expire_overdue()
    drifting.govern_all()
    housekeeping.tidy()


def _again(row: OutboxRow, error: RetryableError) -> str:
    log.warning("outbox.postponed", row=row.pk, topic=row.topic, attempt=row.attempts, code=error.code)
    if outbox.postpone(row, str(error), error.retry_after):
        return "postponed"
    if row.topic == "publish":
        publishing.give_up(row, str(error))
    elif row.topic == notices.TOPIC:
        notifying.give_up(row, str(error))
    elif row.topic == reapplying.TOPIC:
        reapplying.give_up(row, error)
    else:
        delivering.give_up(row, error)
    return "given up"
