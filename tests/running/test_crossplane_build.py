"""Programs of other projects are built once, from what was written down, by one builder at a time. A stand-in for the
go command plays along; what it builds is one line of text."""

from __future__ import annotations

import json
import stat
import threading
from pathlib import Path

import pytest

from portal.running import locks
from portal.running.crossplane import build, crds, parts
from portal.running.crossplane.golang import GoModule
from portal.running.crossplane.parts import Definitions, Part
from portal.running.errors import BuildFailed, MissingPart

MODULE = GoModule("example.org/thing", "v1.2.3", "h1:right=")
PART = Part("thing", MODULE, "./cmd/thing")
GO = """#!/usr/bin/env python3
import json, pathlib, sys, time
here = pathlib.Path(__file__).parent
answers = json.loads((here / "answers.json").read_text())
if sys.argv[1] == "version":
    print(answers["version"])
elif sys.argv[1] == "mod":
    print(json.dumps({"Dir": str(here / "module"), "Sum": answers["sum"]}))
else:
    with open(here / "builds", "a") as log:
        print(sys.argv, file=log)
    print("go: downloading example.org/other v1.0.0\\nexample.org/other", flush=True)
    time.sleep(0.2)
    if answers["fails"]:
        sys.exit("cmd/thing/main.go:1: no such thing")
    source = pathlib.Path("cmd/thing/main.go").read_text()
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text(source)
"""


