"""The port, as the embedded control plane serves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from portal.adapters.embedded import deliver, events, fleet, observe
from portal.adapters.embedded.keys import publish_approval_keys
from portal.adapters.embedded.names import LABEL
from portal.ports import Applied, ClaimEvent, ClaimRef, DryRun, Explanation, FleetCluster, ObservedClaim


class EmbeddedControlPlane:
    """Both halves of ports.ControlPlane. Call it outside of transactions: what it has accepted can't be rolled back.

    Timeouts are the database's (DATABASE_STATEMENT_TIMEOUT, DATABASE_LOCK_TIMEOUT).
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.label = LABEL

    def ensure_namespace(self, namespace: str, create: bool, labels: dict[str, str]) -> None:
        deliver.ensure_namespace(namespace, create, labels)

    def composition_revision(self, composition: str) -> str:
        return deliver.composition_revision(composition)

    def apply(self, claim: dict[str, Any], *, force: bool = False) -> Applied:
        return deliver.apply_claim(claim, force)

    def dry_run(self, claim: dict[str, Any]) -> DryRun:
        return deliver.dry_run(claim)

    def publish_approval_keys(self, keys: dict[str, str]) -> None:
        publish_approval_keys(keys)

    def delete(self, ref: ClaimRef, uid: str | None) -> None:
        deliver.delete(ref, uid)

    def get(self, ref: ClaimRef) -> ObservedClaim | None:
        return observe.get(ref)

    def watch(self, kinds: list[ClaimRef], cursor: str, timeout: float) -> Iterator[ClaimEvent]:
        return observe.watch(kinds, cursor, timeout)

    def explanations(self, claim: ObservedClaim) -> tuple[Explanation, ...]:
        return events.explanations(claim)

    def fleet(self) -> tuple[FleetCluster, ...]:
        return fleet.read_fleet()

    # Last, because after it `list` no longer means the type in this class.
    def list(self, kinds: list[ClaimRef]) -> tuple[list[ObservedClaim], str]:
        return observe.list_claims(kinds)
