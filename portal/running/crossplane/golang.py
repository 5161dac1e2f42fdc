"""In charge of: the Go toolchain, and Go modules that are what they were when their checksum was written down.

Not in charge of: which modules (parts.py), or compiling them (build.py).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from portal.running.errors import BuildFailed, MissingPart

OLDEST = (1, 26)  # Crossplane v2.2.1 asks for 1.25.9, Kubernetes v1.35.4 for 1.25.0; built and tried with 1.26
_VERSION = re.compile(r"go version go(\d+)\.(\d+)")


@dataclass(frozen=True)
class GoModule:
    """A Go module and the checksum of its contents, as a go.sum has it: `h1:…`."""

    path: str
    version: str
    checksum: str

    @property
    def name(self) -> str:
        """What the cache calls it."""
        return self.path.replace("/", "+")


def go_environment(cache: Path) -> dict[str, str]:
    """For the go command: modules in the cache, removable; no C compiler, no other toolchain behind one's back.

    The checksum database is not asked: every module is checked against sums that are written down.
    """
    own = {
        "GOMODCACHE": str(cache / "go-modules"),
        "GOFLAGS": "-modcacherw",
        "GOWORK": "off",
        "GOTOOLCHAIN": "local",
        "GOSUMDB": "off",
        "CGO_ENABLED": "0",
    }
    return {**os.environ, **own}


def require_go() -> None:
    """Raises MissingPart unless a Go that is new enough is on the path."""
    wanted = f"Go {OLDEST[0]}.{OLDEST[1]} or newer is needed to build Crossplane and Kubernetes' API server"
    advice = "Install it from the Go project's download page (Debian 12's is too old) and put it on the PATH."
    if shutil.which("go") is None:
        raise MissingPart(f"{wanted}, and there is no `go` on the PATH. {advice}")
    said = subprocess.run(
        ["go", "version"],  # noqa: S607 - the one that the user has on the path
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "GOTOOLCHAIN": "local"},
    )
    found = _VERSION.match(said.stdout)
    if found is None or (int(found[1]), int(found[2])) < OLDEST:
        raise MissingPart(f"{wanted}; this one says {(said.stdout or said.stderr).strip()!r}. {advice}")


def download(module: GoModule, cache: Path) -> Path:
    """The module's folder in the cache's module cache. Raises BuildFailed if it can't be had or is not what it was."""
    require_go()
    what = f"{module.path}@{module.version}"
    done = subprocess.run(
        ["go", "mod", "download", "-json", what],  # noqa: S607
        cwd=cache,
        env=go_environment(cache),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if done.returncode != 0 or "Dir" not in answer:
        raise BuildFailed(f"go mod download {what} failed: {answer.get('Error') or done.stderr.strip()}")
    if answer["Sum"] != module.checksum:
        raise BuildFailed(
            f"{what} is not what it was: its checksum is {answer['Sum']}, expected {module.checksum}. "
            f"Remove {cache / 'go-modules'} if it may be damaged; else somebody has changed the module."
        )
    return Path(answer["Dir"])
