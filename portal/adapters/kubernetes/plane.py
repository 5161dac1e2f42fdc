"""The port, as a Kubernetes API server serves it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from portal.adapters.kubernetes import explaining, fleet
from portal.adapters.kubernetes import keys as approval_keys
from portal.adapters.kubernetes.client import WRITES, Client
from portal.adapters.kubernetes.deliver import Deliverer
from portal.adapters.kubernetes.objects import Objects
from portal.adapters.kubernetes.observe import Observer, Seen
from portal.adapters.kubernetes.watching import Watching
from portal.ports import Applied, ClaimEvent, ClaimRef, DryRun, Explanation, FleetCluster, ObservedClaim


class KubernetesControlPlane:
    """Both halves of ports.ControlPlane. May be used by several threads; `watch` by one at a time.

    `kubeconfig` None: the service account of the pod that this runs in. Nothing is read or connected before the first
    call. `writes` is how many may be under way at once, in this process.
    """

    def __init__(self, name: str, kubeconfig: Path | None, context: str | None = None, writes: int = WRITES) -> None:
        self.name = name
        self.label = f"{name}: Kubernetes with Crossplane"
        self._client = Client(name, kubeconfig, context, writes)
        self._seen = Seen()
        objects = Objects(self._client)
        self._deliverer = Deliverer(self._client, self._seen)
        self._observer = Observer(self._client, objects, self._seen)
        self._watching = Watching(self._client, self._observer, objects, self._seen)

    def ensure_namespace(self, namespace: str, create: bool, labels: dict[str, str]) -> None:
        self._deliverer.ensure_namespace(namespace, create, labels)

    def composition_revision(self, composition: str) -> str:
        return self._deliverer.composition_revision(composition)

    def apply(self, claim: dict[str, Any], *, force: bool = False) -> Applied:
        return self._deliverer.apply(claim, force)

    def dry_run(self, claim: dict[str, Any]) -> DryRun:
        return self._deliverer.dry_run(claim)

    def publish_approval_keys(self, keys: dict[str, str]) -> None:
        approval_keys.publish_approval_keys(self._client, keys)

    def delete(self, ref: ClaimRef, uid: str | None) -> None:
        self._deliverer.delete(ref, uid)

    def get(self, ref: ClaimRef) -> ObservedClaim | None:
        return self._observer.get(ref)

    def watch(self, kinds: list[ClaimRef], cursor: str, timeout: float) -> Iterator[ClaimEvent]:
        return self._watching.watch(kinds, cursor, timeout)

    def explanations(self, claim: ObservedClaim) -> tuple[Explanation, ...]:
        return explaining.explanations(self._client, claim)

    def fleet(self) -> tuple[FleetCluster, ...]:
        return fleet.read_fleet(self._client)

    # Last, because after it `list` no longer means the type in this class.
    def list(self, kinds: list[ClaimRef]) -> tuple[list[ObservedClaim], str]:
        return self._observer.list_claims(kinds)
