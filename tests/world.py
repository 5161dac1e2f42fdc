"""The sample world with a token for everybody in it, and the people whom rules about voting are tested with.

In charge of: what tests of the doors (API, pages) and of the demo begin with. Not in charge of: the sample world itself
(portal/demo/sample.yaml), or what happens in it (each test).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Group, User
from django.utils import timezone

from portal.models import Instance, Membership, OutboxRow, Request, Team
from portal.ports import Applied, ClaimRef, ObservedClaim
from portal.rendering.names import ANNOTATION_PREFIX
from portal.services import delivering, observing, outbox, publishing, submitting
from portal.services.tokens import create_token
from tests import sample

SCOPES = ["read", "request", "approve"]
OWN_APPROVER = "erin"  # of team search and of the platform's approvers
SUPERUSER = "sam"  # superuser, of team search, an approver in two groups, and a platform admin
OUTSIDER = "zoe"  # in no team and no group
FEED = "catalog-service"


@dataclass
class World:
    """Tokens by user name; more are made with `token`."""

    tokens: dict[str, str] = field(default_factory=dict)

    def token(self, username: str, scopes: list[str] | None = None) -> str:
        """A token of that person with these scopes (all but `feed` without any)."""
        user = User.objects.get(username=username)
        return create_token(user, name="test", scopes=SCOPES if scopes is None else scopes, days=1)


def build_world() -> World:
    """Load the sample world into the test database, with a superuser and an outsider beside its people."""
    sample.load_sample()
    sam = User.objects.create_superuser(SUPERUSER, password=None)
    User.objects.create_user(OUTSIDER)
    Membership.objects.create(team=Team.objects.get(slug="search"), user=sam, role=Membership.Role.OWNER)
    for name in ("platform-approvers", "finance-approvers", "platform-admins"):
        Group.objects.get(name=name).user_set.add(sam)  # type: ignore[attr-defined]  # reverse manager of auth's M2M
    world = World()
    for username in User.objects.values_list("username", flat=True):
        world.tokens[username] = world.token(username, ["feed"] if username == FEED else None)
    return world


def submit(username: str, body: dict[str, Any]) -> Request:
    """Submit a body as that person."""
    return submitting.submit(sample.draft(body), acting=sample.actor(username)).request


def ready(username: str, body: dict[str, Any], status: dict[str, Any] | None = None) -> Instance:
    """Submit a creation that is approved at once, and report its claim as Ready, as a control plane would."""
    request = submit(username, body)
    assert request.state == "Approved", request.state
    work()
    instance = Instance.objects.get(pk=request.instance_id)
    observing.observe(observed(instance, status or {}))
    work()
    return Instance.objects.get(pk=instance.pk)


class Accepting:
    """A control plane that takes everything and does nothing."""

    name, label = "embedded", "a stand-in of the tests"

    def ensure_namespace(self, namespace: str, create: bool, labels: dict[str, str]) -> None:
        return None

    def publish_approval_keys(self, keys: dict[str, str]) -> None:
        return None

    def composition_revision(self, composition: str) -> str:
        return f"{composition}-1"

    def apply(self, claim: dict[str, Any], *, force: bool = False) -> Applied:
        return Applied(f"uid-{claim['metadata']['name']}", 1, "1")

    def delete(self, ref: ClaimRef, uid: str | None) -> None:
        return None


def work() -> None:
    """What workers do with all that is due: deliver and publish, until nothing is."""
    while leased := outbox.lease_due():
        for pk, lease in leased:
            with outbox.working(pk, lease) as row:
                assert row is not None
                _perform(row)


def _perform(row: OutboxRow) -> None:
    if row.topic == "publish":
        publishing.publish(row)
    else:
        {"apply": delivering.apply, "delete": delivering.delete}[row.topic](row, lambda name: Accepting())


def observed(instance: Instance, status: dict[str, Any]) -> ObservedClaim:
    """The claim of a delivered instance, healthy at its newest generation, with these members of status."""
    now = timezone.now()
    conditions = [
        {"type": kind, "status": "True", "reason": "Available", "observedGeneration": 1, "lastTransitionTime": _z(now)}
        for kind in ("Ready", "Synced")
    ]
    claim = instance.claim
    return ObservedClaim(
        ref=delivering.claim_ref(instance),
        uid=instance.claim_uid,
        generation=1,
        resource_version="2",
        created_at=now,
        deletion_requested_at=None,
        finalizers=(),
        labels={f"{ANNOTATION_PREFIX}instance": str(instance.pk)},
        annotations=claim["metadata"]["annotations"],
        spec=claim["spec"],
        status={"conditions": conditions, **status},
        composed=(),
    )


def _z(moment: dt.datetime) -> str:
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
