"""The catalog entity of an Instance: what Backstage shows of it.

In charge of: a descriptor that passes Backstage's policies whatever people wrote. Not in charge of: the API beside it
(entity_api), the System that it is in (entity_system), which Instances are published and when (services), or the feed's
form (api). Which kind and type an entity has is in its offering's `catalog`; no offering is known here.

No `dependsOn`: an instance names no other thing of the catalog, and a relation that is guessed is worse than none.

Texts stay literal: nothing in them is evaluated, and none becomes a key of an object (Backstage resolves keys such as
`$text` in descriptors). They are cut at a length that a page can show. Source of the format: Backstage "Descriptor
Format of Catalog Entities" and `@backstage/catalog-model` 1.10 (read 2026-12-01).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from portal.rendering.entity_crossplane import ClaimAt, crossplane_annotations
from portal.rendering.entity_texts import MAX_TEXT, MAX_TITLE, is_web_address, page, shown
from portal.rendering.names import ANNOTATION_PREFIX, entity_name, is_label, label_value, slug, tag

CatalogKind = Literal["Component", "Resource"]

_KEY_PART = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,51}[A-Za-z0-9])?\Z")  # with `endpoint-` before it: 63 at most


@dataclass(frozen=True, slots=True)
class EntityFacts:
    """Everything that an entity is made of.

    `team`, `environment`, `name` and `offering` name the entity: pass `entity_name` as it was first published where one
    of them changed since. `endpoint` holds the offering's endpoint pointers, resolved in the claim's status. `monthly`
    is money as a string, or None when it isn't known. `since` is when `phase` began. `base_url` is where the portal is;
    `request_id` is "" for an instance that was adopted and not requested. `owner` is a full reference, `system` that of
    the System it is in. `api` is what its address speaks (the offering's `catalog.api`), "" for no API entity. `claim`
    says where Crossplane has it; None before it was rendered. `links` are (title, address) of what one can do with it.
    """

    instance_id: str
    name: str
    title: str
    offering: str
    offering_title: str
    catalog_kind: CatalogKind
    catalog_type: str
    team: str
    environment: str
    phase: str
    since: dt.datetime
    claim_kind: str
    claim_namespace: str
    claim_name: str
    control_plane: str
    request_id: str
    base_url: str
    lifecycle: str = "production"
    message: str = ""
    advice: str = ""  # who must do what
    drift: tuple[str, ...] = ()  # fields of the claim that others have set
    endpoint: Mapping[str, str | int] = field(default_factory=dict)
    monthly: str | None = None
    currency: str = ""
    tags: tuple[str, ...] = ()
    owner: str = ""
    system: str = ""
    api: str = ""
    claim: ClaimAt | None = None
    links: tuple[tuple[str, str], ...] = ()
    entity_name: str | None = None

    @property
    def entity(self) -> str:
        """The name of its entities."""
        return self.entity_name or entity_name(self.team, self.environment, self.name, self.offering)

    @property
    def owner_ref(self) -> str:
        """Who owns it, with kind and namespace."""
        return self.owner or team_group(self.team)

    @property
    def page(self) -> str:
        """Its page in the portal."""
        return page(self.base_url, "instances", self.instance_id)


def team_group(team: str) -> str:
    """The group of Backstage that a team is unless the directory rules say another."""
    return f"group:default/{team if is_label(team) else slug(team or 'nobody')}"


def entity_ref(entity: Mapping[str, Any]) -> str:
    """Backstage's reference to an entity, lower-case as it is compared there: `component:default/chat.search.dev.x`."""
    metadata = entity["metadata"]
    return f"{entity['kind']}:{metadata['namespace']}/{metadata['name']}".lower()


def render_entity(facts: EntityFacts) -> dict[str, Any]:
    """The entity as plain JSON, the same for the same facts.

    Never fails for what people wrote. Raises ValueError when the offering asks for a kind that isn't made here, or
    `since` has no time zone: both are mistakes of the caller.
    """
    if facts.since.tzinfo is None:
        raise ValueError(f"since is {facts.since.isoformat()}, which has no time zone")
    name = facts.entity
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "title": shown(facts.title, MAX_TITLE) or name,
        "description": _description(facts),
        "labels": labels(facts),
        "annotations": _annotations(facts),
        "links": [*endpoint_links(facts), *_links(facts)],
        "tags": tags(facts),
    }
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": facts.catalog_kind,
        "metadata": metadata,
        "spec": _spec(facts),
    }


