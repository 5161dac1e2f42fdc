"""The files that ship: example claims, the sample fleet, the XRDs; and a claim taken through the function by hand."""

import copy
import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from composition_function.contract import Condition, Outcome, Request
from composition_function.fleet_kinds import compose_cluster
from composition_function.kinds import KINDS

from portal.running.crossplane.nodes import nodes_of

CROSSPLANE = Path(__file__).parents[2] / "crossplane"
EXAMPLES = sorted(CROSSPLANE.glob("apis/*/examples/*.yaml"))
PLURALS = {
    "ModelDeployment": "modeldeployments",
    "VectorDatabase": "vectordatabases",
    "AcceleratorClass": "acceleratorclasses",
    "InferenceCluster": "inferenceclusters",
}
Manifest = dict[str, Any]
MODEL, PRODUCTION = "llama-3.1-8b-l4", "llama-3.1-70b-fp8-h100"
QDRANT, PGVECTOR = "qdrant-5m-1536", "pgvector-3072-halfvec"


@cache
def _parsed(path: Path) -> Manifest:
    document: Manifest = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)  # a safe loader, in C
    return document


def load(path: Path) -> Manifest:
    """One YAML document; a fresh copy each time."""
    return copy.deepcopy(_parsed(path))


def name_of(path: Path) -> str:
    """What a parametrized test is called."""
    return path.stem


def fleet() -> list[Manifest]:
    """Fresh copies of the sample fleet's objects, as they are written."""
    return [load(path) for path in sorted(CROSSPLANE.glob("fleet/*.yaml"))]


def counted_fleet() -> list[Manifest]:
    """The sample fleet once its clusters are reached and their (simulated) nodes counted."""
    objects = fleet()
    classes = {item["metadata"]["name"]: item for item in objects if item["kind"] == "AcceleratorClass"}
    for item in objects:
        if item["kind"] == "InferenceCluster":
            item["status"] = counted(item, list(nodes_of(item, classes)), list(classes.values()))
    return objects


def counted(cluster: Manifest, nodes: list[Manifest], classes: list[Manifest]) -> Manifest:
    """The status of an InferenceCluster whose provider reports these nodes."""
    observed = {key: {"status": {"conditions": [{"type": "Synced", "status": "True"}]}} for key in ("probe", "nodes")}
    members = [{"kind": "Object", "status": {"atProvider": {"manifest": node}}} for node in nodes]
    return compose_cluster(Request(cluster, observed, {"nodes": members, "accelerator-classes": classes})).status


def xrd(kind: str) -> Manifest:
    """The definition of a kind."""
    return load(CROSSPLANE / "apis" / PLURALS[kind] / "definition.yaml")


def schema(kind: str) -> Manifest:
    """The OpenAPI v3 schema of a kind's only version."""
    found: Manifest = xrd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def example(name: str) -> Manifest:
    """An example claim, as an API server would hand it on: with uid, creation time and generation."""
    (path,) = [path for path in EXAMPLES if path.stem == name]
    claim = load(path)
    claim["metadata"] |= {
        "uid": f"uid-of-{claim['metadata']['name']}",
        "creationTimestamp": "2026-12-01T12:00:00Z",
        "generation": 1,
    }
    return claim


def required(claim: Manifest, objects: list[Manifest]) -> dict[str, list[Manifest]]:
    """The objects that the claim's kind asks for, by selector name; itself among them, as a control plane gives it."""
    return {
        selector.name: [item for item in [*objects, claim] if item["kind"] == selector.kind]
        for selector in KINDS[claim["kind"]].selectors(claim)
    }


def call(claim: Manifest, objects: list[Manifest], observed: dict[str, Manifest] | None = None) -> Outcome:
    """One call, on copies: nothing that the function does to its input comes back."""
    request = Request(copy.deepcopy(claim), copy.deepcopy(observed or {}), copy.deepcopy(required(claim, objects)))
    return KINDS[claim["kind"]].compose(request)


@dataclasses.dataclass
class Run:
    """A claim and what is composed for it, over several calls."""

    claim: Manifest
    objects: list[Manifest] = dataclasses.field(default_factory=counted_fleet)
    observed: dict[str, Manifest] = dataclasses.field(default_factory=dict)

    def step(self) -> Outcome:
        """One call; its status and resources are what the next one observes."""
        outcome = call(self.claim, self.objects, self.observed)
        self.claim["status"] = outcome.status
        self.observed = {
            key: {**self.observed.get(key, {}), **composed.manifest} for key, composed in outcome.resources.items()
        }
        return outcome

    def until_composed(self) -> Outcome:
        """Reserve, then bind."""
        assert self.step().resources == {}
        outcome = self.step()
        assert outcome.resources
        return outcome

    def report(self, key: str, status: Manifest, conditions: list[Manifest] | None = None, **metadata: object) -> None:
        """Let provider-kubernetes report a workload with this status."""
        manifest = copy.deepcopy(self.observed[key]["spec"]["forProvider"]["manifest"])
        manifest["metadata"] |= {"generation": 1, **metadata}
        self.observed[key]["status"] = {
            "atProvider": {"manifest": {**manifest, "status": status}},
            "conditions": conditions or [{"type": "Synced", "status": "True"}],
        }


def condition(outcome: Outcome, kind: str) -> Condition:
    """A condition of an outcome."""
    return next(c for c in outcome.conditions if c.type == kind)
