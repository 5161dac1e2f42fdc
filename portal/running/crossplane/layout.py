"""In charge of: what a control plane's folder holds, and what its parts are called.

Not in charge of: making any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MANIFESTS = ROOT / "crossplane"
CORE_NAMESPACE = "crossplane-system"
CONTROL_PLANE = "control-plane"  # the API server that claims are sent to
PORTAL_ACCOUNT = ("portal-system", "portal")  # namespace and name of the portal's ServiceAccount


@dataclass(frozen=True)
class Layout:
    """Paths below `state`, which only its owner may enter: keys and tokens are in it."""

    state: Path

    @property
    def pki(self) -> Path:
        """The authority, its certificates, and the key that signs service accounts' tokens."""
        return self.state / "pki"

    @property
    def function_tls(self) -> Path:
        """What the composition function serves with."""
        return self.state / "function-tls"

    @property
    def core_tls(self) -> Path:
        """What the core calls functions with."""
        return self.state / "core-tls"

    @property
    def etcd(self) -> Path:
        """All objects of all API servers."""
        return self.state / "etcd"

    def tokens(self, server: str) -> Path:
        """Who may come to an API server."""
        return self.state / "run" / f"{server}.tokens.csv"

    def kubeconfig(self, server: str, user: str = "admin") -> Path:
        """For a user of an API server."""
        return self.state / "kubeconfigs" / f"{server}.{user}.yaml"

    @property
    def portal_kubeconfig(self) -> Path:
        """The control plane, with the rights that the portal has and no more."""
        return self.kubeconfig(CONTROL_PLANE, "portal")

    @property
    def faults(self) -> Path:
        """What the actor on the workload clusters should let fail; see actor.py."""
        return self.state / "workload-faults.json"
