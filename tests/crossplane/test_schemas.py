"""The XRDs: their examples are valid, what is wrong is refused where it is wrong, and a cluster could take them."""

import copy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.crossplane.samples import (
    CROSSPLANE,
    EXAMPLES,
    MODEL,
    PGVECTOR,
    PLURALS,
    QDRANT,
    example,
    fleet,
    load,
    name_of,
    schema,
    xrd,
)
from tests.crossplane.structural import broken_rules, strict

# What apiextensions refuses in a structural schema (Kubernetes' documentation, "Custom Resources", read 2026-12).
NOT_STRUCTURAL = {"$ref", "uniqueItems", "definitions", "oneOf", "anyOf", "allOf", "not", "dependencies", "const"}
FLEET_FILES = sorted(CROSSPLANE.glob("fleet/*.yaml"))


def errors(claim: dict[str, Any]) -> list[str]:
    """Pointers of all that the schema refuses."""
    return sorted(
        "/" + "/".join(str(step) for step in error.instance_path)
        for error in jsonschema_rs.validator_for(strict(schema(claim["kind"]))).iter_errors(claim)
    )


def broken(claim: dict[str, Any]) -> list[str]:
    """Messages of the CEL rules that are broken."""
    return broken_rules(schema(claim["kind"]), claim)


