"""Keeps the catalog feed: the entities of each living instance, changes numbered in the order in which they show.

In charge of: the feed's rows: what is in it, under which name, and how long a System lives (as long as an instance in
it). Not in charge of: what an entity looks like (rendering), what it is made of (entities), or reading the feed (feed).
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from portal.domain.lifecycle import InstancePhase
from portal.models import FeedEntity, FeedHead, Instance, OutboxRow
from portal.rendering.entity import entity_ref
from portal.rendering.names import entity_name, system_name
from portal.services import entities, journal, loading, outbox

MAIN, API, SYSTEM = FeedEntity.Part.MAIN, FeedEntity.Part.API, FeedEntity.Part.SYSTEM


def publish(row: OutboxRow) -> None:
    """Topic `publish`: bring the feed's rows of one instance, and of the System that it is in, up to date."""
    with transaction.atomic():
        outbox.acknowledge(row)
        # This one heals an earlier one that failed: it brings the same entries up to date.
        OutboxRow.objects.filter(lane=row.lane, topic="publish", outcome="failed").update(outcome="healed")
        FeedHead.objects.get_or_create(pk=1)
        head = FeedHead.objects.select_for_update().get(pk=1)
        instance = Instance.objects.select_related("team", "environment", "document").get(pk=row.payload["instance"])
        before = {each.part: each for each in FeedEntity.objects.filter(instance=instance)}
        gone = instance.phase == InstancePhase.GONE
        changed = _remove(head, instance, before) if gone else _show(head, instance, before)
        if not changed:
            return  # as it was; or never shown, or gone from the feed already: its name may be another's by now
        head.save(update_fields=["sequence"])
        journal.record(
            "catalog.publish",
            system="publishing",
            instance=instance,
            data={"refs": changed, "phase": instance.phase, "sequence": head.sequence, "removed": gone},
        )


def give_up(row: OutboxRow, error: str) -> None:
    """The last attempt failed too: from here on the feed says that it is incomplete, until an operator mends it."""
    with transaction.atomic():
        OutboxRow.objects.filter(pk=row.pk).update(last_error=error[:2000])
        outbox.acknowledge(row, "failed")


def publish_all() -> int:
    """Queue every living instance's entries, since something that they are all made of has changed; how many."""
    living = list(Instance.objects.exclude(phase=InstancePhase.GONE.value).values_list("pk", flat=True))
    with transaction.atomic():
        for pk in living:
            outbox.put(f"instance:{pk}:catalog", "publish", {"instance": str(pk)})
    return len(living)


def _show(head: FeedHead, instance: Instance, before: dict[str, FeedEntity]) -> list[str]:
    """What it belongs to comes before what belongs to it. Returns the references that changed."""
    system = _system_of(instance)
    shared = entities.system_of(instance, _name_in(system.ref) if system else _free_system_name(instance))
    name = _name_in(next(iter(before.values())).ref) if before else _free_name(instance)
    own = entities.of_instance(instance, name, entity_ref(shared))
    wanted: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        (SYSTEM, shared, {"team": instance.team, "environment": instance.environment}),
        *[(part, own[part], {"instance": instance}) for part in (API, MAIN) if part in own],
    ]
    changed = [ref for part, entity, of in wanted if (ref := _put(head, part, entity, of))]
    return changed + [each.ref for part, each in before.items() if part not in own and _take_out(head, each)]


def _remove(head: FeedHead, instance: Instance, before: dict[str, FeedEntity]) -> list[str]:
    """In the order in which it came, backwards; the System too if nothing else is in it."""
    changed = [before[part].ref for part in (MAIN, API) if part in before and _take_out(head, before[part])]
    system = _system_of(instance)
    others = FeedEntity.objects.filter(
        part=MAIN,
        entity__isnull=False,
        instance__team=instance.team,
        instance__environment=instance.environment,
    )
    if system and not others.exists() and _take_out(head, system):
        changed.append(system.ref)
    return changed


def _put(head: FeedHead, part: str, entity: dict[str, Any], of: dict[str, Any]) -> str:
    """Write it if it is not so already; its reference, "" for no change. A row of the same name that is out of the
    feed, or whose instance is gone, becomes this one's."""
    ref = entity_ref(entity)
    row = FeedEntity.objects.filter(ref=ref).first()
    if row is not None and row.entity == entity and all(getattr(row, key) == value for key, value in of.items()):
        return ""
    values = {"part": part, "entity": entity, "sequence": _next(head), "published_at": timezone.now(), **of}
    FeedEntity.objects.update_or_create(ref=ref, defaults=values)
    return ref


def _take_out(head: FeedHead, row: FeedEntity) -> bool:
    """False if it is out already."""
    if row.entity is None:
        return False
    row.entity, row.sequence, row.published_at = None, _next(head), timezone.now()
    row.save(update_fields=["entity", "sequence", "published_at"])
    return True


def _next(head: FeedHead) -> int:
    head.sequence += 1
    return head.sequence


def _system_of(instance: Instance) -> FeedEntity | None:
    return FeedEntity.objects.filter(part=SYSTEM, team=instance.team, environment=instance.environment).first()


def _free_name(instance: Instance) -> str:
    """The name that it will have for life. One that was renamed since may still have the one that fits."""
    parts = (instance.team.slug, instance.environment.slug, instance.name, instance.offering)
    name = entity_name(*parts)
    kind = loading.offering(instance.document).catalog.kind.lower()
    taken = FeedEntity.objects.filter(ref__in=[f"{kind}:default/{name}", f"api:default/{name}"])
    living = taken.exclude(instance=instance).exclude(instance__phase=InstancePhase.GONE.value)
    return entity_name(*parts, apart=str(instance.pk)) if living.exists() else name


def _free_system_name(instance: Instance) -> str:
    parts = (instance.team.slug, instance.environment.slug)
    name = system_name(*parts)
    taken = FeedEntity.objects.filter(ref=f"system:default/{name}", entity__isnull=False)
    return system_name(*parts, apart=f"{instance.team_id}.{instance.environment_id}") if taken.exists() else name


def _name_in(ref: str) -> str:
    return ref.partition("/")[2]
