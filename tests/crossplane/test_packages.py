"""What is needed to install this project's packages: metadata as Crossplane reads it, contents that it takes, an image
whose parts are there."""

import re
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml
from django.conf import settings

from portal.running.crossplane.golang import download
from portal.running.crossplane.parts import CROSSPLANE
from tests.crossplane.samples import CROSSPLANE as FOLDER
from tests.crossplane.samples import Manifest, load
from tests.crossplane.structural import errors, strict

FUNCTION = FOLDER / "composition-function"
PACKAGES = [FOLDER / "crossplane.yaml", FUNCTION / "crossplane.yaml"]
DOCKERFILE = (FUNCTION / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.go
@pytest.mark.parametrize("path", PACKAGES, ids=["configuration", "function"])
def test_metadata_is_as_crossplane_wants_it(path: Path) -> None:
    package = load(path)
    crds = download(CROSSPLANE, settings.CACHE_DIR) / "cluster" / "meta"
    (crd,) = [
        found
        for found in (yaml.safe_load(file.read_text()) for file in crds.glob("*.yaml"))
        if found["spec"]["names"]["kind"] == package["kind"]
    ]
    group, version = package["apiVersion"].split("/")
    assert crd["spec"]["group"] == group
    (schema,) = [v["schema"]["openAPIV3Schema"] for v in crd["spec"]["versions"] if v["name"] == version]
    assert errors(strict(schema), package) == []


def packed() -> dict[str, Manifest]:
    """The files that the command at the top of the configuration's metadata packs, by path; and their documents."""
    (ignored,) = re.findall(r"--ignore='([^']+)'", PACKAGES[0].read_text(encoding="utf-8"))
    found = {}
    for path in sorted(FOLDER.rglob("*.y*ml")):
        relative = path.relative_to(FOLDER)
        if not any(goes(relative, pattern) for pattern in ignored.split(",")):
            found[str(relative)] = load(path)
    return found


def goes(path: Path, pattern: str) -> bool:
    """As Go's filepath.Match, which --ignore goes by: a star stays within its folder."""
    steps = pattern.split("/")
    return len(steps) == len(path.parts) and all(map(fnmatchcase, path.parts, steps))


def test_the_configuration_holds_what_crossplane_takes_and_all_of_that() -> None:
    """Anything else in it, and Crossplane refuses the package."""
    kinds = {path: document["kind"] for path, document in packed().items()}
    assert kinds.pop("crossplane.yaml") == "Configuration"
    assert set(kinds.values()) == {"CompositeResourceDefinition", "Composition"}
    assert set(kinds) == {str(p.relative_to(FOLDER)) for p in FOLDER.glob("apis/*/*.yaml") if p.name != "offering.yaml"}


def test_compositions_call_the_function_by_the_name_that_it_is_installed_by() -> None:
    called = {
        step["functionRef"]["name"]
        for document in packed().values()
        if document["kind"] == "Composition"
        for step in document["spec"]["pipeline"]
    }
    assert called == {load(PACKAGES[1])["metadata"]["name"]}


def test_the_configuration_depends_on_what_it_composes_with() -> None:
    needs = {Path(each["package"]).name: each["kind"] for each in load(PACKAGES[0])["spec"]["dependsOn"]}
    assert needs == {"provider-kubernetes": "Provider", "composition-function": "Function"}
    (version,) = [d["version"] for d in load(PACKAGES[0])["spec"]["dependsOn"] if d["kind"] == "Function"]
    project = tomllib.loads((FUNCTION / "pyproject.toml").read_text())["project"]
    assert version == f">=v{project['version']}"
    assert "composition" in load(PACKAGES[1])["spec"]["capabilities"], "the core demands it of a Composition's function"


def test_what_the_image_is_made_of_is_there_and_let_through() -> None:
    copied = re.findall(r"^COPY (?!--from)(\S+) ", DOCKERFILE, re.MULTILINE)
    assert copied == ["requirements.txt", "composition_function"]
    let_through = (FUNCTION / ".dockerignore").read_text().splitlines()
    for name in copied:
        assert (FUNCTION / name).exists()
        assert f"!{name}" in let_through, "Docker would not see it"


def test_the_image_is_held_to_versions_and_hashes_and_runs_as_nobody() -> None:
    assert re.search(r"^ARG BASE=python:3\.11\.\d+-slim-\w+$", DOCKERFILE, re.MULTILINE), "a version, not a moving tag"
    assert "--require-hashes --only-binary=:all:" in DOCKERFILE
    assert re.findall(r"^USER (\S+)$", DOCKERFILE, re.MULTILINE) == ["65532:65532"]
    assert DOCKERFILE.rindex("USER") > DOCKERFILE.rindex("FROM"), "of what runs, not of the build"


def test_the_lock_of_the_image_holds_what_the_function_asks_for() -> None:
    project = tomllib.loads((FUNCTION / "pyproject.toml").read_text())["project"]
    asked = {re.match(r"[\w.-]+", line)[0].lower() for line in project["dependencies"]}  # type: ignore[index]
    lock = (FUNCTION / "requirements.txt").read_text()
    pinned = re.findall(r"^([a-z0-9][a-z0-9._-]*)==\S+.*\\\n    --hash=sha256:", lock, re.MULTILINE)
    assert asked <= set(pinned)
    assert len(pinned) == len(re.findall(r"^[a-z0-9][^ ]*==", lock, re.MULTILINE)), "every one with a hash"


def test_the_functions_imports_are_asked_for() -> None:
    """Nothing of the portal is in its image."""
    imported = {
        match
        for file in (FUNCTION / "composition_function").glob("*.py")
        for match in re.findall(r"^(?:from|import) ([a-z_0-9]+)", file.read_text(), re.MULTILINE)
    }
    assert imported - set(sys.stdlib_module_names) == {
        "click",
        "composition_function",
        "crossplane",
        "cryptography",  # pyjwt's extra
        "google",
        "grpc",
        "jwt",
    }
