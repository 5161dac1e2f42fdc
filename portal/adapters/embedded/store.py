"""The control plane's store: the only place that writes its objects, and the rules that every write keeps.

Each write transaction holds the lock of the one sequence row. So writers go one after the other, resource versions
become visible in their order (a watcher never misses one), and no two writers can deadlock. It must not run inside a
transaction of the portal (`durable`): what a cluster has accepted stays accepted when the portal rolls back.
Not in charge of: what is valid (admission) and what follows from an object (reconcile, simulator); it only notes that
something does.
"""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.db import DataError, Error, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from portal.adapters.embedded.manifests import manifest_of
from portal.adapters.embedded.names import CHANNEL, XRD, GroupKind
from portal.models.embedded import EmbeddedChange, EmbeddedObject, EmbeddedSequence
from portal.ports import RetryableError, TerminalError

RECONCILE = "reconcile"
SIMULATE = "simulate"


@contextmanager
def port_errors() -> Iterator[None]:
    """What the database raises, as the port's errors."""
    try:
        yield
    except DataError as error:
        raise TerminalError("claim-invalid", f"the control plane can't store this: {error}") from error
    except Error as error:
        raise RetryableError("control-plane-down", f"the embedded control plane's store: {error}") from error


def objects() -> QuerySet[EmbeddedObject]:
    """All objects, with their owners."""
    return EmbeddedObject.objects.select_related("owner")


def of_kind(kind: GroupKind) -> QuerySet[EmbeddedObject]:
    """The objects of one kind."""
    return objects().filter(group=kind.group, kind=kind.kind)


def find(kind: GroupKind, namespace: str, name: str) -> EmbeddedObject | None:
    """One object, or None."""
    return of_kind(kind).filter(namespace=namespace, name=name).first()


@contextmanager
def reading() -> Iterator[int]:
    """One consistent view of the store; gives the newest resource version in it."""
    outermost = not connection.in_atomic_block  # an isolation level can be chosen only where a transaction begins
    with port_errors(), transaction.atomic():
        if outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        yield EmbeddedSequence.objects.filter(pk=1).values_list("value", flat=True).first() or 0


@contextmanager
def writing() -> Iterator[Writer]:
    """A write transaction of the store's own, alone among writers. Raises only PortError for the database's part."""
    with port_errors(), transaction.atomic(durable=True):
        writer = Writer(_locked_sequence())
        yield writer
        writer.finish()


def _locked_sequence() -> EmbeddedSequence:
    row = EmbeddedSequence.objects.select_for_update().filter(pk=1).first()
    if row is None:
        EmbeddedSequence.objects.bulk_create([EmbeddedSequence(pk=1)], ignore_conflicts=True)
        row = EmbeddedSequence.objects.select_for_update().get(pk=1)
    return row


