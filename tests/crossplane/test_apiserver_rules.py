"""The XRDs as kube-apiserver takes them: accepted themselves, and refusing what the other tests say they refuse."""

from typing import Any

import pytest

from tests.crossplane.apiserver_check import Verdict, judge
from tests.crossplane.samples import EXAMPLES, MODEL, PGVECTOR, PLURALS, QDRANT, Manifest, example, fleet, load, xrd

pytestmark = [pytest.mark.go, pytest.mark.timeout(1800)]


def verdict(new: Manifest, old: Manifest | None = None) -> Verdict:
    """What the API server says of a new object, or of a change."""
    _, (found,) = judge(xrd(new["kind"]), [(new, old)])
    return found


@pytest.mark.parametrize("kind", PLURALS)
def test_definitions_and_what_ships_are_accepted(kind: str) -> None:
    objects = [item for item in [*map(load, EXAMPLES), *fleet()] if item["kind"] == kind]
    definition, verdicts = judge(xrd(kind), [(item, None) for item in objects])
    assert definition == []
    assert len(verdicts) == len(objects) > 0
    assert [(found.errors, found.unknown) for found in verdicts] == [([], [])] * len(objects)


@pytest.mark.parametrize(
    ("name", "changes", "says", "reason"),
    [
        (MODEL, {"replicas": {"min": 2, "max": 1}}, "replicas.min must be at most replicas.max", "min above max"),
        (MODEL, {"regions": ["eu-west", "eu-west"]}, "Duplicate value", "twice the same region"),
        (MODEL, {"accelerator": {"class": "L4", "count": 1}}, "spec.accelerator.class", "the pattern"),
        (PGVECTOR, {"precision": "float32"}, "at most 2000 dimensions as float32", "3,072 dimensions need halfvec"),
        (PGVECTOR, {"precision": "int8"}, "pgvector has no int8 vectors", "no such type"),
        (QDRANT, {"backup": {"retentionDays": 7}}, "no backups for engine qdrant", "it would promise what isn't done"),
    ],
)
def test_it_refuses(name: str, changes: dict[str, Any], says: str, reason: str) -> None:
    claim = example(name)
    claim["spec"] |= changes
    (error,) = verdict(claim).errors
    assert says in error, reason


@pytest.mark.parametrize(
    ("name", "before", "after", "says", "reason"),
    [
        (QDRANT, {}, {"engine": "pgvector", "dimensions": 1000}, "the engine can't be changed", "data would be lost"),
        (QDRANT, {}, {"highAvailability": True}, "highAvailability of engine qdrant", "data would be lost"),
        (QDRANT, {}, {"vectors": 6_000_000}, None, "growing is allowed"),
        (PGVECTOR, {}, {"highAvailability": False}, None, "CloudNativePG can do that"),
    ],
)
def test_changes(name: str, before: dict[str, Any], after: dict[str, Any], says: str | None, reason: str) -> None:
    old, new = example(name), example(name)
    old["spec"] |= before
    new["spec"] |= after
    errors = verdict(new, old).errors
    assert len(errors) == (says is not None), reason
    assert says is None or says in errors[0], reason


def test_defaults_are_filled_in_and_unknown_fields_named() -> None:
    claim = example(MODEL)
    for field in ("replicas", "regions", "contextLength", "concurrency", "dataClassification"):
        del claim["spec"][field]
    claim["spec"]["replcias"] = {"max": 3}
    found = verdict(claim)
    assert (found.errors, found.unknown) == ([], ["spec.replcias"])
    assert found.object["spec"] == {
        "model": claim["spec"]["model"],
        "accelerator": claim["spec"]["accelerator"],
        "contextLength": 8192,
        "concurrency": 16,
        "replicas": {"min": 1, "max": 1},
        "regions": [],
        "dataClassification": "internal",
        "suspend": False,
    }
