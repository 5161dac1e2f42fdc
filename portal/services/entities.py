"""What an instance's catalog entities are made of, from its rows. Reads only.

In charge of: collecting the facts. Not in charge of: names (publishing keeps them), or the form (rendering).
"""

from __future__ import annotations

from typing import Any

from django.conf import settings

from portal.domain.offerings import Offering
from portal.models import FeedEntity, Instance
from portal.rendering.entity import EntityFacts, render_entity
from portal.rendering.entity_api import render_api
from portal.rendering.entity_crossplane import ClaimAt
from portal.rendering.entity_system import SystemFacts, render_system
from portal.services import loading
from portal.services.instances import endpoint_of, monthly_of

EMBEDDED = "embedded"  # a control plane that is no cluster


def of_instance(instance: Instance, name: str, system: str) -> dict[str, dict[str, Any]]:
    """Part -> entity, all of this `name`, in the System of this reference."""
    facts = _facts(instance, name, system)
    made = {FeedEntity.Part.MAIN.value: render_entity(facts)}
    api = render_api(facts)
    return made | ({FeedEntity.Part.API.value: api} if api else {})


def system_of(instance: Instance, name: str) -> dict[str, Any]:
    """The System that it is in."""
    team, environment = instance.team, instance.environment
    return render_system(
        SystemFacts(
            team=team.slug,
            team_title=team.title,
            environment=environment.slug,
            environment_title=environment.title,
            base_url=settings.PUBLIC_URL,
            owner=_owner(team.slug),
            entity_name=name,
        )
    )


def _owner(team: str) -> str:
    """The first group that the directory rules name for the team; "" where they name none."""
    return next(iter(loading.directory_rules().groups_of(team=team)), "")


def _facts(instance: Instance, name: str, system: str) -> EntityFacts:
    offering = loading.offering(instance.document)
    creation = instance.requests.filter(kind="Create").first()
    monthly = monthly_of(instance)
    return EntityFacts(
        instance_id=str(instance.pk),
        name=instance.name,
        title=instance.name,
        offering=offering.name,
        offering_title=offering.title,
        catalog_kind=offering.catalog.kind,
        catalog_type=offering.catalog.type,
        lifecycle=offering.catalog.lifecycle,
        api=offering.catalog.api or "",
        team=instance.team.slug,
        environment=instance.environment.slug,
        phase=instance.phase,
        since=instance.since,
        message=instance.message,
        advice=instance.observed.get("advice") or "",
        drift=tuple(row["field"] for row in instance.drift),
        claim_kind=offering.kind,
        claim_namespace=instance.namespace,
        claim_name=instance.claim["metadata"]["name"] if instance.claim else instance.name,
        claim=_claim_at(instance, offering),
        control_plane=instance.environment.control_plane,
        request_id=str(creation.pk) if creation else "",
        base_url=settings.PUBLIC_URL,
        endpoint=endpoint_of(instance),
        monthly=str(monthly.monthly) if monthly else None,
        currency=monthly.currency if monthly else "",
        owner=_owner(instance.team.slug),
        system=system,
        entity_name=name,
    )


def _claim_at(instance: Instance, offering: Offering) -> ClaimAt | None:
    """Where Crossplane has it; Backstage's Kubernetes plugins must call the cluster what the portal calls the plane."""
    if instance.claim is None:
        return None
    plane = instance.environment.control_plane
    return ClaimAt(
        api_version=instance.claim["apiVersion"],
        kind=instance.claim["kind"],
        plural=offering.plural,
        namespace=instance.namespace,
        name=instance.claim["metadata"]["name"],
        composition=offering.composition,
        style="v2" if "crossplane" in instance.claim["spec"] else "v1",
        cluster="" if plane == EMBEDDED else plane,
    )