def changed(claim: dict[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    """A copy with one field of the spec set, or removed (...)."""
    claim = copy.deepcopy(claim)
    *path, last = pointer.split("/")[1:]
    node = claim
    for step in path:
        node = node[step]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return claim


@pytest.mark.parametrize("path", EXAMPLES + FLEET_FILES, ids=name_of)
def test_what_ships_is_valid(path: Path) -> None:
    document = load(path)
    assert errors(document) == []
    assert broken(document) == []


@pytest.mark.parametrize(
    ("name", "pointer", "value", "where", "reason"),
    [
        (MODEL, "/spec/model/source", "meta-llama/Llama-3.1-8B", "/spec/model/source", "without hf://"),
        (MODEL, "/spec/model/source", "hf://gpt2", "/spec/model/source", "no owner: KServe can't fetch it"),
        (MODEL, "/spec/model/source", "hf://a/b:main", "/spec/model/source", "the revision has a field of its own"),
        (MODEL, "/spec/model/source", "hf://a/$(reboot)", "/spec/model/source", "the image's entrypoint is a shell"),
        (MODEL, "/spec/model/source", f"hf://{'a' * 97}/b", "/spec/model/source", "an owner of 97 characters"),
        (MODEL, "/spec/model/revision", "feature/x", "/spec/model/revision", "KServe splits the address at slashes"),
        (MODEL, "/spec/model/revision", "main; reboot", "/spec/model/revision", "the entrypoint is a shell"),
        (MODEL, "/spec/model/quantization", "int3", "/spec/model/quantization", "not a known format"),
        (MODEL, "/spec/model", ..., "/spec", "no model"),
        (MODEL, "/spec/modle", {}, "/spec", "a field that nobody knows"),
        (MODEL, "/spec/contextLength", 255, "/spec/contextLength", "too short to be useful"),
        (MODEL, "/spec/contextLength", "4096", "/spec/contextLength", "a number as text"),
        (MODEL, "/spec/contextLength", 4096.5, "/spec/contextLength", "a fraction"),
        (MODEL, "/spec/concurrency", 0, "/spec/concurrency", "nothing could be served"),
        (MODEL, "/spec/replicas/min", 0, "/spec/replicas/min", "an endpoint that doesn't answer"),
        (MODEL, "/spec/replicas/max", 33, "/spec/replicas/max", "above the bound"),
        (MODEL, "/spec/replicas/max", ..., "/spec/replicas", "metering would count nothing"),
        (MODEL, "/spec/accelerator/class", "L4", "/spec/accelerator/class", "class names are lower case"),
        (MODEL, "/spec/accelerator/class", "l4-", "/spec/accelerator/class", "not a name in Kubernetes"),
        (MODEL, "/spec/accelerator/count", 17, "/spec/accelerator/count", "no node has as many"),
        (MODEL, "/spec/regions", ["EU"], "/spec/regions/0", "region names are lower case"),
        (MODEL, "/spec/regions", "eu-west", "/spec/regions", "a text in place of a list"),
        (MODEL, "/spec/dataClassification", "secret", "/spec/dataClassification", "not a classification"),
        (QDRANT, "/spec/engine", "milvus", "/spec/engine", "not offered"),
        (QDRANT, "/spec/vectors", 0, "/spec/vectors", "an empty database has no size"),
        (QDRANT, "/spec/vectors", 100_000_001, "/spec/vectors", "beyond what Qdrant is for"),
        (QDRANT, "/spec/dimensions", 65_537, "/spec/dimensions", "Qdrant's own limit"),
        (QDRANT, "/spec/precision", "float64", "/spec/precision", "not offered"),
        (QDRANT, "/spec/highAvailability", "yes", "/spec/highAvailability", "a text in place of a boolean"),
        (QDRANT, "/spec/backup/retentionDays", 366, "/spec/backup/retentionDays", "above the bound"),
    ],
)
def test_what_is_wrong_is_refused_where_it_is_wrong(
    name: str, pointer: str, value: Any, where: str, reason: str
) -> None:
    assert errors(changed(example(name), pointer, value)) == [where], reason


@pytest.mark.parametrize(
    ("name", "changes", "says", "reason"),
    [
        (MODEL, {"/spec/replicas/min": 2}, "replicas.min must be at most replicas.max", "min above max"),
        (MODEL, {"/spec/replicas/min": 2, "/spec/replicas/max": 2}, None, "equal is a fixed number"),
        (PGVECTOR, {"/spec/precision": "float32"}, "precision float16 (up to 4000)", "3,072 dimensions need halfvec"),
        (PGVECTOR, {"/spec/precision": "float32", "/spec/dimensions": 2000}, None, "vector's limit itself"),
        (PGVECTOR, {"/spec/precision": "float32", "/spec/dimensions": 2001}, "at most 2000", "one above"),
        (PGVECTOR, {"/spec/dimensions": 4000}, None, "halfvec's limit itself"),
        (PGVECTOR, {"/spec/dimensions": 4001}, "precision binary (up to 64000)", "one above"),
        (PGVECTOR, {"/spec/precision": "binary", "/spec/dimensions": 64000}, None, "bit's limit itself"),
        (PGVECTOR, {"/spec/precision": "binary", "/spec/dimensions": 64001}, "at most 64000", "one above"),
        (PGVECTOR, {"/spec/precision": "int8"}, "pgvector has no int8 vectors", "no such type"),
        (QDRANT, {"/spec/dimensions": 65536}, None, "the limits of pgvector are not Qdrant's"),
        (QDRANT, {"/spec/precision": "int8"}, None, "scalar quantization"),
        (QDRANT, {"/spec/backup/retentionDays": 7}, "no backups for engine qdrant", "it would promise what isn't done"),
    ],
)
def test_rules_across_fields_say_what_would_pass(
    name: str, changes: dict[str, Any], says: str | None, reason: str
) -> None:
    claim = example(name)
    for pointer, value in changes.items():
        claim = changed(claim, pointer, value)
    messages = broken(claim)
    assert len(messages) == (says is not None), reason
    assert says is None or says in messages[0], reason
    assert errors(claim) == [], "only the rule may refuse it"


def _described(node: dict[str, Any], path: str) -> list[str]:
    """Everything about a schema that a structural schema or a form can't do without, by path."""
    wrong = [f"{path}: {key}" for key in NOT_STRUCTURAL & node.keys()]
    wrong += [f"{path}: no {key}" for key in ("type",) if key not in node]
    for name, child in node.get("properties", {}).items():
        wrong += [f"{path}/{name}: no {key}" for key in ("title", "description") if not child.get(key)]
        wrong += _described(child, f"{path}/{name}")
    if "items" in node:
        wrong += _described(node["items"], f"{path}/*")
    return wrong


@pytest.mark.parametrize("kind", PLURALS)
def test_every_field_is_described_and_structural(kind: str) -> None:
    document = schema(kind)
    assert [wrong for part, node in document["properties"].items() for wrong in _described(node, part)] == []


def _unbounded(node: dict[str, Any], path: str) -> list[str]:
    bounds = {"string": ("maxLength", "enum"), "array": ("maxItems",), "integer": ("maximum",)}
    wanted = bounds.get(node["type"], ())
    wrong = [path] if wanted and not any(bound in node for bound in wanted) else []
    for name, child in node.get("properties", {}).items():
        wrong += _unbounded(child, f"{path}/{name}")
    return wrong + (_unbounded(node["items"], f"{path}/*") if "items" in node else [])


@pytest.mark.parametrize("kind", PLURALS)
def test_every_field_of_a_spec_is_bounded(kind: str) -> None:
    """Without bounds the API server refuses CEL rules for their cost, and so would any reader for their size."""
    assert _unbounded(schema(kind)["properties"]["spec"], "/spec") == []


@pytest.mark.parametrize("kind", PLURALS)
def test_defaults_are_valid(kind: str) -> None:
    def walk(node: dict[str, Any]) -> None:
        if "default" in node:
            assert jsonschema_rs.is_valid(node, node["default"])
        for child in node.get("properties", {}).values():
            walk(child)

    walk(schema(kind)["properties"]["spec"])


@pytest.mark.parametrize("kind", PLURALS)
def test_compositions_and_definitions_belong_together(kind: str) -> None:
    definition = xrd(kind)
    folder = CROSSPLANE / "apis" / PLURALS[kind]
    compositions = {c["metadata"]["name"]: c for c in map(load, folder.glob("composition-*.yaml"))}
    assert definition["metadata"]["name"] == f"{PLURALS[kind]}.{definition['spec']['group']}"
    default = compositions[definition["spec"]["defaultCompositionRef"]["name"]]
    assert default["spec"]["compositeTypeRef"]["kind"] == kind
    assert [step["functionRef"]["name"] for step in default["spec"]["pipeline"]] == ["composition-function"]
    assert (folder / "offering.yaml").exists() == (definition["spec"]["scope"] == "Namespaced")


def test_the_fleet_refers_only_to_classes_that_it_has() -> None:
    classes = {item["metadata"]["name"] for item in fleet() if item["kind"] == "AcceleratorClass"}
    used = {p["acceleratorClass"] for c in fleet() if c["kind"] == "InferenceCluster" for p in c["spec"]["pools"]}
    assert used == classes == {"l4", "l40s", "a100-80gb", "h100-80gb"}
