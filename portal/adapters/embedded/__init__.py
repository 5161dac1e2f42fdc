"""The embedded control plane: a store and a reconciler like Crossplane's, without a cluster behind them.

EmbeddedControlPlane is what services are handed; the controller (manage.py embedded_control_plane) is what makes
claims real.
"""

from portal.adapters.embedded.plane import EmbeddedControlPlane

__all__ = ["EmbeddedControlPlane"]
