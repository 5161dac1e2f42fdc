"""kube-apiserver's own judgement of the XRDs and of objects, without a kube-apiserver.

``apiserver/main.go`` calls its validation code. It is built once (two minutes on two cores) into
``$PORTAL_CACHE/apiserver-schemas-<contents>-<system>-<machine>`` (default ~/.cache/portal).
"""

import hashlib
import json
import os
import platform
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent / "apiserver"
Manifest = dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    """What the API server says of one object, and the object with defaults filled in."""

    errors: list[str]
    unknown: list[str]
    object: Manifest


def crd_of(xrd: Manifest) -> Manifest:
    """The CustomResourceDefinition that Crossplane makes of an XRD, without what Crossplane adds to its schema."""
    spec = xrd["spec"]
    versions = [
        {
            "name": version["name"],
            "served": True,
            "storage": True,
            "schema": version["schema"],
            "subresources": {"status": {}},
            "additionalPrinterColumns": version.get("additionalPrinterColumns", []),
        }
        for version in spec["versions"]
    ]
    names = {**spec["names"], "listKind": f"{spec['names']['kind']}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": xrd["metadata"],
        "spec": {"group": spec["group"], "scope": spec["scope"], "names": names, "versions": versions},
    }


def judge(xrd: Manifest, cases: list[tuple[Manifest, Manifest | None]]) -> tuple[list[str], list[Verdict]]:
    """Errors of the definition, and a verdict for each (object, what it was before or None)."""
    question = {"crd": crd_of(xrd), "cases": [{"object": new} | ({"old": old} if old else {}) for new, old in cases]}
    done = subprocess.run(
        [_binary()], input=json.dumps(question), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    return answer["definition"], [Verdict(**case) for case in answer["cases"] or []]


def _binary() -> Path:
    """The program, built if this version of it is not in the cache."""
    contents = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(SOURCE.iterdir()))).hexdigest()[:12]
    root = Path(os.environ.get("PORTAL_CACHE") or Path.home() / ".cache" / "portal")
    target = root / f"apiserver-schemas-{contents}-{platform.system()}-{platform.machine()}".lower()
    if not target.exists():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as scratch:
            made = Path(scratch) / "apiserver"
            done = subprocess.run(
                ["go", "build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o", str(made), "."],
                cwd=SOURCE,
                env={**os.environ, "GOFLAGS": "-modcacherw", "CGO_ENABLED": "0"},
                capture_output=True,
                text=True,
                timeout=1500,
                check=False,
            )
            assert done.returncode == 0, f"go build: {done.stderr}"
            made.rename(target)
    return target
