"""A control plane that does as it is told, and what a worker does with the rows that are due.

In charge of: what tests of delivery begin with. Not in charge of: any outcome.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.utils import timezone

from portal import tasks
from portal.models import AuditEvent, Instance, OutboxRow, Quota, Request
from portal.ports import Applied, ClaimRef, ObservedClaim, PortError
from portal.services import loading, outbox, submitting
from tests.sample import actor, draft

POLICIES = settings.BASE_DIR / "portal" / "policies"
NOTHING: Callable[[], None] = lambda: None  # noqa: E731


@dataclass
class Plane:
    """Keeps claims by namespace and name. `errors` are raised by the next calls; `then` runs inside an apply."""

    name: str = "embedded"
    label: str = "a stand-in of the tests"
    errors: list[PortError] = field(default_factory=list)
    revision_errors: list[PortError] = field(default_factory=list)
    publish_errors: list[PortError] = field(default_factory=list)
    published: list[dict[str, str]] = field(default_factory=list)
    then: Callable[[], None] = NOTHING
    claims: dict[tuple[str, str], tuple[str, dict[str, Any]]] = field(default_factory=dict)
    applied: list[dict[str, Any]] = field(default_factory=list)
    deleted: list[tuple[str, str | None]] = field(default_factory=list)

    def ensure_namespace(self, namespace: str, create: bool, labels: dict[str, str]) -> None:
        return None

    def publish_approval_keys(self, keys: dict[str, str]) -> None:
        if self.publish_errors:
            raise self.publish_errors.pop(0)
        self.published.append(keys)

    def composition_revision(self, composition: str) -> str:
        if self.revision_errors:
            raise self.revision_errors.pop(0)
        return f"{composition}-1"

    def apply(self, claim: dict[str, Any], *, force: bool = False) -> Applied:
        if self.errors:
            raise self.errors.pop(0)
        metadata = claim["metadata"]
        place = metadata["namespace"], metadata["name"]
        uid, _ = self.claims.get(place, (f"uid-{len(self.claims) + 1}", {}))
        self.claims[place] = uid, claim
        self.applied.append(claim)
        self.then()
        return Applied(uid, 1, "1")

    def delete(self, ref: ClaimRef, uid: str | None) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.deleted.append((ref.name, uid))
        self.claims.pop((ref.namespace, ref.name), None)

    def get(self, ref: ClaimRef) -> ObservedClaim | None:
        found = self.claims.get((ref.namespace, ref.name))
        return observed(ref, *found) if found else None


def observed(ref: ClaimRef, uid: str, claim: dict[str, Any], *, ready: bool = True) -> ObservedClaim:
    """That claim, Ready or not, at its newest generation."""
    now = timezone.now()
    states = {"Ready": ready, "Synced": True}
    conditions = [
        {"type": kind, "status": str(state), "reason": "Available", "observedGeneration": 1, "lastTransitionTime": None}
        for kind, state in states.items()
    ]
    return ObservedClaim(
        ref=ref,
        uid=uid,
        generation=1,
        resource_version="1",
        created_at=now,
        deletion_requested_at=None,
        finalizers=(),
        labels=claim["metadata"].get("labels", {}),
        annotations=claim["metadata"].get("annotations", {}),
        spec=claim.get("spec", {}),
        status={"conditions": conditions},
        composed=(),
    )


def submit(username: str, body: dict[str, Any]) -> Request:
    return submitting.submit(draft(body), acting=actor(username)).request


def fresh(request: Request) -> Request:
    return Request.objects.select_related("instance", "team").get(pk=request.pk)


def instance_of(request: Request) -> Instance:
    assert request.instance_id is not None
    return Instance.objects.select_related("document", "environment", "team").get(pk=request.instance_id)


def work(*topics: str) -> list[str]:
    """One sweep over the deliveries of these topics that are due, or postponed: what each came to."""
    rows = OutboxRow.objects.filter(done_at=None)
    rows.exclude(topic="publish").update(due_at=timezone.now() - dt.timedelta(seconds=1))
    rows.filter(topic="publish").delete()
    wanted = topics or ("apply", "delete")
    return [
        tasks.perform(pk, str(lease))
        for pk, lease in outbox.lease_due()
        if OutboxRow.objects.get(pk=pk).topic in wanted
    ]


def verbs(request: Request) -> list[str]:
    return list(AuditEvent.objects.filter(request=request).order_by("id").values_list("verb", flat=True))


def held(team: str, dimension: str = "gpu.l4") -> tuple[int, int]:
    """(reserved, used) of the team's quota."""
    row = Quota.objects.get(team__slug=team, dimension=dimension)
    return row.reserved, row.used


def load_bundle(old: str, new: str) -> None:
    """Activate the default policies with one text in them replaced."""
    text = (POLICIES / "default.yaml").read_text()
    assert old in text
    loading.load_bundle(text.replace(old, new), system="tests")


def load_prices(old: str, new: str) -> None:
    """Activate the sample prices with one text in them replaced."""
    text = (POLICIES / "sample-prices.csv").read_text()
    assert old in text
    loading.load_prices(text.replace(old, new), "USD", system="tests")
