"""The scratch spaces on a real control plane: their function as a process that can be killed, and what is installed.

In charge of: an offering that is quick and does what it is told. Not in charge of: the portal's own offerings.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from portal.running import valkey
from portal.running.crossplane import install, probes
from portal.running.crossplane.kube import Api, eventually, is_true
from portal.running.crossplane.plan import LocalControlPlane
from portal.running.plan import ROOT

HERE = Path(__file__).parent
FILES = HERE / "scratchspaces"
FUNCTION = "scratch-function"
DEMO = ROOT / "portal" / "demo"
LIMIT = 100_000  # GiB; of the team that asks for hundreds


class ScratchFunction:
    """Its process, always on the same port."""

    def __init__(self, plane: LocalControlPlane) -> None:
        self._tls = plane.layout.function_tls
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"dns:///localhost:{self.port}"

    def start(self) -> None:
        command = [sys.executable, str(HERE / "scratch_function.py"), "--address", f"localhost:{self.port}"]
        command = valkey.launch_command([*command, "--tls-certs-dir", str(self._tls)])
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        eventually("the scratch function listens", lambda: probes.accepts(self.port), 30)

    def kill(self) -> None:
        """SIGKILL: nothing is said to anybody."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def files(folder: Path) -> tuple[Path, Path]:
    """A folder of offerings with this one, and a bootstrap file whose world can pay for hundreds of them.

    Team `lab` (ada and ben) has quota and budget for them in dev, where nobody is asked; team `attic` has 3 GiB.
    """
    shutil.copytree(FILES, folder / "offerings" / FILES.name)
    sample: dict[str, Any] = yaml.safe_load((DEMO / "sample.yaml").read_text())
    sample["teams"].append({"slug": "lab", "title": "Lab", "members": _members(("ada", "owner"), ("ben", "member"))})
    sample["teams"].append({"slug": "attic", "title": "Attic", "members": _members(("ada", "owner"))})
    sample["quotas"].append({"team": "lab", "dimension": "scratch.gib", "limit": LIMIT})
    sample["quotas"].append({"team": "attic", "dimension": "scratch.gib", "limit": 3})
    sample["budgets"].append({"team": "lab", "currency": "USD", "soft": "900000", "hard": "1000000"})
    prices = (DEMO / sample["prices"]).read_text().rstrip("\n")
    prices += "\nscratch.gib,month,1.00,USD,*,2026-01-01,a price of these tests,2026-01-01\n"
    (folder / "bundle.yaml").write_text((DEMO / sample["bundle"]).read_text())
    (folder / "prices.csv").write_text(prices)
    own = {"bundle": "bundle.yaml", "prices": "prices.csv", "directory": str(DEMO / sample["directory"])}
    (folder / "sample.yaml").write_text(yaml.safe_dump({**sample, **own}))
    return folder / "offerings", folder / "sample.yaml"


def install_on(api: Api, endpoint: str) -> None:
    """XRD, Composition, function and the portal's rights."""
    install.function(api, endpoint, FUNCTION)
    for path in (FILES / "definition.yaml", FILES / "composition-plain.yaml", HERE / "rbac-scratchspaces.yaml"):
        api.apply(yaml.safe_load(path.read_text()))
    name = "scratchspaces.aiplatform.example.org"

    def served() -> bool:
        return is_true(api.get(install.XRD, "CompositeResourceDefinition", name), "Established")

    eventually("scratch spaces are served", served, 60)


def body(name: str, size: int = 1, **spec: Any) -> dict[str, Any]:
    """What creates one for team lab in dev; approved at once."""
    head = {"kind": "Create", "offering": "scratchspaces", "team": "lab", "environment": "dev", "name": name}
    return {**head, "spec": {"size": size, **spec}}


def _members(*members: tuple[str, str]) -> Sequence[dict[str, str]]:
    return [{"user": user, "role": role} for user, role in members]
