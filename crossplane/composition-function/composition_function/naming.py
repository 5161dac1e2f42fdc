"""Names of composed resources: deterministic, and never longer than what they end up in allows."""

import hashlib

from composition_function.contract import Manifest

LABEL_MAX = 63  # RFC 1123 labels, and values of Kubernetes labels


def short(name: str, limit: int = LABEL_MAX) -> str:
    """The name itself if it fits; else its start and a hash of all of it, so that long names stay apart and stable."""
    if len(name) <= limit and "." not in name:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{name.replace('.', '-')[: limit - 9].rstrip('-')}-{digest}"


def child(composite: Manifest, suffix: str) -> str:
    """The name of a composed resource in the claim's own namespace.

    No suffix in use is the end of another, so no two claims, whatever their names and kinds, share a child.
    """
    return short(f"{composite['metadata']['name']}-{suffix}")
