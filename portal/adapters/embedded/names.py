"""The fixed words of the embedded control plane: labels, annotations, finalizers, kinds. As Crossplane v2 writes
them."""

from __future__ import annotations

from typing import NamedTuple

from portal.rendering.names import ANNOTATION_PREFIX

COMPOSITE_LABEL = "crossplane.io/composite"
RESOURCE_NAME_ANNOTATION = "crossplane.io/composition-resource-name"
PAUSED_ANNOTATION = "crossplane.io/paused"
COMPOSITE_FINALIZER = "composite.apiextensions.crossplane.io"
MANAGED_FINALIZER = "finalizer.managedresource.crossplane.io"
FOREGROUND_FINALIZER = "foregroundDeletion"
SIMULATED_ANNOTATION = ANNOTATION_PREFIX + "simulated"
INSTANCE_LABEL = ANNOTATION_PREFIX + "instance"

CORE_MANAGER = "crossplane"
PORTAL_MANAGER = "portal"

CHANNEL = "embedded_control_plane"  # PostgreSQL NOTIFY channel: something was written
LABEL = "embedded: simulated workloads, no cluster behind it"


class GroupKind(NamedTuple):
    """A kind without its version: objects are stored once for all versions."""

    group: str
    kind: str


NAMESPACE = GroupKind("", "Namespace")
XRD = GroupKind("apiextensions.crossplane.io", "CompositeResourceDefinition")
COMPOSITION = GroupKind("apiextensions.crossplane.io", "Composition")


def split_api_version(api_version: str) -> tuple[str, str]:
    """("aiplatform.example.org", "v1alpha1") of aiplatform.example.org/v1alpha1; the core group is empty."""
    group, _, version = api_version.rpartition("/")
    return group, version


def join_api_version(group: str, version: str) -> str:
    """The inverse of `split_api_version`."""
    return f"{group}/{version}" if group else version
