"""In charge of: the CRDs of other projects, out of their Go modules; none of them is in the repository.

They are kept in the cache as crds-<module>-<version>. Not in charge of: which (parts.py), applying them (install.py).
"""

from __future__ import annotations

import shutil
import tempfile
from functools import cache as remembered
from pathlib import Path
from typing import Any

import yaml

from portal.running.crossplane.golang import download
from portal.running.crossplane.parts import Definitions
from portal.running.errors import BuildFailed


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
    """The same without conversion webhooks, which nobody answers here; objects are written in the stored version."""
    found = read(definitions, cache)
    return [{**crd, "spec": {k: v for k, v in crd["spec"].items() if k != "conversion"}} for crd in found]


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
