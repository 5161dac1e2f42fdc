"""WIRES: the systems around the portal, each behind its port."""

from __future__ import annotations

from django.conf import settings

from portal.ports import ControlPlane


def control_plane(name: str) -> ControlPlane:
    """The control plane that an Environment names. Its kind is the setting CONTROL_PLANE; ValueError for an unknown
    one."""
    if settings.CONTROL_PLANE == "embedded":
        # Imported when it is used: a portal on a real cluster does without the embedded tables' code.
        from portal.adapters.embedded import EmbeddedControlPlane

        return EmbeddedControlPlane(name)
    raise ValueError(f"CONTROL_PLANE={settings.CONTROL_PLANE!r}; allowed: embedded")
