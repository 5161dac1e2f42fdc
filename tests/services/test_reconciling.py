"""The database is restored from a backup, the control plane is not: nothing is lost, nothing comes twice.

The portal's tables are really put back to an earlier moment; those of the embedded control plane stay.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from io import StringIO
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection

from portal import tasks
from portal.adapters.embedded import EmbeddedControlPlane, deliver, store
from portal.adapters.embedded.names import GroupKind
from portal.management.commands import reconcile as command
from portal.mirroring import Mirror
from portal.models import AuditEvent, Budget, Instance, OutboxRow, Pause, Quota, Request, SigningKey
from portal.ports import RetryableError
from portal.rendering.approval_token import APPROVAL
from portal.services import approving, attesting, explaining, feed, outbox, pausing, signing
from portal.services.errors import Unavailable
from tests.sample import actor, model_body
from tests.services.deliveries import held, submit, work
from tests.services.planes import NAME, embedded_plane, model_kind

pytestmark = pytest.mark.django_db(transaction=True)


class Backup:
    """A copy of all tables that are not the control plane's own."""

    def __init__(self) -> None:
        models = apps.get_models(include_auto_created=True)
        names = [model._meta.db_table for model in models if model._meta.managed]
        self._tables = sorted(name for name in names if not name.startswith("embedded_"))

    def take(self) -> None:
        self.drop()
        with connection.cursor() as cursor:
            cursor.execute("CREATE SCHEMA backup")
            for table in self._tables:
                cursor.execute(f'CREATE TABLE backup."{table}" AS TABLE public."{table}"')

    def restore(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")  # as pg_restore: no triggers, no foreign keys
            for table in self._tables:
                cursor.execute(f'DELETE FROM public."{table}"')  # noqa: S608 - names of Django's
                cursor.execute(f'INSERT INTO public."{table}" SELECT * FROM backup."{table}"')  # noqa: S608
            cursor.execute("SET session_replication_role = DEFAULT")

    def drop(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA IF EXISTS backup CASCADE")


@pytest.fixture
def backup(world: None) -> Iterator[Backup]:
    made = Backup()
    yield made
    made.drop()


@pytest.fixture
def plane(world: None, monkeypatch: pytest.MonkeyPatch) -> EmbeddedControlPlane:
    made = embedded_plane()
    signing.make_first_key()  # as the mirror does when it first compares
    Quota.objects.filter(dimension="gpu.l4").update(limit=20)
    for module in (tasks, command):
        monkeypatch.setattr(module, "control_plane", lambda name: made)
    return made


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("reconcile", *arguments, stdout=said, stderr=said)
    return said.getvalue()


def fails(*arguments: str) -> str:
    said = StringIO()
    with pytest.raises(CommandError):
        call_command("reconcile", *arguments, stdout=said, stderr=said)
    return said.getvalue()


def mirror_looks(plane: EmbeddedControlPlane) -> None:
    Mirror(plane).cycle(0)


def delivered(name: str, **changes: Any) -> Request:
    request = submit("ada", model_body(name, **changes))
    assert work() == ["done"]
    return request


def changed(request: Request, gpus: int) -> Request:
    spec = {**request.spec, "replicas": {"min": 1, "max": gpus}}
    found = submit("ada", {"kind": "Change", "instance": str(request.instance_id), "spec": spec})
    assert found.state == "Approved", found.state
    assert work() == ["done"]
    return found


def picture() -> dict[str, Any]:
    """What the portal remembers of instances and holdings, but for when it learned of them."""
    fields = ("name", "namespace", "spec", "claim", "claim_uid", "offering", "document_id", "team_id", "environment_id")
    instances = {str(row["pk"]): row for row in Instance.objects.values("pk", *fields)}
    quotas = {(row.team_id, row.dimension): (row.reserved, row.used) for row in Quota.objects.all()}
    budgets = {row.team_id: row.committed for row in Budget.objects.all()}
    requests = set(Request.objects.values_list("pk", flat=True))
    return {"instances": instances, "quotas": quotas, "budgets": budgets, "requests": requests}


# --- the whole way ----------------------------------------------------------------------------------------------------


def test_what_happened_since_the_backup_is_taken_in_once(plane: EmbeddedControlPlane, backup: Backup) -> None:
    old = delivered("old")
    grows = delivered("grows")
    waiting = submit("ada", model_body("waits", environment="prod"))
    approved = submit("ada", model_body("approved"))
    backup.take()
    for username in ("frank", "heidi"):
        approving.vote(waiting.pk, "approve", acting=actor(username))
    assert work() == ["done", "done"]
    new = delivered("new")
    change = changed(grows, 2)
    before = picture()

    backup.restore()
    assert not Instance.objects.filter(pk=new.instance_id).exists()
    with pytest.raises(RetryableError, match="control-plane-paused"):
        mirror_looks(plane)
    told = AuditEvent.objects.get(verb="control-plane.pause")
    assert told.system == "pausing"
    assert "restored from a backup" in Pause.objects.get(control_plane=NAME).reason

    shown = fails()
    assert "ModelDeployment search-dev/new of search" in shown
    assert f"search-dev/grows: its claim is of a delivery of request {change.pk}" in shown
    assert f"search-prod/waits: its claim is of a delivery of request {waiting.pk}" in shown
    assert f"search-dev/approved: its claim is of a delivery of request {approved.pk}" in shown
    assert "search-dev/old" not in shown
    assert "4 of 4 taken in" in run("--adopt", "--by", "frank")
    assert "0 of 0 taken in" in run("--adopt", "--by", "frank"), "nothing twice"
    after = picture()
    assert after["instances"] == before["instances"]
    assert after["requests"] == before["requests"]
    assert after["budgets"] == before["budgets"]
    assert {key: sum(pair) for key, pair in after["quotas"].items()} == {
        key: sum(pair) for key, pair in before["quotas"].items()
    }
    assert run("--resume", "--by", "frank") == "embedded: goes on\n"
    mirror_looks(plane)
    assert not pausing.pauses()
    assert work() == [], "what was delivered is not delivered again"
    for request in Request.objects.filter(pk__in=[new.pk, change.pk, waiting.pk, approved.pk, old.pk]):
        assert attesting.attest(request.pk) == []
        assert not [each for one in explaining.explain(request.pk) for each in one.differences]
    actors = AuditEvent.objects.filter(verb__in=["instance.adopt", "instance.catch-up", "control-plane.resume"])
    assert [event.actor.username for event in actors if event.actor] == ["frank"] * 5


def test_what_would_pause_again_at_once_is_not_resumed(plane: EmbeddedControlPlane, backup: Backup) -> None:
    backup.take()
    delivered("new")
    backup.restore()
    run("--pause", "--by", "frank")
    said = fails("--resume", "--by", "frank")
    assert "search-dev/new" in said and "--adopt" in said
    assert pausing.is_paused(NAME)


def test_a_quota_that_does_not_hold_it_is_named(plane: EmbeddedControlPlane, backup: Backup) -> None:
    backup.take()
    delivered("new", gpus=2)
    backup.restore()
    Quota.objects.filter(team__slug="search", dimension="gpu.l4").update(limit=1)
    said = fails("--adopt", "--by", "frank")
    assert "search would hold 2 of 1 gpu.l4" in said and "quota request" in said
    assert not Instance.objects.exists()
    assert held("search") == (0, 0)


# --- what else a comparison shows -------------------------------------------------------------------------------------


def test_both_sides_are_shown(plane: EmbeddedControlPlane, backup: Backup) -> None:
    going, drifting = delivered("going"), delivered("drifting")
    late = submit("ada", model_body("late"))
    backup.take()
    assert work() == ["done"]
    late_claim = next(each for each in plane.list([model_kind()])[0] if each.ref.name == "late")
    for claim in plane.list([model_kind()])[0]:
        if claim.ref.name in ("going", "late"):
            plane.delete(claim.ref, claim.uid)
            _finalise(claim.uid)
    _edit("drifting", {"regions": ["eu-west"]})
    backup.restore()
    shown = run()
    assert late_claim.ref.name == "late"
    assert f"search-dev/going ({Instance.objects.get(pk=going.instance_id).phase})" in shown
    assert "search-dev/drifting: /regions" in shown
    assert f"{late} of search-dev/late by ada" in shown, "it would be made again: somebody has to know"
    assert drifting.instance_id is not None


def test_a_key_that_is_newer_than_the_backup_proves_nothing_and_is_told(
    plane: EmbeddedControlPlane, backup: Backup
) -> None:
    SigningKey.objects.all().delete()
    backup.take()
    delivered("new")
    backup.restore()
    mirror_looks(plane)
    assert not pausing.pauses()
    assert "ModelDeployment search-dev/new, approval by key" in run()


# --- while it is paused -----------------------------------------------------------------------------------------------


def test_nothing_is_delivered_or_published_while_it_is_paused(plane: EmbeddedControlPlane, backup: Backup) -> None:
    delivered("old")
    run("--pause", "--by", "frank")
    submit("ada", model_body("new"))
    assert outbox.lease_due() == []
    assert OutboxRow.objects.filter(done_at=None, topic="apply", attempts=0).count() == 1
    with pytest.raises(Unavailable, match="is paused"):
        feed.snapshot()
    mirror_looks(plane)
    assert Instance.objects.get(name="old").observed_at is None, "nor is anything recorded of it"
    assert run("--resume", "--by", "frank") == "embedded: goes on\n"
    assert work() == ["done"]
    assert len(plane.list([model_kind()])[0]) == 2


def test_another_control_plane_goes_on(plane: EmbeddedControlPlane) -> None:
    pausing.pause("other", "a test", system="tests")
    submit("ada", model_body("new"))
    assert work() == ["done"]


@pytest.mark.parametrize("verb", ["--pause", "--adopt", "--resume"])
def test_who_does_it_has_to_be_said(plane: EmbeddedControlPlane, verb: str) -> None:
    with pytest.raises(CommandError, match="--by USER"):
        run(verb)
    with pytest.raises(CommandError, match="Nobody active"):
        run(verb, "--by", "nobody")


# --- what is no evidence ----------------------------------------------------------------------------------------------


def copied(plane: EmbeddedControlPlane, name: str, token: str | None = None) -> None:
    """A claim that somebody has made of the only one that there is."""
    (claim,), _ = plane.list([model_kind()])
    annotations = {**claim.annotations, **({APPROVAL: token} if token else {})}
    deliver.apply_object(
        {
            "apiVersion": claim.ref.api_version,
            "kind": claim.ref.kind,
            "metadata": {"name": name, "namespace": claim.ref.namespace, "annotations": annotations},
            "spec": claim.spec,
        },
        "kubectl",
    )


def test_an_approval_that_was_copied_to_another_claim_pauses_nothing(plane: EmbeddedControlPlane) -> None:
    """Else anybody who may write claims could stop all deliveries: also with one that the database does not know."""
    delivered("chat")
    (claim,), _ = plane.list([model_kind()])
    told = jwt.decode(claim.annotations[APPROVAL], options={"verify_signature": False})
    key = SigningKey.objects.get()
    unknown = signing.signed({**told, "request": str(uuid.uuid4())}, key.kid, signing._opened(key))
    copied(plane, "copy", unknown)
    mirror_looks(plane)
    assert not pausing.pauses()


@pytest.mark.parametrize("kid_is_known", [True, False])
def test_an_approval_that_was_made_up_pauses_nothing(plane: EmbeddedControlPlane, kid_is_known: bool) -> None:
    delivered("chat")
    (claim,), _ = plane.list([model_kind()])
    told = jwt.decode(claim.annotations[APPROVAL], options={"verify_signature": False})
    told |= {"request": str(uuid.uuid4()), "claim": {**told["claim"], "name": "made-up"}}
    kid = SigningKey.objects.get().kid if kid_is_known else "another"
    copied(plane, "made-up", signing.signed(told, kid, Ed25519PrivateKey.generate()))
    mirror_looks(plane)
    assert not pausing.pauses()


def test_one_that_was_signed_here_for_what_nobody_knows_does(plane: EmbeddedControlPlane) -> None:
    """The two above would be worth nothing if nothing ever paused."""
    delivered("chat")
    (claim,), _ = plane.list([model_kind()])
    told = jwt.decode(claim.annotations[APPROVAL], options={"verify_signature": False})
    told |= {"request": str(uuid.uuid4()), "claim": {**told["claim"], "name": "forgotten"}}
    key = SigningKey.objects.get()
    copied(plane, "forgotten", signing.signed(told, key.kid, signing._opened(key)))
    with pytest.raises(RetryableError, match="control-plane-paused"):
        mirror_looks(plane)


def _edit(name: str, spec: dict[str, Any]) -> None:
    with store.writing() as writer:
        row = store.find(GroupKind("aiplatform.example.org", "ModelDeployment"), "search-dev", name)
        assert row is not None
        writer.change(row, body={**row.body, "spec": {**row.body["spec"], **spec}})


def _finalise(uid: str) -> None:
    """The reconciler has done its part of a deletion."""
    with store.writing() as writer:
        row = store.objects().get(uid=uid)
        writer.drop_finalizers(row, list(row.finalizers))
