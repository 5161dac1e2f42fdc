"""The Backstage backend's pieces without a backend: packages, Node.js, people, addresses."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
import yaml

from portal.running.backstage import install, node, people, plan
from portal.running.errors import BuildFailed, MissingPart
from portal.running.plan import ROOT

SAMPLE = ROOT / "portal" / "demo" / "sample.yaml"
REF = re.compile(r"^[A-Za-z0-9]+([-_.][A-Za-z0-9]+)*$")  # what Backstage takes as a name


def program(folder: Path, name: str, says: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("there", "said"),
    [
        pytest.param({}, "no `npm` on the PATH", id="nothing"),
        pytest.param({"npm": "exit 0"}, "no `node` on the PATH", id="npm without the node it runs on"),
    ],
)
def test_what_is_missing_for_an_installation_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: dict[str, str], said: str
) -> None:
    for name, text in there.items():
        program(tmp_path, name, text)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPart, match=said):
        install.installed(tmp_path / "cache", print)


@pytest.mark.parametrize(
    ("version", "said"),
    [
        pytest.param("v22.1.0", None, id="new enough"),
        pytest.param("v30.0.0", None, id="newer"),
        pytest.param("v20.20.2", "is version 20", id="too old"),
        pytest.param("something else", "is version unknown", id="no Node.js"),
        pytest.param(None, "there is no `node`", id="missing"),
    ],
)
def test_elsewhere_a_node_of_ones_own_has_to_be_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, said: str | None
) -> None:
    if version is not None:
        program(tmp_path, "node", f"echo {version}")
    monkeypatch.setenv("PATH", str(tmp_path))
    if said is None:
        assert node.node_in(tmp_path / "none") == tmp_path / "node"
        return
    with pytest.raises(MissingPart, match=said):
        node.node_in(tmp_path / "none")


def test_an_installation_that_fails_says_why_and_is_tried_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "node", "echo v22.1.0")
    program(tmp_path, "npm", "echo the disk is full; exit 3")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(BuildFailed, match="the disk is full"):
        install.installed(tmp_path / "cache", print)
    program(tmp_path, "npm", "mkdir node_modules")
    folder = install.installed(tmp_path / "cache", print)
    assert (folder / "node_modules").is_dir()
    program(tmp_path, "npm", "exit 3")
    assert install.installed(tmp_path / "cache", print) == folder, "once is enough"


def test_packages_are_pinned_and_no_registry_is_named() -> None:
    wanted = json.loads((install.HOST / "package.json").read_text())
    pinned = re.compile(r"\d+\.\d+\.\d+")
    assert all(pinned.fullmatch(version) for version in wanted["dependencies"].values())
    locked = json.loads((install.HOST / "package-lock.json").read_text())
    assert locked["packages"][""]["dependencies"] == wanted["dependencies"]
    others = {name: package for name, package in locked["packages"].items() if name}
    assert not [name for name, package in others.items() if "resolved" in package]
    assert not [name for name, package in others.items() if "integrity" not in package]


def test_the_samples_people_and_teams_are_entities_of_backstage() -> None:
    found = {(entity["kind"], entity["metadata"]["name"]): entity for entity in people.entities(SAMPLE)}
    names = {name for kind, name in found if kind == "User"}
    assert names == {"ada", "ben", "carol", "dave", "erin", "frank", "heidi", "grace", "ivan", "olivia"}
    assert ("User", "catalog-service") not in found, "a service is no person"
    assert found["User", "erin"]["spec"]["memberOf"] == ["search", "platform-approvers"]
    assert found["User", "ada"]["spec"] == {
        "profile": {"displayName": "Ada", "email": "ada@example.org"},
        "memberOf": ["search"],
    }
    assert found["Group", "acme"]["spec"]["children"] == ["search", "ads", "research"]
    assert found["Group", "search"]["spec"]["parent"] == "acme"
    assert "parent" not in found["Group", "acme"]["spec"]
    assert found["Group", "finance-approvers"]["spec"]["type"] == "approvers"
    assert all(REF.match(name) for _, name in found)


def test_its_address_is_kept_and_its_token_is_private(tmp_path: Path) -> None:
    first = plan.address(tmp_path / "backstage")
    assert plan.address(tmp_path / "backstage") == first
    assert plan.address(tmp_path / "another").token != first.token
    token = tmp_path / "backstage" / "run" / "portal-token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert len(token.read_text()) >= 40
    assert first.settings == {"BACKSTAGE_URL": f"http://127.0.0.1:{first.port}", "BACKSTAGE_TOKEN": first.token}


def test_everything_that_the_configuration_names_is_given(tmp_path: Path) -> None:
    options = plan.Options(
        state=tmp_path,
        cache=tmp_path,
        portal_url="http://127.0.0.1:8000",
        portal_token="feed",
        database_url="postgresql://me:secret@db.example.org:5433/portal",
        sample=SAMPLE,
    )
    given = plan.environment_of(options, plan.Address(7007, "t" * 43))
    named = set(re.findall(r"\$\{(\w+)\}", (install.HOST / "app-config.yaml").read_text()))
    assert named <= set(given)
    assert (given["BACKSTAGE_DATABASE_HOST"], given["BACKSTAGE_DATABASE_PORT"]) == ("db.example.org", "5433")
    assert (given["BACKSTAGE_DATABASE_USER"], given["BACKSTAGE_DATABASE_PASSWORD"]) == ("me", "secret")
    location = yaml.safe_load(Path(given["BACKSTAGE_TEMPLATES_FILE"]).read_text())
    assert location["spec"]["targets"] == [str(path) for path in plan.template_files()]
