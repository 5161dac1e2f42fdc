"""The CRDs of the projects whose objects are composed, out of their Go modules. None of them is kept in the tree.

They are downloaded once, by the go command, into ``$PORTAL_CACHE/crds-<name>-<version>`` (default ~/.cache/portal).
"""

import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class Module:
    """A Go module, the folder of CRDs in it, and the checksum of its contents (as a go.sum has it)."""

    path: str
    version: str
    folder: str
    checksum: str

    @property
    def name(self) -> str:
        """What the cache calls it."""
        return self.path.replace("/", "+")


KSERVE = Module(
    "github.com/kserve/kserve",
    "v0.20.0",
    "config/crd/full/llmisvc",
    "h1:Bs7HxmGV4KFqqptDcWseKv+mwD4YOYHJWcuVgPG2Gug=",
)
CLOUDNATIVE_PG = Module(
    "github.com/cloudnative-pg/cloudnative-pg",
    "v1.30.0",
    "config/crd/bases",
    "h1:fnhVq44xXx97MNiuvJsPrX1vSjYbgdyBK5MSGfdHdp0=",
)
PROVIDER_KUBERNETES = Module(
    "github.com/crossplane-contrib/provider-kubernetes",
    "v1.0.0",
    "package/crds",
    "h1:tsK7OlJP/D+/FBGK16QGXRgR0TxGjE5Mt4Uvj5yszXI=",
)
CROSSPLANE = Module(
    "github.com/crossplane/crossplane/v2",
    "v2.2.1",
    "cluster/crds",
    "h1:1oN2prePpsJAi6+W/qe53AA/nHCeDQCIMDth5jetSr4=",
)
# API group -> whose CRDs describe it.
GROUPS = {
    "serving.kserve.io": KSERVE,
    "postgresql.cnpg.io": CLOUDNATIVE_PG,
    "kubernetes.m.crossplane.io": PROVIDER_KUBERNETES,
    "apiextensions.crossplane.io": CROSSPLANE,
}


@cache
def schema_of(api_version: str, kind: str) -> dict[str, Any]:
    """The OpenAPI v3 schema of a kind. AssertionError if its group's CRDs have no such kind or version."""
    group, _, version = api_version.partition("/")
    for crd in _crds(GROUPS[group]):
        if crd["spec"]["group"] == group and crd["spec"]["names"]["kind"] == kind:
            served = {v["name"]: v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"] if v["served"]}
            assert version in served, f"{kind} is served as {sorted(served)}, not as {version}"
            found: dict[str, Any] = served[version]
            return found
    raise AssertionError(f"{GROUPS[group].path} {GROUPS[group].version} has no {kind}.{group}")


@cache
def _crds(module: Module) -> tuple[dict[str, Any], ...]:
    documents = (
        document
        for path in sorted(_folder(module).glob("*.yaml"))
        for document in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    )
    # Beside the CRDs may lie patches of them, which name no group.
    return tuple(d for d in documents if d.get("kind") == "CustomResourceDefinition" and "group" in d["spec"])


def _folder(module: Module) -> Path:
    """The module's CRDs in the cache, downloaded if they are not there yet."""
    root = Path(os.environ.get("PORTAL_CACHE") or Path.home() / ".cache" / "portal")
    target = root / f"crds-{module.name}-{module.version}"
    if target.is_dir():
        return target
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=root) as scratch:
        source = _download(module, Path(scratch))
        copy = Path(scratch) / "crds"
        shutil.copytree(source, copy, copy_function=shutil.copyfile)
        copy.chmod(0o755)
        try:
            copy.rename(target)
        except OSError:  # another process was faster
            assert target.is_dir()
    return target


def _download(module: Module, scratch: Path) -> Path:
    """The folder of CRDs in a module cache below ``scratch``."""
    done = subprocess.run(
        ["go", "mod", "download", "-json", f"{module.path}@{module.version}"],
        cwd=scratch,
        env={**os.environ, "GOMODCACHE": str(scratch / "modules"), "GOFLAGS": "-modcacherw"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"go mod download {module.path}@{module.version}: {done.stdout}{done.stderr}"
    answer = json.loads(done.stdout)
    assert answer["Sum"] == module.checksum, f"{module.path} {module.version} is not what it was: {answer['Sum']}"
    return Path(answer["Dir"]) / module.folder