def _spec(facts: EntityFacts) -> dict[str, Any]:
    spec: dict[str, Any] = {"type": facts.catalog_type, "owner": facts.owner_ref}
    if facts.catalog_kind == "Component":
        spec["lifecycle"] = facts.lifecycle
        if facts.api:
            spec["providesApis"] = [f"api:default/{facts.entity}"]
    elif facts.catalog_kind != "Resource":
        raise ValueError(f"catalog kind {facts.catalog_kind!r} of {facts.offering!r} is not Component or Resource")
    if facts.system:
        spec["system"] = facts.system
    return spec


def _description(facts: EntityFacts) -> str:
    cost = f", up to {facts.monthly} {facts.currency} a month" if facts.monthly is not None else ""
    return shown(
        f"{facts.offering_title} of {facts.team} in {facts.environment}: {facts.phase}{cost}. {facts.message}", MAX_TEXT
    )


def labels(facts: EntityFacts) -> dict[str, str]:
    """What the entities of an instance are found by."""
    values = {
        "instance": facts.instance_id,
        "team": facts.team,
        "environment": facts.environment,
        "offering": facts.offering,
        "phase": facts.phase,
    }
    return {ANNOTATION_PREFIX + key: label_value(value) for key, value in values.items()}


def state_annotations(facts: EntityFacts) -> dict[str, str]:
    """How it is and since when, and where it comes from. Backstage drops an entity without the two `managed-by`."""
    since = facts.since.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        **location_annotations(facts.page),
        **own_annotations({"state": facts.phase, "since": since, "control-plane": facts.control_plane}),
    }


def location_annotations(address: str) -> dict[str, str]:
    """What every entity must say of where it comes from: a page of the portal."""
    return {
        "backstage.io/managed-by-location": f"url:{address}",
        "backstage.io/managed-by-origin-location": f"url:{address}",
        "backstage.io/view-url": address,
    }


def own_annotations(own: Mapping[str, str]) -> dict[str, str]:
    """The portal's own, with its prefix."""
    return {ANNOTATION_PREFIX + key: shown(value, MAX_TEXT) for key, value in own.items()}


def _annotations(facts: EntityFacts) -> dict[str, str]:
    own = {"claim": f"{facts.claim_kind}/{facts.claim_namespace}/{facts.claim_name}"}
    if facts.request_id:
        own["request"] = facts.request_id
    if facts.message:
        own["message"] = facts.message
    if facts.advice:
        own["advice"] = facts.advice
    if facts.drift:
        own["drift"] = ", ".join(facts.drift)
    if facts.monthly is not None:
        own["cost-per-month"] = f"{facts.monthly} {facts.currency}"
    own |= {f"endpoint-{key}": value for key, value in _endpoint(facts)}
    crossplane = crossplane_annotations(facts.claim) if facts.claim else {}
    return {**state_annotations(facts), **own_annotations(own), **crossplane}


def endpoint_links(facts: EntityFacts) -> list[dict[str, str]]:
    """Its addresses that may be links."""
    return [
        {"url": value, "title": f"Endpoint ({key})", "icon": "web"}
        for key, value in _endpoint(facts)
        if is_web_address(value)
    ]


def _links(facts: EntityFacts) -> list[dict[str, str]]:
    made = []
    if facts.request_id:
        request = page(facts.base_url, "requests", facts.request_id)
        made.append({"url": request, "title": "Request in the portal", "icon": "dashboard"})
    return made + [{"url": address, "title": title, "icon": "scaffolder"} for title, address in facts.links]


def _endpoint(facts: EntityFacts) -> list[tuple[str, str]]:
    """Its parts by name, as texts; a name that can't stand in an annotation's key is left out."""
    return [(key, str(value)) for key, value in sorted(facts.endpoint.items()) if _KEY_PART.match(key)]


def tags(facts: EntityFacts) -> list[str]:
    """The environment, then the offering's; each once."""
    made = (tag(text) for text in (facts.environment, *facts.tags))
    return list(dict.fromkeys(word for word in made if word))
