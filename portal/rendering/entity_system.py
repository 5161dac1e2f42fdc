"""The System of a team in an environment: what its instances there belong to in Backstage's catalog.

In charge of: the descriptor. Not in charge of: how long it lives (services.publishing: as long as an instance in it).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from portal.rendering.entity import location_annotations, team_group
from portal.rendering.entity_texts import MAX_TEXT, MAX_TITLE, page, shown
from portal.rendering.names import ANNOTATION_PREFIX, label_value, system_name, tag


@dataclass(frozen=True, slots=True)
class SystemFacts:
    """`team` and `environment` name it: pass `entity_name` as it was first published where one of them changed since.
    `owner` is a full reference."""

    team: str
    team_title: str
    environment: str
    environment_title: str
    base_url: str
    owner: str = ""
    entity_name: str | None = None


def render_system(facts: SystemFacts) -> dict[str, Any]:
    """The entity as plain JSON, the same for the same facts. Never fails for what people wrote."""
    name = facts.entity_name or system_name(facts.team, facts.environment)
    environment = tag(facts.environment)
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": "System",
        "metadata": {
            "name": name,
            "namespace": "default",
            "title": shown(f"{facts.team_title or facts.team}: {facts.environment_title}", MAX_TITLE) or name,
            "description": shown(f"What {facts.team} has in {facts.environment}, by the AI platform", MAX_TEXT),
            "labels": {
                ANNOTATION_PREFIX + "team": label_value(facts.team),
                ANNOTATION_PREFIX + "environment": label_value(facts.environment),
            },
            "annotations": location_annotations(page(facts.base_url, "teams", facts.team)),
            "links": [],
            "tags": [environment] if environment else [],
        },
        "spec": {"owner": facts.owner or team_group(facts.team)},
    }
