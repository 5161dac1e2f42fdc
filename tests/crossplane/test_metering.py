"""What the portal counts is what the function takes: offering.yaml's CEL against the function's own arithmetic.

A GiB between them, and a claim within its quota would not fit, or one that fits would not be paid for.
"""

from functools import cache
from typing import Any

import pytest
from composition_function import needs, sizing
from composition_function.needs import need_of
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from portal.domain.cel import Environment, Program, Result
from tests.crossplane.samples import CROSSPLANE, MODEL, PLURALS, QDRANT, example, load, schema
from tests.crossplane.structural import broken_rules


@cache
def compiled(kind: str, part: str) -> tuple[Environment, list[tuple[Program, Program]]]:
    """The expressions of one part of a kind's offering.yaml: name and amount, line by line."""
    environment = Environment({"spec": schema(kind)["properties"]["spec"]})
    key, amount = ("dimension", "amount") if part == "metering" else ("sku", "quantity")
    lines = load(CROSSPLANE / "apis" / PLURALS[kind] / "offering.yaml")["spec"][part]
    return environment, [
        (environment.compile(line[key], Result.STRING), environment.compile(line[amount], Result.INT)) for line in lines
    ]


def metered(claim: dict[str, Any], part: str = "metering") -> dict[str, int]:
    """Dimension (or sku) -> amount (or quantity), as offering.yaml says it."""
    environment, programs = compiled(claim["kind"], part)
    bindings = environment.bind({"spec": claim["spec"]})
    return {name.evaluate(bindings): amount.evaluate(bindings) for name, amount in programs}


@st.composite
def databases(draw: st.DrawFn) -> dict[str, Any]:
    """Any VectorDatabase that its schema accepts."""
    claim = example(QDRANT)
    engine = draw(st.sampled_from(["pgvector", "qdrant"]))
    claim["spec"] |= {
        "engine": engine,
        "vectors": draw(st.integers(1, 100_000_000)),
        "dimensions": draw(st.integers(1, 65_536)),
        "precision": draw(st.sampled_from(["float32", "float16", "int8", "binary"])),
        "highAvailability": draw(st.booleans()),
        "suspend": draw(st.booleans()),
    }
    return claim


@settings(max_examples=150, deadline=None)
@given(databases())
def test_memory_of_a_database(claim: dict[str, Any]) -> None:
    assume(claim["spec"]["engine"] == "qdrant" or not broken_rules(schema("VectorDatabase"), claim))
    taken = {"vectordb.memory_gib": sizing.memory_gib(claim)}
    assert metered(claim) == taken == needs.metered(claim)
    assert metered(claim, "prices") == taken
    assert need_of(claim).units == taken["vectordb.memory_gib"]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 16), st.integers(1, 32), st.sampled_from(["l4", "h100-80gb"]), st.booleans())
def test_accelerators_of_a_model(count: int, most: int, name: str, suspended: bool) -> None:
    claim = example(MODEL)
    claim["spec"] |= {"accelerator": {"class": name, "count": count}, "replicas": {"min": 1, "max": most}}
    claim["spec"]["suspend"] = suspended
    need = need_of(claim)
    assert metered(claim) == {f"gpu.{need.resource}": need.units} == needs.metered(claim)
    assert metered(claim, "prices") == {f"gpu.{name}": 0 if suspended else count * most}


@pytest.mark.parametrize(
    ("engine", "vectors", "dimensions", "precision", "copies", "expected", "reason"),
    [
        ("qdrant", 5_000_000, 1536, "float32", 1, 43, "5e6 x 1536 x 4 x 1.5 bytes = 42.9 GiB"),
        ("qdrant", 5_000_000, 1536, "int8", 1, 11, "a quarter of that"),
        ("qdrant", 5_000_000, 1536, "binary", 1, 2, "a thirty-second of that"),
        ("qdrant", 5_000_000, 1536, "float32", 2, 86, "two copies, each rounded up"),
        ("pgvector", 500_000, 3072, "float16", 1, 5, "5e5 x (2 x 3072 + 8) x 1.5 bytes = 4.3 GiB"),
        ("pgvector", 1, 1, "float32", 1, 1, "never nothing"),
        ("qdrant", 1 << 28, 2, "int8", 1, 1, "not a byte more than three quarters of a GiB"),
        ("qdrant", 178_956_970, 1, "float32", 1, 1, "just below 1 GiB"),
        ("qdrant", 178_956_971, 1, "float32", 1, 2, "just above it"),
        ("qdrant", 1_000_000, 9, "binary", 1, 1, "nine bits are two bytes"),
    ],
)
def test_the_formula(
    engine: str, vectors: int, dimensions: int, precision: str, copies: int, expected: int, reason: str
) -> None:
    spec = {"engine": engine, "vectors": vectors, "dimensions": dimensions, "precision": precision}
    claim = {"kind": "VectorDatabase", "spec": {**spec, "highAvailability": copies == 2}}
    assert sizing.memory_gib(claim) == expected, reason


@settings(max_examples=100, deadline=None)
@given(databases())
def test_pods_share_what_was_metered_and_never_exceed_it(claim: dict[str, Any]) -> None:
    pods = sizing.instances(claim)
    assert pods * sizing.memory_mib_per_instance(claim) <= sizing.memory_gib(claim) * 1024
    assert sizing.memory_mib_per_instance(claim) > 0
    need = need_of(claim)
    assert need.piece * need.pieces >= need.units, "a node with room for a piece has room for a pod"
