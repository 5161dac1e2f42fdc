"""Claims that were there before the portal, or that it has forgotten: listed, imported, counted, taken over."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from portal import tasks
from portal.adapters.embedded import EmbeddedControlPlane, deliver
from portal.management.commands import adopt as command
from portal.models import AuditEvent, Budget, Environment, Instance, Request, Reservation
from portal.rendering.approval_token import APPROVAL
from portal.rendering.claim import MANAGED_BY
from portal.rendering.names import ANNOTATION_PREFIX
from portal.services import adopting, attesting, explaining, finding, observing
from portal.services.errors import Conflict
from portal.services.finding import Defaults
from tests.sample import MODEL_SPEC, model_body
from tests.services.deliveries import held, submit, work
from tests.services.planes import embedded_plane, model_kind

pytestmark = pytest.mark.django_db(transaction=True)

REVISION = "modeldeployments-kserve-1"


@pytest.fixture
def plane(world: None, monkeypatch: pytest.MonkeyPatch) -> EmbeddedControlPlane:
    made = embedded_plane()
    for module in (tasks, command):
        monkeypatch.setattr(module, "control_plane", lambda name: made)
    return made


def applied_by_hand(name: str, namespace: str = "search-dev", labels: dict[str, str] | None = None, **spec: Any) -> str:
    """A claim that somebody has applied beside the portal, taken up by Crossplane; its uid."""
    deliver.ensure_namespace(namespace, True, {})
    machinery = {"compositionRef": {"name": "modeldeployments-kserve"}, "compositionRevisionRef": {"name": REVISION}}
    manifest = {
        "apiVersion": "aiplatform.example.org/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
        "spec": {**MODEL_SPEC, **spec, "crossplane": machinery},
    }
    return deliver.apply_object(manifest, "kubectl").uid


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("adopt", *arguments, stdout=said, stderr=said)
    return said.getvalue()


def row_of(name: str, *arguments: str) -> str:
    (row,) = (line for line in run(*arguments).splitlines() if f"  {name} " in line)
    return row


def ada() -> User:
    return User.objects.get(username="ada")


# --- listing ----------------------------------------------------------------------------------------------------------


def test_what_is_there_already_is_listed_with_owner_price_and_what_it_takes(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("by-place")
    applied_by_hand(
        "by-label", "elsewhere", {f"{ANNOTATION_PREFIX}team": "ads", f"{ANNOTATION_PREFIX}environment": "dev"}
    )
    applied_by_hand("nobodys", "elsewhere")
    assert "search (by namespace)  dev          584.00 USD  1 gpu.l4" in row_of("by-place")
    assert "ads (by label)" in row_of("by-label")
    assert "nobody's: give --default-team" in row_of("nobodys")
    given = row_of("nobodys", "--default-team", "ads", "--default-environment", "dev")
    assert "ads (by default)" in given and "nobody's" not in given


def test_what_the_portal_knows_is_not_listed(plane: EmbeddedControlPlane) -> None:
    submit("ada", model_body())
    assert work() == ["done"]
    assert run() == "Every claim of a known offering is an instance of the portal's.\n"


PROBLEMS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "x" * 41}, "at most 40 are accepted", "later changes could not be delivered under that name"),
    ({"name": "chat", "labels": {MANAGED_BY: "portal"}}, "can't be read as that", "half a portal's claim"),
]


@pytest.mark.parametrize(("changes", "message", "reason"), PROBLEMS, ids=[case[2] for case in PROBLEMS])
def test_why_something_can_not_be_imported_is_said(
    plane: EmbeddedControlPlane, changes: dict[str, Any], message: str, reason: str
) -> None:
    applied_by_hand(**changes)
    assert message in row_of(changes["name"])
    with pytest.raises(CommandError, match="1 of 1 claims were not imported"):
        run("--all", "--by", "ada")
    assert not Instance.objects.exists(), reason


# --- importing --------------------------------------------------------------------------------------------------------


def test_an_import_counts_prices_and_audits_and_writes_nothing_to_the_control_plane(
    plane: EmbeddedControlPlane,
) -> None:
    uid = applied_by_hand("chat", replicas={"min": 1, "max": 2})
    before = plane.list([model_kind()])
    assert "imported for team search" in run("--import", "search-dev/chat", "--by", "frank")
    assert plane.list([model_kind()]) == before
    instance = Instance.objects.get()
    request = instance.requests.get()
    assert (instance.claim_uid, instance.spec["replicas"]["max"], instance.namespace) == (uid, 2, "search-dev")
    assert (request.kind, request.state, str(request.quote_monthly)) == ("Create", "Done", "1168.00")
    assert (held("search"), held("acme")) == ((0, 2), (0, 2))
    assert str(Budget.objects.get(team__slug="search").committed) == "1168.00"
    told = AuditEvent.objects.get(verb="instance.adopt")
    assert told.actor is not None
    assert (told.actor.username, told.data["ownerBy"]) == ("frank", "namespace")
    assert attesting.attest(request.pk) == []
    assert not [each for one in explaining.explain(request.pk) for each in one.differences]
    assert run().startswith("Every claim"), "it is known from here on"
    with pytest.raises(CommandError, match="is called 'chat'; there are: none"):
        run("--import", "chat", "--by", "frank")


def test_it_is_watched_although_nothing_marks_it(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("chat")
    run("--all", "--by", "frank")
    (claim,), _ = plane.list([model_kind()])
    assert observing.observe(claim)
    instance = Instance.objects.get()
    assert instance.observed_at is not None
    fields = [row["field"] for row in instance.drift]
    assert fields == ["/spec/crossplane/compositionUpdatePolicy"], "Crossplane may still move it by itself"
    assert observing.observe_gone(instance.pk, claim.uid)
    assert held("search") == (0, 0)


def test_what_a_quota_does_not_hold_is_refused_with_the_figures(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("huge", replicas={"min": 1, "max": 9})
    assert "over quota: search would hold 9 of 4 gpu.l4" in row_of("huge")
    said = StringIO()
    with pytest.raises(CommandError, match="1 of 1 claims"):
        call_command("adopt", "--all", "--by", "frank", stdout=said, stderr=said)
    for word in ("search would hold 9 of 4 gpu.l4", "have a quota request approved first"):
        assert word in said.getvalue()
    assert not Instance.objects.exists()
    assert not Request.objects.exists()
    assert held("search") == (0, 0)


def test_who_imports_has_to_be_said(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("chat")
    with pytest.raises(CommandError, match="--by USER"):
        run("--all")
    with pytest.raises(CommandError, match="Nobody active is called 'nobody'"):
        run("--all", "--by", "nobody")


def test_two_of_one_name_are_told_apart(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("chat")
    applied_by_hand("chat", "ads-dev")
    with pytest.raises(CommandError, match=r"names 2 claims .*search-dev/chat"):
        run("--import", "chat", "--by", "frank")


def test_one_that_was_imported_meanwhile_is_not_imported_again(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("chat")
    (found,) = finding.unknown_claims(plane, Defaults())
    adopting.adopt(found, actor=ada())
    with pytest.raises(Conflict, match="is an instance of the portal's by now"):
        adopting.adopt(found, actor=ada())
    assert held("search") == (0, 1)


# --- taking over ------------------------------------------------------------------------------------------------------


def test_taken_over_it_is_the_portals_in_every_respect(plane: EmbeddedControlPlane) -> None:
    uid = applied_by_hand("chat")
    run("--all", "--by", "frank", "--take-over")
    assert work("reapply") == ["done"]
    (claim,), _ = plane.list([model_kind()])
    instance = Instance.objects.get()
    assert claim.uid == uid, "the same object"
    assert claim.labels[f"{ANNOTATION_PREFIX}instance"] == str(instance.pk)
    assert APPROVAL in claim.annotations
    assert {**claim.spec, "crossplane": None} == {**instance.spec, "crossplane": None}
    deletion = submit("ada", {"kind": "Delete", "instance": str(instance.pk)})
    assert work("delete") == ["done"]
    assert Request.objects.get(pk=deletion.pk).state == "Delivering"


def test_another_object_of_that_name_is_left_alone(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("chat")
    run("--all", "--by", "frank")
    instance = Instance.objects.get()
    assert instance.claim is not None
    instance.claim["metadata"]["annotations"][adopting.ADOPTED_UID] = "uid-of-one-that-is-gone"
    with pytest.raises(Exception, match="claim-name-taken"):
        adopting.take_over(instance, plane, actor=ada())


# --- what the portal has made itself ----------------------------------------------------------------------------------


def test_a_claim_of_the_portals_gets_its_ids_back(plane: EmbeddedControlPlane) -> None:
    """Its rows are gone without a trace: another database."""
    asked = submit("ada", model_body(gpus=2))
    assert work() == ["done"]
    (claim,), _ = plane.list([model_kind()])
    was = Instance.objects.get()
    _remove_everything_about(was)
    (found,) = finding.unknown_claims(plane, Defaults())
    assert (found.problems, found.owner_by, bool(found.signed)) == ((), "label", True)
    instance = adopting.adopt(found, actor=User.objects.get(username="frank"))
    request = instance.requests.get()
    assert (instance.pk, request.pk, request.requester.username) == (was.pk, asked.pk, "ada")
    assert (instance.claim, instance.spec, instance.claim_uid) == (was.claim, was.spec, claim.uid)
    assert (request.quote_monthly, request.quote_currency) == (asked.quote_monthly, "USD")
    assert instance.document_id == was.document_id
    assert held("search") == (0, 2)


def _remove_everything_about(instance: Instance) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")  # no triggers, no foreign keys
        for table in ("auditevent", "outboxrow", "reservation", "commitment", "decisionrecord", "request", "instance"):
            cursor.execute(f"DELETE FROM portal_{table}")  # noqa: S608 - names of this list
        cursor.execute("UPDATE portal_quota SET used = 0, reserved = 0")
        cursor.execute("UPDATE portal_budget SET committed = 0")
        cursor.execute("SET session_replication_role = DEFAULT")


def test_environments_of_other_control_planes_are_not_its(plane: EmbeddedControlPlane) -> None:
    Environment.objects.update(control_plane="other")
    applied_by_hand("chat")
    (found,) = finding.unknown_claims(plane, Defaults())
    assert any("give --default-environment" in each for each in found.problems)


def test_a_reservation_is_a_row_like_all_others(plane: EmbeddedControlPlane) -> None:
    applied_by_hand("chat")
    run("--all", "--by", "frank")
    row = Reservation.objects.get()
    assert (row.state, row.amount, row.dimension) == ("used", 1, "gpu.l4")
