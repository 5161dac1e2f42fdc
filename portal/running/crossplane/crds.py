"""In charge of: the CRDs of other projects, out of their Go modules; none of them is in the repository.

They are kept in the cache as crds-<module>-<version>. Not in charge of: which (parts.py), applying them (install.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import tempfile
from functools import cache as remembered
from pathlib import Path
from typing import Any

import yaml

from portal.running.crossplane.golang import download
from portal.running.crossplane.parts import Definitions
from portal.running.errors import BuildFailed

FORM = 1  # of what `installable` gives; another one when that changes
SOURCE_ANNOTATION = "portal.aiplatform.example.org/source"


@remembered
def read(definitions: Definitions, cache: Path) -> tuple[dict[str, Any], ...]:
    """The CRDs, as the project has them. Raises MissingPart, BuildFailed."""
    documents = (
        document
        for path in sorted(folder(definitions, cache).glob("*.yaml"))
        for document in yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    )
    # Beside the CRDs may lie patches of them, which name no group.
    return tuple(d for d in documents if d.get("kind") == "CustomResourceDefinition" and "group" in d["spec"])


def installable(definitions: Definitions, cache: Path) -> list[dict[str, Any]]:
    """The CRDs of `definitions.kinds`, as small as they can be without allowing anything else.

    Only the stored version is served: for the others a conversion webhook would have to answer. Descriptions are left
    out: KServe's CRD has 2 MB of text, which takes an API server many seconds to take in.
    """
    source = f"{definitions.module.path}@{definitions.module.version}"
    key = hashlib.sha256(f"{FORM} {source} {definitions.folder} {definitions.kinds}".encode()).hexdigest()[:12]
    path = cache / f"small-crds-{key}.json"  # parsing all that YAML again takes seconds
    with contextlib.suppress(FileNotFoundError):
        known: list[dict[str, Any]] = json.loads(path.read_text())
        return known
    found = [crd for crd in read(definitions, cache) if crd["spec"]["names"]["kind"] in definitions.kinds]
    small = [_small(crd, source) for crd in found]
    with tempfile.NamedTemporaryFile("w", dir=cache, suffix=".json", delete=False) as file:
        json.dump(small, file)
    Path(file.name).rename(path)
    return small


def _small(crd: dict[str, Any], source: str) -> dict[str, Any]:
    spec = {key: value for key, value in crd["spec"].items() if key != "conversion"}
    spec["versions"] = [
        {**version, "schema": _without_descriptions(version["schema"])}
        for version in crd["spec"]["versions"]
        if version["storage"]
    ]
    metadata = {"name": crd["metadata"]["name"], "annotations": {SOURCE_ANNOTATION: source}}
    return {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": metadata, "spec": spec}


def _without_descriptions(schema: Any) -> Any:
    """A property may be called `description`: that one is a schema, the text is not."""
    if isinstance(schema, list):
        return [_without_descriptions(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_descriptions(value)
        for key, value in schema.items()
        if key != "description" or not isinstance(value, str)
    }


def folder(definitions: Definitions, cache: Path) -> Path:
    """The folder with the CRDs in the cache, filled if it is not there yet."""
    cache.mkdir(parents=True, exist_ok=True)
    module = definitions.module
    target = cache / f"crds-{module.name}-{module.version}"
    if target.is_dir():
        return target
    source = download(module, cache) / definitions.folder
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        copy = Path(scratch) / "crds"
        shutil.copytree(source, copy, copy_function=shutil.copyfile)
        copy.chmod(0o755)
        try:
            copy.rename(target)
        except OSError as error:  # another process was faster
            if not target.is_dir():
                raise BuildFailed(f"{target} can't be written: {error}") from error
    return target
