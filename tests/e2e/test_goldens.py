"""What the function composes by the goldens in tests/crossplane is what the real core makes of the examples."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from portal.running.crossplane.kube import Api, Object, eventually
from portal.running.crossplane.layout import CONTROL_PLANE, MANIFESTS
from tests.crossplane.approved import approve
from tests.e2e.remains import Clusters
from tests.e2e.test_control_plane import make_namespace

pytestmark = pytest.mark.usefixtures("approving_key")
GOLDENS = sorted((Path(__file__).parents[1] / "crossplane" / "goldens").glob("*.yaml"))
RESOURCE = "crossplane.io/composition-resource-name"
COMPOSITE = "crossplane.io/composite"
WITHIN = 120.0
# The one random thing in them, as it stands in the goldens.
GOLDEN_KEY = "YS1rZXktZm9yLWdvbGRlbnM="
HASH = re.compile(r'("aiplatform.example.org/api-key-hash":) "[0-9a-f]+"')  # of that key


@pytest.mark.parametrize("path", GOLDENS, ids=[path.stem for path in GOLDENS])
def test_the_core_makes_what_the_golden_says(portal: Api, clusters: Clusters, path: Path) -> None:
    namespace = f"golden-{path.stem.replace('.', '-')}"
    make_namespace(portal, namespace)
    (source,) = MANIFESTS.glob(f"apis/*/examples/{path.name}")
    text = source.read_text()
    claim: Object = yaml.safe_load(text)
    name, before = claim["metadata"]["name"], claim["metadata"]["namespace"]
    golden = yaml.safe_load(path.read_text().replace(before, namespace))
    for secret in (each for each in golden["resources"].values() if each["kind"] == "Secret"):
        secret["data"] = {key: elsewhere(value, before, namespace) for key, value in secret["data"].items()}
    claim["metadata"]["namespace"] = namespace
    # Where the golden is placed, whatever others hold by now: which cluster is emptiest is no part of what is made.
    claim["spec"]["regions"] = [golden["status"]["placement"]["region"]]
    portal.apply(approve(claim), manager="portal")

    def made() -> dict[str, Object] | None:
        found = composed(clusters.apis[CONTROL_PLANE], namespace, claim["metadata"]["name"])
        return found if found.keys() == golden["resources"].keys() else None

    live = eventually("all resources of the golden are there", made, WITHIN)
    uid = portal.get(claim["apiVersion"], claim["kind"], name, namespace)["metadata"]["uid"]  # type: ignore[index]
    for key, manifest in golden["resources"].items():
        of_it = json.loads(json.dumps(manifest).replace(f"uid-of-{name}", uid))
        assert missing(without_key(of_it), without_key(live[key])) == [], key
    portal.delete(claim, "Background")


def elsewhere(value: str, before: str, namespace: str) -> str:
    """A value of a Secret, in another namespace."""
    return base64.b64encode(base64.b64decode(value).replace(before.encode(), namespace.encode())).decode()


def composed(admin: Api, namespace: str, name: str) -> dict[str, Object]:
    """What a claim became, by the function's names for it."""
    kinds = (("kubernetes.m.crossplane.io/v1alpha1", "Object"), ("v1", "Secret"))
    items = [item for kind in kinds for item in admin.items(*kind, namespace)]
    return {
        item["metadata"]["annotations"][RESOURCE]: item
        for item in items
        if item["metadata"].get("labels", {}).get(COMPOSITE) == name
    }


def without_key(manifest: Object) -> Object:
    """The same with a stand-in for a random key."""
    text = json.dumps(manifest)
    data = manifest.get("data") or {}
    inner = manifest.get("spec", {}).get("forProvider", {}).get("manifest", {}).get("data") or {}
    for values in (data, inner):
        if "api-key" in values:
            text = text.replace(json.dumps(values["api-key"]), json.dumps(GOLDEN_KEY))
    found: Object = json.loads(HASH.sub(r"\1 0", text))
    return found


def missing(golden: Any, live: Any, pointer: str = "") -> list[str]:
    """Where the golden says something else than what is there; what API servers add is no difference."""
    if isinstance(golden, dict) and isinstance(live, dict):
        return [each for key, value in golden.items() for each in missing(value, live.get(key), f"{pointer}/{key}")]
    if isinstance(golden, list) and isinstance(live, list) and len(golden) == len(live):
        pairs = enumerate(zip(golden, live, strict=True))
        return [each for number, (a, b) in pairs for each in missing(a, b, f"{pointer}/{number}")]
    return [] if golden == live else [f"{pointer}: {golden!r} is {live!r}"]
