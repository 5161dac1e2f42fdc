"""What readers of the catalog feed are told: a complete answer or an error, never less.

In charge of: pages, changes since a cursor, waiting for one, and when the feed is not complete. Not in charge of:
writing it (publishing), or the wire (api.catalog).

Waiting looks at the feed's head every LOOK_EVERY seconds, once for all who wait in a process, and holds no connection
in between. LISTEN would cost a connection of its own per process for as long as anybody waits, and does not pass a
pooler such as PgBouncer; a look is one row by its primary key.
"""

from __future__ import annotations

import datetime as dt
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from portal.models import FeedEntity, FeedHead, OutboxRow
from portal.services import pausing
from portal.services.errors import ServiceError, Unavailable

LATE = dt.timedelta(minutes=5)  # a publication that is this late makes the feed incomplete
LOOK_EVERY = 0.25  # seconds
MOST_WAITERS = 8  # of one process: the others of its threads (running.web) are for everybody else


class CursorExpired(ServiceError):
    """Changes since that cursor were forgotten, or it is of another database: read everything anew."""


@dataclass(frozen=True)
class Place:
    """Where in which feed: a sequence number of this database's feed."""

    feed: uuid.UUID
    sequence: int


@dataclass(frozen=True)
class Snapshot:
    """A page of all entities. `cursor` is where changes go on; `after` is None on the last page."""

    entities: list[dict[str, Any]]
    cursor: Place
    after: int | None


@dataclass(frozen=True)
class Changes:
    """What changed after a cursor. `more`: ask again from `cursor`."""

    upserted: list[dict[str, Any]]
    removed: list[str]
    cursor: Place
    more: bool

    @property
    def empty(self) -> bool:
        return not self.upserted and not self.removed


def snapshot(*, after: int = 0, cursor: Place | None = None, limit: int = 200) -> Snapshot:
    """A page of the entities. The first page's `cursor` goes along: a change during the read is seen by `changes`.
    Raises CursorExpired for one of another feed, Unavailable while the feed is not complete."""
    _require_complete()
    head, _ = FeedHead.objects.get_or_create(pk=1)
    at = cursor or Place(head.feed, head.sequence)
    _require_known(at, head)
    rows = list(FeedEntity.objects.filter(sequence__gt=after, entity__isnull=False).order_by("sequence")[: limit + 1])
    page = rows[:limit]
    return Snapshot(
        [row.entity for row in page if row.entity is not None], at, page[-1].sequence if len(rows) > limit else None
    )


def changes(cursor: Place, *, limit: int = 200) -> Changes:
    """What changed after `cursor`. Raises CursorExpired for one that can't be gone on from, Unavailable while the feed
    is not complete."""
    _require_complete()
    head, _ = FeedHead.objects.get_or_create(pk=1)
    _require_known(cursor, head)
    later = FeedEntity.objects.filter(sequence__gt=cursor.sequence, sequence__lte=head.sequence)
    rows = list(later.order_by("sequence")[: limit + 1])
    page = rows[:limit]
    return Changes(
        upserted=[row.entity for row in page if row.entity is not None],
        removed=[row.ref for row in page if row.entity is None],
        cursor=Place(cursor.feed, page[-1].sequence) if page else cursor,
        more=len(rows) > limit,
    )


def wait(after: Place, seconds: float, stopping: Callable[[], bool]) -> bool:
    """Until something is published after this place, `seconds` are over or `stopping()` is true; whether something is.

    At most MOST_WAITERS of a process wait; others are told at once that nothing is there. Nobody may be in a
    transaction here: the connection goes back meanwhile.
    """
    if not _places.acquire(blocking=False):
        return False
    try:
        until = time.monotonic() + seconds
        while not (found := _head.sequence() > after.sequence) and not stopping():
            left = until - time.monotonic()
            if left <= 0:
                return False
            _let_go()
            time.sleep(min(LOOK_EVERY, left))
        return found
    finally:
        _places.release()


def forget_removed(older_than: dt.datetime) -> int:
    """Forget tombstones; cursors from before them must start anew."""
    with transaction.atomic():
        head = FeedHead.objects.select_for_update().filter(pk=1).first()
        rows = FeedEntity.objects.filter(entity__isnull=True, published_at__lt=older_than)
        last = rows.order_by("-sequence").first()
        if head is None or last is None:
            return 0
        head.oldest = max(head.oldest, last.sequence)
        head.save(update_fields=["oldest"])
        return rows.delete()[0]


class _Head:
    """The newest sequence number, read at most every LOOK_EVERY seconds, however many ask."""

    def __init__(self) -> None:
        self._one_reader = threading.Lock()
        self._read_at = float("-inf")
        self._sequence = 0

    def sequence(self) -> int:
        with self._one_reader:
            if time.monotonic() - self._read_at >= LOOK_EVERY:
                head = FeedHead.objects.filter(pk=1).values_list("sequence", flat=True).first()
                self._sequence, self._read_at = head or 0, time.monotonic()
                _let_go()
            return self._sequence


_head = _Head()
_places = threading.BoundedSemaphore(MOST_WAITERS)


def _let_go() -> None:
    """Give the connection back to the pool; a test's, around which there is a transaction, stays."""
    if not connection.in_atomic_block:
        connection.close()


def _require_known(place: Place, head: FeedHead) -> None:
    if place.feed != head.feed or not head.oldest <= place.sequence <= head.sequence:
        raise CursorExpired("cursor-expired", "Changes since this cursor are not known here. Read all entities anew.")


def _require_complete() -> None:
    """Refuse while a publication failed or is late, or the database may know less than there is (it was restored): an
    answer with less would make the catalog delete."""
    for each in pausing.pauses():
        raise Unavailable(
            "control-plane-paused",
            f"The control plane {each.control_plane} is paused: {each.reason} The feed answers again once somebody has "
            "compared and resumed (`manage.py reconcile`); nothing should be deleted meanwhile.",
        )
    failed = OutboxRow.objects.filter(topic="publish", outcome="failed")
    late = OutboxRow.objects.filter(topic="publish", done_at=None, created_at__lt=timezone.now() - LATE)
    row = failed.first() or late.first()
    if row is not None:
        raise Unavailable(
            "feed-incomplete",
            f"The entry of instance {row.payload['instance']} could not be published ({row.last_error or 'late'}). "
            "The feed answers again once that is mended; nothing should be deleted meanwhile.",
        )