class Writer:
    """What may be done to objects inside `writing()`. Every change gets a resource version and a line in the log."""

    def __init__(self, sequence: EmbeddedSequence) -> None:
        self.now = timezone.now()
        self._sequence = sequence
        self._first = sequence.value
        self._composites: set[GroupKind] | None = None

    def finish(self) -> None:
        """Store the sequence and tell watchers, which hear it once this is committed."""
        if self._sequence.value == self._first:
            return
        self._sequence.save(update_fields=["value"])
        self.wake()

    def wake(self) -> None:
        """Tell whoever waits for changes or work, once this is committed."""
        with connection.cursor() as cursor:
            cursor.execute(f"NOTIFY {CHANNEL}")

    def create(self, row: EmbeddedObject) -> EmbeddedObject:
        """Add an object. Its uid, generation, version and time are given here."""
        row.uid = uuid.uuid4()
        row.generation = 1
        row.created_at = self.now
        row.resource_version = self._next()
        row.save(force_insert=True)
        self._log(row)
        self._follow(row, itself=True)
        return row

    def change(self, row: EmbeddedObject, **fields: Any) -> bool:
        """Set body, labels, annotations, status, finalizers or deletion_requested_at; equal values write nothing."""
        changed = {name for name, value in fields.items() if not same(getattr(row, name), value)}
        if not changed:
            return False
        for name in changed:
            setattr(row, name, fields[name])
        if "body" in changed or "deletion_requested_at" in changed:
            row.generation += 1
        row.resource_version = self._next()
        row.save(update_fields=[*changed, "generation", "resource_version"])
        self._log(row)
        self._follow(row, itself=changed != {"status"})
        return True

    def ask_deletion(self, row: EmbeddedObject, finalizers: Iterable[str] = ()) -> None:
        """Mark it as to be deleted, adding `finalizers`; without any finalizer it is gone at once."""
        if row.deletion_requested_at is None:
            kept = [*row.finalizers, *(name for name in finalizers if name not in row.finalizers)]
            self.change(row, deletion_requested_at=self.now, finalizers=kept)
        self.drop_finalizers(row, ())

    def drop_finalizers(self, row: EmbeddedObject, names: Iterable[str]) -> None:
        """Take finalizers off; the last one of an object to be deleted removes it."""
        left = [name for name in row.finalizers if name not in set(names)]
        if left or row.deletion_requested_at is None:
            self.change(row, finalizers=left)
            return
        row.finalizers = left
        row.resource_version = self._next()
        self._log(row, gone=True)
        if row.owner is not None:
            self.enqueue(row.owner, RECONCILE)
        row.delete()

    def enqueue(self, row: EmbeddedObject, role: str, delay: float = 0.0) -> None:
        """Note work for an object, `delay` seconds from now; work that is due earlier stays as it is."""
        due = self.now + dt.timedelta(seconds=delay)
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO embedded_work (object_id, role, due_at, dirty, attempts) VALUES (%s, %s, %s, 1, 0) "
                "ON CONFLICT (object_id, role) DO UPDATE SET dirty = embedded_work.dirty + 1, "
                "due_at = LEAST(embedded_work.due_at, EXCLUDED.due_at)",
                [row.pk, role, due],
            )

    def is_composite(self, kind: GroupKind) -> bool:
        """Whether an XRD defines this kind."""
        if self._composites is None:
            pairs = of_kind(XRD).values_list("body__spec__group", "body__spec__names__kind")
            self._composites = {GroupKind(group, name) for group, name in pairs}
        return kind in self._composites

    def forget_before(self, keep: int) -> None:
        """Drop all but the newest `keep` numbers of the log; cursors older than that expire."""
        floor = self._sequence.value - keep
        if floor > self._sequence.floor:
            EmbeddedChange.objects.filter(resource_version__lte=floor).delete()
            EmbeddedSequence.objects.filter(pk=1).update(floor=floor)

    def _next(self) -> int:
        self._sequence.value += 1
        return self._sequence.value

    def _log(self, row: EmbeddedObject, gone: bool = False) -> None:
        EmbeddedChange.objects.create(
            resource_version=row.resource_version,
            group=row.group,
            kind=row.kind,
            uid=row.uid,
            gone=gone,
            manifest=manifest_of(row),
            created_at=row.created_at,
        )

    def _follow(self, row: EmbeddedObject, itself: bool) -> None:
        """Note what a change makes necessary: the composite's own reconcile, its owner's, or the simulator's turn."""
        if row.owner is not None:
            self.enqueue(row.owner, RECONCILE)
        if not itself:
            return
        if self.is_composite(GroupKind(row.group, row.kind)):
            self.enqueue(row, RECONCILE)
        elif row.owner is not None:
            self.enqueue(row, SIMULATE, settings.SIMULATOR_DELAY)


def enqueue_kind(kind: GroupKind) -> None:
    """Have every object of a composite kind reconciled: its definition or composition changed."""
    with writing() as writer:
        for row in of_kind(kind):
            writer.enqueue(row, RECONCILE)
        writer.wake()


def same(left: Any, right: Any) -> bool:
    """Equality that tells True from 1 but not 1 from 1.0, at every depth, as JSON does."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)
