"""Where objects are in the API: paths of kinds and names, and the plural of a kind, which only discovery tells.

Not in charge of: sending anything (client).
"""

from __future__ import annotations

import re
from urllib.parse import quote

from portal.ports import ClaimRef, TerminalError

# RFC 1123 subdomain (Kubernetes, "Object Names and IDs", read 2026-12-01); `..` in a path would be another object.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_MAX_NAME = 253


def of_version(api_version: str) -> str:
    """The path of a group's version: /apis/<group>/<version>, or /api/v1."""
    return f"/{'apis' if '/' in api_version else 'api'}/{quote(api_version)}"


def of_kind(api_version: str, plural: str, namespace: str = "") -> str:
    """The path of all objects of a kind, of one namespace if it is given."""
    middle = f"/namespaces/{checked(namespace, '/metadata/namespace')}" if namespace else ""
    return f"{of_version(api_version)}{middle}/{quote(plural, safe='')}"


def of_object(api_version: str, plural: str, namespace: str, name: str) -> str:
    """The path of one object; an empty namespace is cluster scope."""
    return f"{of_kind(api_version, plural, namespace)}/{checked(name, '/metadata/name')}"


def of_claim(ref: ClaimRef) -> str:
    """The path of a claim."""
    return of_object(ref.api_version, ref.plural, ref.namespace, ref.name)


def checked(name: str, pointer: str) -> str:
    """The name, if it is one. TerminalError `claim-invalid`."""
    if not isinstance(name, str) or len(name) > _MAX_NAME or not _NAME.match(name):
        raise TerminalError(
            "claim-invalid", f"{pointer}: {name!r} is no name: a-z, 0-9, '-' and '.', at most {_MAX_NAME} characters"
        )
    return name


def group_kind(api_version: str, kind: str) -> tuple[str, str]:
    """("example.org", "Widget"): a kind whatever its version."""
    return api_version.rpartition("/")[0], kind
