"""The sample world (people, teams, ceilings, prices, policies) that the demo begins with, and drafts to submit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User

from portal.domain.draft import Draft, parse_draft
from portal.models import Membership, Team
from portal.services.access import Actor
from portal.services.bootstrapping import bootstrap

SAMPLE = Path(settings.BASE_DIR) / "portal" / "demo" / "sample.yaml"

MODEL_SPEC: dict[str, Any] = {
    "model": {"source": "hf://meta-llama/Llama-3.1-8B-Instruct", "revision": "main", "quantization": "none"},
    "contextLength": 4096,
    "concurrency": 8,
    "replicas": {"min": 1, "max": 1},
    "accelerator": {"class": "l4", "count": 1},
    "dataClassification": "internal",
}


def load_sample() -> None:
    """Bootstrap the sample world into the test database."""
    bootstrap(SAMPLE, settings.OFFERINGS_PATH)


def actor(username: str) -> Actor:
    """A signed-in person of the sample world, limited by no token's scopes."""
    return Actor(User.objects.get(username=username))


def model_body(name: str = "chat", **changes: Any) -> dict[str, Any]:
    """A body that creates a model on one L4 in dev; `gpus` sets replicas.max, all else replaces a member."""
    gpus = changes.pop("gpus", 1)
    return {
        "kind": "Create",
        "offering": "modeldeployments",
        "team": "search",
        "environment": "dev",
        "name": name,
        "spec": {**MODEL_SPEC, "replicas": {"min": 1, "max": gpus}},
        **changes,
    }


def quota_body(limit: int, team: str = "ads", dimension: str = "gpu.l4") -> dict[str, Any]:
    """A body that asks for another quota."""
    return {"kind": "Quota", "team": team, "spec": {"dimension": dimension, "limit": limit}, "reason": "more work"}


@contextmanager
def member_of(team: str, username: str) -> Iterator[None]:
    """Somebody is in a team for the time of the block, and has left it afterwards."""
    row = Membership.objects.create(
        team=Team.objects.get(slug=team), user=User.objects.get(username=username), role="member"
    )
    yield
    row.delete()


def draft(body: dict[str, Any]) -> Draft:
    """The draft of a body of good form."""
    parsed = parse_draft(body)
    assert isinstance(parsed, Draft), parsed
    return parsed
