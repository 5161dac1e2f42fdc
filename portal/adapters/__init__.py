"""WIRES: the systems around the portal, each behind its port."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from django.conf import settings

from portal.ports import ControlPlane

EMBEDDED = "embedded"
IN_CLUSTER = "in-cluster"

_planes: dict[tuple[int, str, str], ControlPlane] = {}
_lock = threading.Lock()


def control_plane(name: str) -> ControlPlane:
    """The control plane that an Environment names: `embedded`, or a name in the setting CONTROL_PLANES. The same object
    each time within a process: connections and credentials are shared. ValueError for an unknown name."""
    where = EMBEDDED if name == EMBEDDED else settings.CONTROL_PLANES.get(name)
    if where is None:
        allowed = ", ".join([EMBEDDED, *sorted(settings.CONTROL_PLANES)])
        raise ValueError(
            f"an Environment names the control plane {name!r}, which is not in CONTROL_PLANES; there are: {allowed}"
        )
    key = (os.getpid(), name, where)  # a process that was forked makes connections of its own
    with _lock:
        if key not in _planes:
            _planes[key] = _embedded(name) if where == EMBEDDED else _kubernetes(name, where)
        return _planes[key]


def _embedded(name: str) -> ControlPlane:
    # Imported when it is used: a portal on a real cluster does without the embedded tables' code.
    from portal.adapters.embedded import EmbeddedControlPlane

    return EmbeddedControlPlane(name)


def _kubernetes(name: str, where: str) -> ControlPlane:
    # The same the other way round: the official client takes half a second and 40 MB to load.
    from portal.adapters.kubernetes import KubernetesControlPlane

    if where == IN_CLUSTER:
        return KubernetesControlPlane(name, None, writes=settings.KUBERNETES_WRITES)
    path, _, context = where.partition("#")
    return KubernetesControlPlane(name, Path(path), context or None, settings.KUBERNETES_WRITES)
