"""The catalog entity of an Instance: what Backstage shows of it.

In charge of: a descriptor that passes Backstage's policies whatever people wrote. Not in charge of: which Instances are
published and when (services), or the feed's form (api). Which kind and type an entity has is in its offering's
`catalog`; no offering is known here.

Texts stay literal: nothing in them is evaluated, and none becomes a key of an object (Backstage resolves keys such as
`$text` in descriptors). They are cut at a length that a page can show. Source of the format: Backstage "Descriptor
Format of Catalog Entities" and `@backstage/catalog-model` 1.10 (read 2026-12-01).
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from portal.rendering.names import ANNOTATION_PREFIX, entity_name, is_label, label_value, slug, tag

MAX_TITLE = 100
MAX_TEXT = 1000  # of a description or an annotation's value
MAX_URL = 2000  # longer ones are no links: browsers and proxies cut them

CatalogKind = Literal["Component", "Resource"]

_KEY_PART = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,51}[A-Za-z0-9])?\Z")  # with `endpoint-` before it: 63 at most

_HOST_LABEL = re.compile(r"(?!xn--)[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\Z")


@dataclass(frozen=True, slots=True)
class EntityFacts:
    """Everything that an entity is made of.

    `team`, `environment`, `name` and `offering` name the entity: pass `entity_name` as it was first published where one
    of them changed since. `endpoint` holds the offering's endpoint pointers, resolved in the claim's status. `monthly`
    is money as a string, or None when it isn't known. `since` is when `phase` began. `base_url` is where the portal is;
    `request_id` is "" for an instance that was adopted and not requested.
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
    system: str | None = None
    entity_name: str | None = None


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
    name = facts.entity_name or entity_name(facts.team, facts.environment, facts.name, facts.offering)
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "title": _text(facts.title, MAX_TITLE) or name,
        "description": _description(facts),
        "labels": _labels(facts),
        "annotations": _annotations(facts),
        "links": _links(facts),
        "tags": _tags(facts),
    }
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": facts.catalog_kind,
        "metadata": metadata,
        "spec": _spec(facts),
    }


def _spec(facts: EntityFacts) -> dict[str, Any]:
    owner = facts.team if is_label(facts.team) else slug(facts.team or "nobody")
    spec = {"type": facts.catalog_type, "owner": f"group:default/{owner}"}
    if facts.catalog_kind == "Component":
        spec["lifecycle"] = facts.lifecycle
    elif facts.catalog_kind != "Resource":
        raise ValueError(f"catalog kind {facts.catalog_kind!r} of {facts.offering!r} is not Component or Resource")
    if facts.system:
        spec["system"] = facts.system
    return spec


def _description(facts: EntityFacts) -> str:
    cost = f", up to {facts.monthly} {facts.currency} a month" if facts.monthly is not None else ""
    return _text(
        f"{facts.offering_title} of {facts.team} in {facts.environment}: {facts.phase}{cost}. {facts.message}", MAX_TEXT
    )


def _labels(facts: EntityFacts) -> dict[str, str]:
    values = {
        "instance": facts.instance_id,
        "team": facts.team,
        "environment": facts.environment,
        "offering": facts.offering,
        "phase": facts.phase,
    }
    return {ANNOTATION_PREFIX + key: label_value(value) for key, value in values.items()}


def _annotations(facts: EntityFacts) -> dict[str, str]:
    """`managed-by-location` and `managed-by-origin-location` must be there: Backstage drops an entity without them."""
    page = _page(facts, "instances", facts.instance_id)
    own = {
        "state": facts.phase,
        "since": facts.since.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "claim": f"{facts.claim_kind}/{facts.claim_namespace}/{facts.claim_name}",
        "control-plane": facts.control_plane,
    }
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
    return {
        "backstage.io/managed-by-location": f"url:{page}",
        "backstage.io/managed-by-origin-location": f"url:{page}",
        "backstage.io/view-url": page,
        **{ANNOTATION_PREFIX + key: _text(value, MAX_TEXT) for key, value in own.items()},
    }


def _links(facts: EntityFacts) -> list[dict[str, str]]:
    endpoints = [
        {"url": value, "title": f"Endpoint ({key})", "icon": "web"}
        for key, value in _endpoint(facts)
        if _is_web_address(value)
    ]
    if not facts.request_id:
        return endpoints
    request = {"url": _page(facts, "requests", facts.request_id), "title": "Request in the portal", "icon": "dashboard"}
    return [*endpoints, request]


def _endpoint(facts: EntityFacts) -> list[tuple[str, str]]:
    """Its parts by name, as texts; a name that can't stand in an annotation's key is left out."""
    return [(key, str(value)) for key, value in sorted(facts.endpoint.items()) if _KEY_PART.match(key)]


def _tags(facts: EntityFacts) -> list[str]:
    """The environment, then the offering's; each once."""
    made = (tag(text) for text in (facts.environment, *facts.tags))
    return list(dict.fromkeys(word for word in made if word))


def _page(facts: EntityFacts, kind: str, key: str) -> str:
    return f"{facts.base_url.rstrip('/')}/{kind}/{quote(_encodable(key), safe='')}/"


def _is_web_address(text: str) -> bool:
    """Whether it may be a link. Only http and https: `javascript:` in a status must not run in somebody's browser. A
    host is dotted labels or an IPv4 address; what browsers read in other ways (IPv6, punycode, users) stays text."""
    if len(text) > MAX_URL or not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        return False
    host = parts.hostname or ""
    return parts.scheme in ("http", "https") and parts.username is None and port_is_fine and _is_host(host)


def _is_host(host: str) -> bool:
    labels = host.split(".")
    if all(_HOST_LABEL.match(label) for label in labels) and labels[-1][0].isalpha():
        return True
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True


def _text(text: str, limit: int) -> str:
    """The text as it is, cut at `limit` characters with an ellipsis."""
    whole = _encodable(text).strip()
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def _encodable(text: str) -> str:
    """Half surrogates can't be sent as UTF-8; they become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
