"""What is composed is what KServe, CloudNativePG, provider-kubernetes and Crossplane accept: by their own CRDs.

Unknown fields are refused, since an API server that drops one says nothing.
"""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from composition_function.fleet_kinds import probe_object, provider_config

from tests.crossplane.samples import (
    CROSSPLANE,
    EXAMPLES,
    PGVECTOR,
    PRODUCTION,
    QDRANT,
    Run,
    example,
    fleet,
    load,
    name_of,
)
from tests.crossplane.structural import broken_rules, errors, strict
from tests.crossplane.upstream import GROUPS, schema_of

pytestmark = [pytest.mark.go, pytest.mark.timeout(600)]
# Kubernetes' own kinds come with no CRD.
CORE = {"Secret", "Service", "StatefulSet", "Namespace"}


def refused(manifest: dict[str, Any]) -> list[str]:
    """All that the upstream CRD refuses in a manifest."""
    identity = manifest["apiVersion"], manifest["kind"]
    return errors(strict_schema_of(*identity), manifest) + broken_rules(schema_of(*identity), manifest)


@cache
def strict_schema_of(api_version: str, kind: str) -> dict[str, Any]:
    """Made once: KServe's schema has a pod in it several times."""
    return strict(schema_of(api_version, kind))


def documents(run: Run) -> list[dict[str, Any]]:
    """Everything composed for a claim: the Objects, and what is wrapped in them."""
    manifests = [composed.manifest for composed in run.until_composed().resources.values()]
    return manifests + [m["spec"]["forProvider"]["manifest"] for m in manifests if m["kind"] == "Object"]


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_composed_manifests_are_accepted(path: Path) -> None:
    found = documents(Run(example(path.stem)))
    known = [manifest for manifest in found if manifest["apiVersion"].partition("/")[0] in GROUPS]
    assert {manifest["kind"] for manifest in found if manifest not in known} <= CORE
    assert [(manifest["kind"], refused(manifest)) for manifest in known if refused(manifest)] == []


@pytest.mark.parametrize(
    ("name", "changes", "kinds", "reason"),
    [
        (PRODUCTION, {"replicas": {"min": 2, "max": 2}}, {"LLMInferenceService"}, "a fixed number of replicas"),
        (PGVECTOR, {"backup": {"retentionDays": 0}}, {"Cluster"}, "no backups"),
        (PGVECTOR, {"highAvailability": False}, {"Cluster", "ScheduledBackup"}, "one instance"),
        (QDRANT, {"highAvailability": True, "precision": "int8"}, {"StatefulSet"}, "three nodes"),
    ],
)
def test_variants_are_accepted(name: str, changes: dict[str, Any], kinds: set[str], reason: str) -> None:
    run = Run(example(name))
    run.claim["spec"] |= changes
    found = documents(run)
    assert kinds <= {manifest["kind"] for manifest in found}, reason
    for manifest in found:
        if manifest["kind"] not in CORE:
            assert refused(manifest) == [], reason


@pytest.mark.parametrize("cluster", [item for item in fleet() if item["kind"] == "InferenceCluster"], ids=str)
def test_what_a_cluster_becomes_is_accepted(cluster: dict[str, Any]) -> None:
    assert refused(provider_config(cluster)) == []
    assert refused(probe_object(cluster)) == []


FILES = sorted([*CROSSPLANE.glob("apis/*/definition.yaml"), *CROSSPLANE.glob("apis/*/composition-*.yaml")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_definitions_and_compositions_are_accepted_by_crossplane(path: Path) -> None:
    assert refused(load(path)) == []


@pytest.mark.parametrize(
    ("pointer", "value", "says", "reason"),
    [
        (("spec", "modle"), {}, "modle", "a field that KServe doesn't know"),
        (("spec", "replicas"), "two", "replicas", "a type that it doesn't take"),
        (("spec", "replicas"), 1, "mutually exclusive", "its rule about replicas and scaling"),
        (("spec", "scaling", "minReplicas"), 3, "minReplicas cannot exceed", "its rule about the limits"),
    ],
)
def test_this_would_notice(pointer: tuple[str, ...], value: Any, says: str, reason: str) -> None:
    (manifest,) = [m for m in documents(Run(example(PRODUCTION))) if m["kind"] == "LLMInferenceService"]
    manifest = copy.deepcopy(manifest)
    node = manifest
    for step in pointer[:-1]:
        node = node[step]
    node[pointer[-1]] = value
    assert any(says in message for message in refused(manifest)), reason