class Toolchain:
    """The stand-in: what it answers, and how often it has built."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "module" / "cmd" / "thing").mkdir(parents=True)
        (folder / "module" / "cmd" / "thing" / "main.go").write_text("package main")
        (folder / "module" / "docs").mkdir()
        (folder / "go").write_text(GO)
        (folder / "go").chmod(0o755)
        self.answer()

    def answer(
        self, version: str = "go version go1.26.8 linux/amd64", total: str = "h1:right=", fails: bool = False
    ) -> None:
        answers = {"version": version, "sum": total, "fails": fails}
        (self._folder / "answers.json").write_text(json.dumps(answers))

    @property
    def builds(self) -> int:
        path = self._folder / "builds"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toolchain:
    folder = tmp_path / "toolchain"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return Toolchain(folder)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_a_program_is_built_once(go: Toolchain, cache: Path) -> None:
    said: list[str] = []
    for _ in range(2):
        (path,) = build.built(cache, said.append, [PART]).values()
    assert path.read_text() == "package main"
    assert go.builds == 1
    assert path.name.startswith("thing-v1.2.3-linux-"), "one cache may serve several versions and machines"
    assert [item.name for item in cache.iterdir() if "source" in item.name] == [], "the copy of the source is gone"
    assert any("thing is built" in line for line in said)


def test_a_built_program_needs_no_go(go: Toolchain, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.built(cache, print, [PART])
    monkeypatch.setenv("PATH", "/nowhere")
    assert build.built(cache, print, [PART])


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("go version go1.19.8 linux/amd64", "Debian 12's"),
        ("go version go1.25.9 linux/amd64", "one before"),
        ("go version devel", "no number"),
    ],
)
def test_an_old_go_is_a_clear_error(go: Toolchain, cache: Path, version: str, reason: str) -> None:
    go.answer(version=version)
    with pytest.raises(MissingPart, match=r"Go 1\.26 or newer is needed") as caught:
        build.built(cache, print, [PART])
    assert version in str(caught.value), reason
    assert go.builds == 0


def test_no_go_is_a_clear_error(cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingPart, match="there is no `go` on the PATH"):
        build.built(cache, print, [PART])


def test_a_module_that_has_changed_is_refused(go: Toolchain, cache: Path) -> None:
    go.answer(total="h1:other=")
    with pytest.raises(BuildFailed, match="is not what it was: its checksum is h1:other=, expected h1:right="):
        build.built(cache, print, [PART])
    assert go.builds == 0
    with pytest.raises(BuildFailed, match="is not what it was"):
        crds.read(Definitions(MODULE, "crds"), cache)


def test_a_failed_build_says_why_and_leaves_nothing_that_counts_as_built(go: Toolchain, cache: Path) -> None:
    go.answer(fails=True)
    with pytest.raises(BuildFailed, match=r"main\.go:1: no such thing"):
        build.built(cache, print, [PART])
    go.answer()
    (path,) = build.built(cache, print, [PART]).values()
    assert path.read_text() == "package main"
    assert go.builds == 2


def test_what_an_interrupted_builder_left_is_not_built_from(go: Toolchain, cache: Path) -> None:
    old = cache / "source-thing-v1.2.3" / "cmd" / "thing"
    old.mkdir(parents=True)
    (old / "main.go").write_text("half a file")
    (path,) = build.built(cache, print, [PART]).values()
    assert path.read_text() == "package main"


def test_the_source_is_changed_in_a_copy(go: Toolchain, cache: Path, tmp_path: Path) -> None:
    def prepare(source: Path) -> None:
        assert not (source / "docs").exists(), "what no program needs is not copied"
        (source / "cmd" / "thing" / "main.go").write_text("package changed")

    (path,) = build.built(cache, print, [Part("thing", MODULE, "./cmd/thing", prepare, edition="+local1")]).values()
    assert path.read_text() == "package changed"
    assert "+local1" in path.name, "it never takes the place of the one that is not changed"
    assert (tmp_path / "toolchain" / "module" / "cmd" / "thing" / "main.go").read_text() == "package main"


def test_two_builders_at_once_build_it_once(go: Toolchain, cache: Path) -> None:
    threads = [threading.Thread(target=build.built, args=[cache, print, [PART]]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert go.builds == 1


def test_who_waits_for_another_builder_says_so(go: Toolchain, cache: Path) -> None:
    cache.mkdir()
    waiting = threading.Event()

    def say(line: str) -> None:
        if "another process builds from example.org/thing; waiting" in line:
            waiting.set()

    with locks.exclusive(cache / "example.org+thing.lock"):
        thread = threading.Thread(target=build.built, args=[cache, say, [PART]])
        thread.start()
        assert waiting.wait(30)
        assert go.builds == 0
    thread.join()
    assert go.builds == 1


def test_kubernetes_takes_its_libraries_as_published(tmp_path: Path) -> None:
    names = [f"lib-{chr(97 + number)}" for number in range(25)]
    lines = ["require (", *(f"\tk8s.io/{name} v0.0.0" for name in names)]
    lines += ["\tk8s.io/utils v0.0.0-20251002143259-bc988d571ff4", ")", "replace ("]
    lines += [*(f"\tk8s.io/{name} => ./staging/src/k8s.io/{name}" for name in names), ")"]
    (tmp_path / "go.mod").write_text("\n".join(lines) + "\n")
    (tmp_path / "go.sum").write_text("")
    parts.published_staging(tmp_path)
    text = (tmp_path / "go.mod").read_text()
    assert "\tk8s.io/lib-a => k8s.io/lib-a v0.35.4" in text
    assert "\tk8s.io/lib-a v0.35.4\n" in text
    assert "k8s.io/utils v0.0.0-20251002143259-bc988d571ff4" in text, "that one is a version of its own"
    assert "./staging" not in text
    assert "k8s.io/api v0.35.4 h1:" in (tmp_path / "go.sum").read_text()


def test_another_go_mod_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module k8s.io/kubernetes\n")
    with pytest.raises(BuildFailed, match="in another way now"):
        parts.published_staging(tmp_path)


def test_the_providers_webhook_gets_a_port(tmp_path: Path) -> None:
    main = tmp_path / "cmd" / "provider" / "main.go"
    main.parent.mkdir(parents=True)
    main.write_text("webhook.Options{\n\tCertDir: certDir,\n}")
    parts.movable_webhook(tmp_path)
    assert 'CertDir: certDir, Host: "127.0.0.1", Port: localWebhookPort(),' in main.read_text()
    assert "func localWebhookPort() int" in (main.parent / "local_port.go").read_text()
    with pytest.raises(BuildFailed, match=r"its main\.go is another one now"):
        main.write_text("webhook.Options{}")
        parts.movable_webhook(tmp_path)


def test_the_sums_are_of_the_version_that_is_built() -> None:
    versions = {line.split()[1].removesuffix("/go.mod") for line in parts.STAGING_SUMS.read_text().splitlines()}
    assert versions == {parts.KUBERNETES.version.replace("v1.", "v0.")}
    assert not parts.STAGING_SUMS.stat().st_mode & stat.S_IXUSR


SHIPPED = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.org, annotations: {tool: x}}
spec:
  group: example.org
  names: {kind: Thing, plural: things}
  scope: Namespaced
  conversion: {strategy: Webhook}
  versions:
    - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          description: Much text.
          properties:
            description: {type: string, description: A property of that name.}
            size: {type: integer, enum: [1, 2]}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.example.org}
spec: {group: example.org, names: {kind: Other, plural: others}, scope: Cluster, versions: []}
---
kind: CustomResourceDefinition
metadata: {name: a-patch}
spec: {preserveUnknownFields: false}
"""


def test_crds_are_installed_without_what_nobody_needs(cache: Path) -> None:
    folder = cache / "crds-example.org+thing-v1.2.3"
    folder.mkdir(parents=True)
    (folder / "all.yaml").write_text(SHIPPED)
    wanted = Definitions(MODULE, "crds", ("Thing",))
    assert [crd["metadata"]["name"] for crd in crds.read(wanted, cache)] == ["things.example.org", "others.example.org"]
    (crd,) = crds.installable(wanted, cache)
    assert crd["metadata"]["annotations"] == {crds.SOURCE_ANNOTATION: "example.org/thing@v1.2.3"}
    assert "conversion" not in crd["spec"]
    (version,) = crd["spec"]["versions"]
    assert version["name"] == "v1", "others would have to be converted"
    assert version["schema"]["openAPIV3Schema"] == {
        "type": "object",
        "properties": {"description": {"type": "string"}, "size": {"type": "integer", "enum": [1, 2]}},
    }
    assert crds.read(wanted, cache)[0]["spec"]["conversion"], "what was read stays as it was"
