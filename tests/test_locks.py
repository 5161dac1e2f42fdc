"""Lock files: every package with hashes, everything that pyproject.toml asks for, and no address of any registry."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)(\[[a-z,-]+\])?==\S+", re.MULTILINE)


def _committed_locks() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "uv.lock", "go.sum")
    return [
        ROOT / name
        for name in listed.splitlines()
        if Path(name).name in names or re.search(r"requirements[^/]*(/|\.txt$)", name)
    ]


def test_no_lock_file_holds_an_address() -> None:
    found = _committed_locks()
    assert set(LOCKS) <= set(found), "lock files are committed"
    for path in found:
        # npm's lock files also say where a package's authors take donations: only where it comes from counts.
        pattern = r'"resolved": "(\w+://[^"]+)' if path.suffix == ".json" else r"(\w+://\S+)"
        addresses = [] if path.suffix == ".sh" else re.findall(pattern, path.read_text())
        assert not addresses, f"{path.relative_to(ROOT)} names {addresses[0]}"


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_every_package_has_hashes(path: Path) -> None:
    blocks = re.split(r"\n(?=[a-z0-9])", path.read_text())
    packages = [block for block in blocks if PINNED.match(block)]
    assert packages
    for block in packages:
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_the_locks_hold_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = {
        "base": project["dependencies"],
        "embedded": project["dependencies"] + extras["embedded"],
        "crossplane": project["dependencies"] + extras["embedded"] + extras["crossplane"],
        "dev": project["dependencies"] + extras["embedded"] + extras["crossplane"] + extras["dev"],
    }
    for name, requirements in wanted.items():
        pinned = {match[1] for match in PINNED.finditer((ROOT / "requirements" / f"{name}.txt").read_text())}
        asked = {re.match(r"[\w.-]+", text)[0].lower().replace("_", "-") for text in requirements}  # type: ignore[index]
        assert asked <= pinned, f"run `make lock`: {name}.txt lacks {sorted(asked - pinned)}"


def test_everything_that_the_portal_imports_is_declared() -> None:
    """What is only installed by chance, as a dependency of another package, can vanish with it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = {
        re.match(r"[\w.-]+", text)[0].lower()  # type: ignore[index]
        for text in project["dependencies"] + extras["embedded"] + extras["crossplane"]
    }
    packages = packages_distributions()
    for path in sorted((ROOT / "portal").rglob("*.py")):
        for module in _imported(path) - set(sys.stdlib_module_names) - {"portal"}:
            names = {name.lower().replace("_", "-") for name in packages.get(module, [])}
            assert names & declared, (
                f"{path.relative_to(ROOT)} imports {module}; add {names or module} to pyproject.toml"
            )


def _imported(path: Path) -> set[str]:
    """Top-level names of the modules that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_all_locks_agree_on_versions() -> None:
    pins = [dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", path.read_text(), re.MULTILINE)) for path in LOCKS]
    for name in set().union(*pins):
        versions = {pin[name] for pin in pins if name in pin}
        assert len(versions) == 1, f"run `make lock`: {name} is locked as {versions}"
