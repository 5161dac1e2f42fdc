"""The reading half of the embedded control plane: get, list, watch.

A watch reads the log of changes after a cursor (a resource version) and waits on PostgreSQL's LISTEN when there are
none; it looks by itself 4 times a second, in case a notification got lost. Not in charge of: writing anything.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import connection
from django.db.models import Q

from portal.adapters.embedded import store
from portal.adapters.embedded.manifests import composed_object, manifest_of, observed_claim
from portal.adapters.embedded.names import CHANNEL, GroupKind, split_api_version
from portal.models.embedded import EmbeddedChange, EmbeddedObject, EmbeddedSequence
from portal.ports import ClaimEvent, ClaimRef, ComposedObject, ObservedClaim, RetryableError

POLL_SECONDS = 0.25
_BATCH = 500

Composed = dict[uuid.UUID, tuple[ComposedObject, ...]]


def get(ref: ClaimRef) -> ObservedClaim | None:
    """See ports.Observe."""
    with store.reading():
        row = store.find(_kind(ref), ref.namespace, ref.name)
        return None if row is None else _claim(row, ref.plural, composed_of([row.uid]))


def list_claims(kinds: list[ClaimRef]) -> tuple[list[ObservedClaim], str]:
    """See ports.Observe. Objects and cursor come from one view of the store."""
    claims: list[ObservedClaim] = []
    with store.reading() as newest:
        for ref in _once_per_kind(kinds).values():
            rows = list(store.of_kind(_kind(ref)))
            composed = composed_of([row.uid for row in rows])
            claims += [_claim(row, ref.plural, composed) for row in rows]
    return claims, str(newest)


def watch(kinds: list[ClaimRef], cursor: str, timeout: float) -> Iterator[ClaimEvent]:
    """See ports.Observe. The caller may use the database between two events."""
    by_kind = _once_per_kind(kinds)
    deadline = time.monotonic() + timeout
    after = _number(cursor)
    with listening():
        while True:
            events, after = _changes(by_kind, after)
            yield from events
            left = deadline - time.monotonic()
            if left <= 0:
                return
            if not events:
                wait_for_change(min(left, POLL_SECONDS))


def composed_of(uids: Iterable[uuid.UUID]) -> Composed:
    """The composed objects of each of these composites, in the order in which they were made."""
    found: dict[uuid.UUID, list[ComposedObject]] = {}
    for row in store.objects().filter(owner__uid__in=list(uids)):
        if row.owner is not None:
            found.setdefault(row.owner.uid, []).append(composed_object(row))
    return {uid: tuple(objects) for uid, objects in found.items()}


def wait_for_change(seconds: float) -> bool:
    """Return True when something was written, False after `seconds` without. Needs `listening`."""
    with store.port_errors(), connection.wrap_database_errors:
        connection.ensure_connection()
        return any(True for _ in connection.connection.notifies(timeout=seconds, stop_after=1))


@contextmanager
def listening() -> Iterator[None]:
    with store.port_errors(), connection.cursor() as cursor:
        cursor.execute(f"LISTEN {CHANNEL}")
    try:
        yield
    finally:
        # The connection may go back to a pool: it must not collect notifications there.
        with store.port_errors(), connection.cursor() as cursor:
            cursor.execute(f"UNLISTEN {CHANNEL}")


def _changes(by_kind: dict[GroupKind, ClaimRef], after: int) -> tuple[list[ClaimEvent], int]:
    """Some changes of these kinds after a resource version, and up to which version that was all of them."""
    of_kinds = Q(pk__in=[])  # no kinds, no changes
    for kind in by_kind:
        of_kinds |= Q(group=kind.group, kind=kind.kind)
    with store.reading():
        sequence = EmbeddedSequence.objects.filter(pk=1).first() or EmbeddedSequence(value=0, floor=0)
        # A cursor from the future comes from before a restore: what it has seen is not what is there.
        if not sequence.floor <= after <= sequence.value:
            raise _expired(str(after))
        changes = list(EmbeddedChange.objects.filter(of_kinds, resource_version__gt=after)[:_BATCH])
        composed = composed_of({change.uid for change in changes if not change.gone})
    events = [_event(change, by_kind[GroupKind(change.group, change.kind)].plural, composed) for change in changes]
    return events, changes[-1].resource_version if len(changes) == _BATCH else sequence.value


def _event(change: EmbeddedChange, plural: str, composed: Composed) -> ClaimEvent:
    objects = () if change.gone else composed.get(change.uid, ())
    claim = observed_claim(change.manifest, plural, change.created_at, objects)
    return ClaimEvent(change.gone, claim, str(change.resource_version))


def _claim(row: EmbeddedObject, plural: str, composed: Composed) -> ObservedClaim:
    return observed_claim(manifest_of(row), plural, row.created_at, composed.get(row.uid, ()))


def _once_per_kind(kinds: list[ClaimRef]) -> dict[GroupKind, ClaimRef]:
    return {_kind(ref): ref for ref in kinds}


def _kind(ref: ClaimRef) -> GroupKind:
    return GroupKind(split_api_version(ref.api_version)[0], ref.kind)


def _number(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit()):
        raise _expired(cursor)
    return int(cursor)


def _expired(cursor: str) -> RetryableError:
    return RetryableError("cursor-expired", f"the log has no changes after cursor {cursor!r} any more; list again")
