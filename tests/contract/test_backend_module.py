"""The module for Backstage's backend: its types against the packages that run it, and its own tests on Node.js."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from portal.running.backstage.install import HOST, MODULE, installed
from portal.running.backstage.node import node_in

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the module, compiled with its tests beside the backend's packages."""
    folder = tmp_path_factory.mktemp("module") / MODULE.name
    shutil.copytree(MODULE, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    packages = installed(settings.CACHE_DIR, print)
    (folder / "node_modules").symlink_to(packages / "node_modules")
    said = run(folder, "node_modules/typescript/bin/tsc", "--outDir", "build")
    assert said.returncode == 0, said.stdout
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    node = node_in(installed(settings.CACHE_DIR, print))
    return subprocess.run([node, *arguments], cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_its_tests_pass(compiled: Path) -> None:
    said = run(compiled, "--test", "--test-reporter=tap", *sorted(map(str, (compiled / "build").glob("*.test.js"))))
    assert said.returncode == 0, said.stdout[-6000:]
    counted = re.search(r"^# pass (\d+)$", said.stdout, re.MULTILINE)
    assert counted and int(counted[1]) > 40, said.stdout[-500:]  # not none because no file was found


def test_the_package_is_what_its_lock_is_of(compiled: Path) -> None:
    """Versions are those that the backend of the tests runs with: what is typed here is what runs there."""
    own = json.loads((MODULE / "package.json").read_text())
    host = json.loads((HOST / "package.json").read_text())
    for name, version in {**own["dependencies"], **own["devDependencies"]}.items():
        assert host["dependencies"].get(name) == version, name
