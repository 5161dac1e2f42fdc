"""The main job on the real thing: both offerings across two workload clusters, from the form to Ready and back to Gone.

All requests run side by side: a deletion within 30 s of a creation takes a minute (test_control_plane.CREATION_GRACE).
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from portal.demo.scenario import BODIES
from portal.domain import strict_yaml
from portal.rendering.names import ANNOTATION_PREFIX
from portal.running.crossplane.kube import eventually
from tests.e2e.remains import Clusters
from tests.e2e.test_control_plane import CREATION_GRACE
from tests.front import Front

NAMESPACE = "search-dev"
READY_WITHIN = 120.0  # seconds; seen: under 5
GONE_WITHIN = 240.0
SHIPPED: dict[str, dict[str, Any]] = strict_yaml.parse(BODIES.read_text(encoding="utf-8"), str(BODIES))


def model(name: str, region: str) -> dict[str, Any]:
    body = {**SHIPPED["small-model"], "name": name}
    return {**body, "spec": {**body["spec"], "regions": [region]}}


def database(name: str, region: str, engine: str) -> dict[str, Any]:
    spec = {"engine": engine, "vectors": 100_000, "dimensions": 384, "precision": "float32", "highAvailability": False}
    spec |= {"backup": {"retentionDays": 0}, "dataClassification": "internal", "regions": [region]}
    return {**SHIPPED["database"], "name": name, "spec": spec}


JOBS = [
    ("chat-central", model("chat-central", "eu-central"), "eu-central-1"),
    ("chat-west", model("chat-west", "eu-west"), "eu-west-1"),
    ("docs-central", database("docs-central", "eu-central", "qdrant"), "eu-central-1"),
    ("docs-west", database("docs-west", "eu-west", "pgvector"), "eu-west-1"),
]
NAMES = [job[0] for job in JOBS]


@dataclass
class Job:
    """What was there before, and what came of each request."""

    before: dict[str, str]
    done: dict[str, dict[str, Any]] = field(default_factory=dict)  # requests by name
    instances: dict[str, dict[str, Any]] = field(default_factory=dict)


@pytest.fixture(scope="module")
def job(front: Front, clusters: Clusters) -> Iterator[Job]:
    """All four asked for at once, and waited for."""
    found = Job(clusters.objects_in(NAMESPACE))
    started = time.monotonic()
    asked = {name: front.submit("ada", body) for name, body, _ in JOBS}
    for name, request in asked.items():
        found.done[name] = front.done(request, READY_WITHIN)
        found.instances[name] = front.instance(found.done[name]["instance"])
        print(f"{name}: Done {time.monotonic() - started:.1f} s after the first was asked for")
    yield found


@pytest.mark.parametrize(("name", "body", "cluster"), JOBS, ids=NAMES)
def test_it_becomes_ready_where_it_may_be(
    job: Job, front: Front, name: str, body: dict[str, Any], cluster: str
) -> None:
    instance = job.instances[name]
    assert instance["phase"] == "Ready", instance["message"]
    assert instance["status"]["placement"]["cluster"] == cluster
    assert instance["endpoint"], "where it answers"
    assert instance["composed"], "what it became"

    def all_ready() -> bool:
        """What it composed is seen through another watch than the claim is."""
        return not [each for each in front.instance(instance["id"])["composed"] if each["ready"] is False]

    eventually("all that was composed is seen to be ready", all_ready, 90)
    assert "simulated" not in instance["controlPlane"]


@pytest.mark.parametrize("name", NAMES)
def test_the_claim_is_the_one_that_was_approved(
    job: Job, clusters: Clusters, front: Front, name: str, plane: Any
) -> None:
    instance = job.instances[name]
    claim = instance["claim"]
    live = next(iter(clusters.apis.values())).get(
        claim["apiVersion"], claim["kind"], claim["metadata"]["name"], NAMESPACE
    )
    assert live is not None
    rows = front.rows("SELECT claim_uid FROM portal_instance WHERE id = %s", instance["id"])
    assert rows == [(live["metadata"]["uid"],)]
    assert live["metadata"]["labels"][f"{ANNOTATION_PREFIX}instance"] == instance["id"]
    assert live["spec"]["crossplane"]["compositionUpdatePolicy"] == "Manual"
    pinned = live["spec"]["crossplane"]["compositionRevisionRef"]["name"]
    assert pinned == claim["spec"]["crossplane"]["compositionRevisionRef"]["name"]
    managers = {entry["manager"] for entry in live["metadata"]["managedFields"] if "f:spec" in entry["fieldsV1"]}
    assert "portal" in managers


def test_the_catalog_has_them_all(job: Job, front: Front) -> None:
    deadline = time.monotonic() + 30
    states: dict[str, str] = {}
    while time.monotonic() < deadline:
        entities = front.entities().values()
        states = {e["metadata"]["title"]: e["metadata"]["annotations"][f"{ANNOTATION_PREFIX}state"] for e in entities}
        if all(states.get(name) == "Ready" for name in NAMES):
            return
        time.sleep(0.3)
    raise AssertionError(f"the feed says {states}")


def test_deleting_leaves_nothing_on_any_cluster(job: Job, front: Front, clusters: Clusters) -> None:
    there = clusters.objects_in(NAMESPACE)
    made = {key: uid for key, uid in there.items() if job.before.get(key) != uid}
    print(json.dumps(sorted(made), indent=1))
    assert len(made) >= 3 * len(JOBS), "claim, Object and workload of each"
    servers = {key.split()[0] for key in made}
    assert servers == set(clusters.apis), "the control plane and both workload clusters"
    time.sleep(max(0.0, CREATION_GRACE - min(_age(each) for each in job.instances.values())))
    started = time.monotonic()
    deletions = {
        name: front.submit("ada", {"kind": "Delete", "instance": instance["id"]})
        for name, instance in job.instances.items()
    }
    for name, request in deletions.items():
        front.done(request, GONE_WITHIN)
        print(f"{name}: gone {time.monotonic() - started:.1f} s after all were deleted")
    for instance in job.instances.values():
        assert front.instance(instance["id"])["phase"] == "Gone"
        assert front.holds(instance["id"]) == (0, 0)
    left = {key: uid for key, uid in clusters.objects_in(NAMESPACE).items() if made.get(key) == uid}
    assert left == {}, "nothing of it is left, by uid"


def _age(instance: dict[str, Any]) -> float:
    created = dt.datetime.fromisoformat(instance["createdAt"])
    return (dt.datetime.now(dt.UTC) - created).total_seconds()
