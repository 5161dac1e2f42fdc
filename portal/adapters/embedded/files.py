"""Which manifests lie in files and folders, in the order in which they can be applied.

Skipped: governance files (offering.yaml), which are the portal's, and folders named examples, which hold claims.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from portal.adapters.embedded.names import COMPOSITION, NAMESPACE, XRD, GroupKind, split_api_version
from portal.domain import strict_yaml

_PORTAL_GROUP = "portal.aiplatform.example.org"
_FIRST = (NAMESPACE, XRD, COMPOSITION)  # what others depend on


def manifests(paths: Iterable[Path]) -> list[tuple[Path, dict[str, Any]]]:
    """(file, manifest) of every YAML file at or below `paths`: definitions first, then the rest by path.

    Raises OSError for a path that is not there, StrictYamlError or ValueError (with the file's name) for a bad file.
    """
    found: list[tuple[Path, dict[str, Any]]] = []
    for path in paths:
        for file in _files(path):
            manifest = strict_yaml.parse(file.read_bytes(), str(file))
            if not isinstance(manifest, dict) or not isinstance(manifest.get("apiVersion"), str):
                raise ValueError(f"{file}: no Kubernetes manifest (an object with apiVersion, kind and metadata)")
            if _kind(manifest).group != _PORTAL_GROUP:
                found.append((file, manifest))
    return sorted(found, key=lambda pair: _rank(_kind(pair[1])))


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there")
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*.yaml") if "examples" not in file.relative_to(path).parts)


def _kind(manifest: dict[str, Any]) -> GroupKind:
    return GroupKind(split_api_version(manifest["apiVersion"])[0], str(manifest.get("kind")))


def _rank(kind: GroupKind) -> int:
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)
