"""The files that ship: example claims, the sample fleet, the XRDs; and a claim taken through the function by hand."""

import copy
import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from composition_function.contract import Condition, Outcome, Request
from composition_function.kinds import KINDS

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
    """Fresh copies of the sample fleet's objects."""
    return [load(path) for path in sorted(CROSSPLANE.glob("fleet/*.yaml"))]


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
        for selector in KINDS[claim["kind"]].requires
    }


def call(claim: Manifest, objects: list[Manifest], observed: dict[str, Manifest] | None = None) -> Outcome:
    """One call, on copies: nothing that the function does to its input comes back."""
    request = Request(copy.deepcopy(claim), copy.deepcopy(observed or {}), copy.deepcopy(required(claim, objects)))
    return KINDS[claim["kind"]].compose(request)


@dataclasses.dataclass
class Run:
    """A claim and what is composed for it, over several calls."""

    claim: Manifest
    objects: list[Manifest] = dataclasses.field(default_factory=fleet)
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
