"""Keeps the catalog feed: one entity per living instance, changes numbered in the order in which they become visible.

In charge of: the feed's rows and what a reader may rely on: a complete answer or an error, never less. Not in charge
of: what an entity looks like (rendering.entity), or the wire (api.catalog).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from portal.domain.lifecycle import InstancePhase
from portal.models import FeedEntity, FeedHead, Instance, OutboxRow
from portal.rendering.entity import EntityFacts, entity_ref, render_entity
from portal.services import journal, loading, outbox, pausing
from portal.services.errors import ServiceError, Unavailable
from portal.services.instances import endpoint_of, monthly_of

LATE = dt.timedelta(minutes=5)  # a publication that is this late makes the feed incomplete


class CursorExpired(ServiceError):
    """Changes since that cursor were forgotten, or it is of another database: read everything anew."""


@dataclass(frozen=True)
class Snapshot:
    """A page of all entities. `cursor` is where changes go on; `after` is None on the last page."""

    entities: list[dict[str, Any]]
    cursor: int
    after: int | None


@dataclass(frozen=True)
class Changes:
    """What changed after a cursor. `more`: ask again from `cursor`."""

    upserted: list[dict[str, Any]]
    removed: list[str]
    cursor: int
    more: bool


def publish(row: OutboxRow) -> None:
    """Topic `publish`: bring the feed's row of one instance up to date."""
    with transaction.atomic():
        outbox.acknowledge(row)
        # This one heals an earlier one that failed: it brings the same entry up to date.
        OutboxRow.objects.filter(lane=row.lane, topic="publish", outcome="failed").update(outcome="healed")
        head, _ = FeedHead.objects.get_or_create(pk=1)
        head = FeedHead.objects.select_for_update().get(pk=1)
        instance = Instance.objects.select_related("team", "environment", "document").get(pk=row.payload["instance"])
        entity = None if instance.phase == InstancePhase.GONE else _entity(instance)
        before = FeedEntity.objects.filter(instance=instance).first()
        if entity is None and (before is None or before.entity is None):
            return  # never shown, or gone from the feed already; its name may be another's by now
        ref = entity_ref(entity) if entity is not None else before.ref if before else ""
        if before is not None and before.entity == entity:
            return
        head.sequence += 1
        head.save(update_fields=["sequence"])
        FeedEntity.objects.update_or_create(
            ref=ref,
            defaults={
                "instance": instance,
                "entity": entity,
                "sequence": head.sequence,
                "published_at": timezone.now(),
            },
        )
        journal.record(
            "catalog.publish",
            system="publishing",
            instance=instance,
            data={"ref": ref, "phase": instance.phase, "sequence": head.sequence, "removed": entity is None},
        )


def give_up(row: OutboxRow, error: str) -> None:
    """The last attempt failed too: from here on the feed says that it is incomplete, until an operator mends it."""
    with transaction.atomic():
        OutboxRow.objects.filter(pk=row.pk).update(last_error=error[:2000])
        outbox.acknowledge(row, "failed")


def snapshot(*, after: int = 0, cursor: int | None = None, limit: int = 200) -> Snapshot:
    """A page of the entities. The first page's `cursor` goes along: a change during the read is seen by `changes`."""
    _require_complete()
    head = FeedHead.objects.filter(pk=1).first()
    at = cursor if cursor is not None else (head.sequence if head else 0)
    rows = list(FeedEntity.objects.filter(sequence__gt=after, entity__isnull=False).order_by("sequence")[: limit + 1])
    page = rows[:limit]
    return Snapshot(
        [row.entity for row in page if row.entity is not None], at, page[-1].sequence if len(rows) > limit else None
    )


def changes(cursor: int, *, limit: int = 200) -> Changes:
    """What changed after `cursor`. Raises CursorExpired for one that can't be gone on from."""
    _require_complete()
    head = FeedHead.objects.filter(pk=1).first()
    newest, oldest = (head.sequence, head.oldest) if head else (0, 0)
    if not oldest <= cursor <= newest:
        raise CursorExpired("cursor-expired", f"Changes since {cursor} are not known here. Read all entities anew.")
    rows = list(FeedEntity.objects.filter(sequence__gt=cursor, sequence__lte=newest).order_by("sequence")[: limit + 1])
    page = rows[:limit]
    return Changes(
        upserted=[row.entity for row in page if row.entity is not None],
        removed=[row.ref for row in page if row.entity is None],
        cursor=page[-1].sequence if page else cursor,
        more=len(rows) > limit,
    )


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


def _entity(instance: Instance) -> dict[str, Any]:
    offering = loading.offering(instance.document)
    creation = instance.requests.filter(kind="Create").first()
    claim = instance.claim or {"kind": offering.kind, "metadata": {"name": instance.name}}
    monthly = monthly_of(instance)
    return render_entity(
        EntityFacts(
            instance_id=str(instance.pk),
            name=instance.name,
            title=instance.name,
            offering=offering.name,
            offering_title=offering.title,
            catalog_kind=offering.catalog.kind,
            catalog_type=offering.catalog.type,
            lifecycle=offering.catalog.lifecycle,
            team=instance.team.slug,
            environment=instance.environment.slug,
            phase=instance.phase,
            since=instance.since,
            message=instance.message,
            advice=instance.observed.get("advice") or "",
            drift=tuple(row["field"] for row in instance.drift),
            claim_kind=claim["kind"],
            claim_namespace=instance.namespace,
            claim_name=claim["metadata"]["name"],
            control_plane=instance.environment.control_plane,
            request_id=str(creation.pk) if creation else "",
            base_url=settings.PUBLIC_URL,
            endpoint=endpoint_of(instance),
            monthly=str(monthly.monthly) if monthly else None,
            currency=monthly.currency if monthly else "",
        )
    )
