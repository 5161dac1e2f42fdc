"""Asks Backstage's own catalog model what it thinks of entities (tests/contract/backstage, run by Node.js).

Its packages are installed once, outside the tree, in `$PORTAL_CACHE` (default ~/.cache/portal), by the lock file's
hash: another lock or platform gets a folder of its own. Without Node.js the test is skipped, or fails where CI is true.
"""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

PACKAGE = Path(__file__).parent / "backstage"
FILES = ("package.json", "package-lock.json", ".npmrc")


def refusals(entities: list[dict[str, Any]]) -> list[dict[str, str] | None]:
    """For each entity None when all policies take it, else {policy, message} of the first that doesn't."""
    node = _program("node")
    done = subprocess.run(
        [node, str(PACKAGE / "check.mjs"), str(installed())],
        input=json.dumps(entities),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer: list[dict[str, str] | None] = json.loads(done.stdout)
    assert len(answer) == len(entities)
    return answer


def installed() -> Path:
    """The folder with node_modules as locked, installed if it isn't there. Of two at once the first one stays."""
    cache = Path(os.environ.get("PORTAL_CACHE") or Path.home() / ".cache" / "portal")
    key = hashlib.sha256(b"".join((PACKAGE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    folder = cache / "backstage-policies" / f"{key}-{sys.platform}-{platform.machine()}"
    if folder.is_dir():
        return folder
    npm = _program("npm")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as made:
        inside = Path(made) / "package"
        inside.mkdir()
        for name in FILES:
            shutil.copy(PACKAGE / name, inside / name)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(command, cwd=inside, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode != 0:
            _missing(f"npm could not install Backstage's packages: {done.stderr.strip()[-500:]}")
        try:
            inside.rename(folder)
        except OSError:
            assert folder.is_dir(), f"{folder} can't be made"
    return folder


def _program(name: str) -> str:
    found = shutil.which(name)
    return found or _missing(f"{name} is not on the PATH: Node.js 20 or newer with npm is needed")


def _missing(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(what)
    pytest.skip(what)
