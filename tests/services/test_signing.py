"""Approvals are signed once per approved change, with a key that every control plane has before it signs."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import jwt
import pytest
from django.core.management import CommandError, call_command
from django.db import connections

from portal import tasks
from portal.adapters.embedded.names import GroupKind
from portal.adapters.embedded.store import find
from portal.management.commands import signing_key
from portal.models import AuditEvent, Environment, Instance, OutboxRow, SigningKey
from portal.ports import RetryableError, TerminalError
from portal.rendering.approval_token import APPROVAL, CEILINGS
from portal.services import reapplying, signing
from portal.services.errors import Conflict, NotFound
from tests.sample import model_body
from tests.services.deliveries import Plane, fresh, instance_of, submit, verbs, work
from tests.services.planes import embedded_plane

pytestmark = pytest.mark.django_db

DOWN = RetryableError("control-plane-down", "nobody answers at 10.0.0.1")
FORBIDDEN = TerminalError(
    "forbidden", "the portal may not patch configmaps/portal-approval-keys; apply crossplane/rbac"
)


@pytest.fixture
def plane(sample: None, monkeypatch: pytest.MonkeyPatch) -> Plane:
    made = Plane()
    monkeypatch.setattr(tasks, "control_plane", lambda name: made)
    monkeypatch.setattr(signing_key, "control_plane", lambda name: made)
    return made


def delivered(plane: Plane, name: str = "chat", **changes: Any) -> Instance:
    request = submit("ada", model_body(name, **changes))
    assert work() == ["done"]
    return instance_of(request)


def token_of(claim: dict[str, Any] | None) -> str:
    assert claim is not None
    return str(claim["metadata"]["annotations"][APPROVAL])


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("signing_key", *arguments, stdout=said, stderr=said)
    return said.getvalue()


def passed(seconds: float) -> None:
    """As if that much time had passed since every key was made and published."""
    for key in SigningKey.objects.exclude(active_from=None):
        assert key.active_from is not None
        key.active_from -= dt.timedelta(seconds=seconds)
        key.save()


# --- signing ----------------------------------------------------------------------------------------------------------


def test_a_delivery_carries_an_approval_that_the_published_key_proves(plane: Plane) -> None:
    instance = delivered(plane, gpus=2)
    claim = plane.applied[0]
    (published,) = plane.published
    header = jwt.get_unverified_header(token_of(claim))
    assert header == {"alg": "EdDSA", "kid": header["kid"], "typ": "approval+jwt"}
    payload = jwt.decode(
        token_of(claim), published[header["kid"]], algorithms=["EdDSA"], audience="composition-function"
    )
    request = instance.requests.get()
    lifetime = payload.pop("exp") - payload.pop("iat")
    assert lifetime == signing.VALID_FOR.total_seconds()
    assert payload == {
        "iss": "portal",
        "aud": "composition-function",
        "sub": str(instance.pk),
        "request": str(request.pk),
        "claim": {
            "apiVersion": "aiplatform.example.org/v1alpha1",
            "kind": "ModelDeployment",
            "namespace": "search-dev",
            "name": "chat",
        },
        "spec": {key: value for key, value in claim["spec"].items() if key != "crossplane"},
        "ceilings": {"gpu.l4": 2},
        "quote": {"monthly": str(request.quote_monthly), "currency": "USD"},
    }
    assert claim["metadata"]["annotations"][CEILINGS] == "gpu.l4=2"


def test_the_approval_is_the_same_at_each_attempt(plane: Plane) -> None:
    plane.errors += [DOWN, DOWN]
    request = submit("ada", model_body())
    assert work() == ["postponed"]
    first = token_of(instance_of(request).claim)
    passed(-3600)  # and no other key comes to sign it meanwhile
    assert work() == ["postponed"]
    assert work() == ["done"]
    assert token_of(plane.applied[0]) == first == token_of(instance_of(request).claim)


def test_only_a_token_of_our_own_keys_says_anything(plane: Plane) -> None:
    claim = delivered(plane).claim
    assert claim is not None
    payload = signing.verified_payload(claim)
    assert payload is not None and payload["claim"]["name"] == "chat"
    other = token_of(delivered(plane, "other").claim)
    parts, others = token_of(claim).split("."), other.split(".")
    forged = f"{parts[0]}.{others[1]}.{parts[2]}"
    unsigned = jwt.encode({"sub": "x"}, None, algorithm="none", headers={"kid": signing.kid_of(claim)})
    cases = [(forged, "a payload of another"), (unsigned, "no signature"), ("x", "no token"), (None, "no annotation")]
    for token, reason in cases:
        annotations = {} if token is None else {APPROVAL: token}
        assert signing.verified_payload({"metadata": {"annotations": annotations}}) is None, reason


# --- keys -------------------------------------------------------------------------------------------------------------


def test_processes_that_start_at_once_make_one_key(world: None) -> None:
    together = threading.Barrier(8)

    def first_key(_: int) -> str:
        together.wait()
        try:
            return signing.make_first_key().kid
        finally:
            connections["default"].close()

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(first_key, range(8)))) == 1
    assert SigningKey.objects.count() == 1


def test_a_private_key_is_stored_sealed(plane: Plane) -> None:
    key = signing.make_first_key()
    assert "PRIVATE" not in key.private_sealed + key.public_pem
    with pytest.raises(ValueError, match=r"."):
        signing.serialization.load_pem_private_key(key.private_sealed.encode(), password=None)


def test_another_secret_key_is_said_with_the_way_out_and_that_works(plane: Plane, settings: Any) -> None:
    delivered(plane, "before")
    settings.SECRET_KEY = "another-" * 8
    request = submit("ada", model_body())
    assert work() == ["postponed"]
    row = OutboxRow.objects.get(lane__contains=str(request.instance_id), topic="apply")
    for word in ("another SECRET_KEY", "signing_key rotate", "signing_key resign"):
        assert word in row.last_error
    run("rotate")
    passed(signing.SETTLES.total_seconds())
    assert work() == ["done"]
    assert run("resign").count("a new approval is on its way") == 1
    assert work("reapply") == ["done"]


# --- publishing -------------------------------------------------------------------------------------------------------


def test_keys_are_published_before_the_first_delivery_and_when_they_change(plane: Plane) -> None:
    delivered(plane, "one")
    delivered(plane, "two")
    assert len(plane.published) == 1, "once per process"
    signing.rotate()
    delivered(plane, "three")
    assert [len(keys) for keys in plane.published] == [1, 2]
    signing.publish(plane, again=True)
    assert [len(keys) for keys in plane.published] == [1, 2, 2]
    assert AuditEvent.objects.filter(verb="signing-key.publish").count() == 2, "what is there already is no event"


@pytest.mark.parametrize("error", [DOWN, FORBIDDEN])
def test_nothing_is_delivered_where_its_approval_could_not_be_verified(plane: Plane, error: Any) -> None:
    """Nor does the request fail for it: the platform's operators have to act, and it goes on when they have."""
    plane.publish_errors.append(error)
    request = submit("ada", model_body())
    assert work() == ["postponed"]
    assert (plane.applied, fresh(request).state) == ([], "Approved")
    assert error.message in OutboxRow.objects.get(topic="apply").last_error
    assert work() == ["done"]


def test_the_embedded_control_plane_keeps_them_where_the_function_asks(sample: None) -> None:
    plane = embedded_plane()
    plane.publish_approval_keys({"old": "PEM 1", "new": "PEM 2"})
    plane.publish_approval_keys({"new": "PEM 2"})
    found = find(GroupKind("", "ConfigMap"), "portal-system", "portal-approval-keys")
    assert found is not None and found.body == {"data": {"new.pem": "PEM 2"}}


# --- rotation ---------------------------------------------------------------------------------------------------------


def test_a_new_key_signs_once_every_control_plane_has_it(plane: Plane) -> None:
    Environment.objects.filter(slug="prod").update(control_plane="other")
    first = signing.kid_of(delivered(plane, "one").claim)
    kid = signing.rotate().kid
    assert signing.rotate().kid == kid, "one at a time"
    signing.publish(plane)
    passed(3600)
    assert signing.kid_of(delivered(plane, "two").claim) == first, "the other one does not have it"
    signing.publish(Plane(name="other"))
    assert signing.kid_of(delivered(plane, "three").claim) == first, "what the other one remembers may be older"
    passed(signing.SETTLES.total_seconds())
    assert signing.kid_of(delivered(plane, "four").claim) == kid
    events = AuditEvent.objects.filter(verb__startswith="signing-key.").order_by("id").values_list("verb", flat=True)
    created, published = "signing-key.create", "signing-key.publish"
    assert list(events) == [created, published, created, published, published, "signing-key.activate"]


def test_a_rotation_from_beginning_to_end(plane: Plane) -> None:
    chat = delivered(plane)
    old = signing.kid_of(chat.claim)
    assert "signs  published: embedded  living claims: 1" in run("list")
    assert "signs from" in run("rotate")
    new = SigningKey.objects.latest("created_at").kid
    with pytest.raises(CommandError, match=f"{new}  signs from .* Run this again then"):
        run("resign")
    with pytest.raises(CommandError, match=r"is the key that signs\. Rotate first"):
        run("retire", str(old))
    passed(signing.SETTLES.total_seconds())
    with pytest.raises(CommandError, match=r"1 living claims carry approvals of .*search-dev/chat.*signing_key resign"):
        run("retire", str(old))
    assert run("resign").endswith("1 claims get new approvals.\n")
    assert run("resign").endswith("0 claims get new approvals.\n"), "it waits for its own already"
    assert work("reapply") == ["done"]
    chat.refresh_from_db()
    assert signing.kid_of(chat.claim) == signing.kid_of(plane.applied[-1]) == new
    before, after = plane.applied
    assert {**before, "metadata": {}} == {**after, "metadata": {}}, "nothing else has changed"
    assert f"{old}  retired at" in run("retire", str(old))
    signing.publish(plane)
    assert list(plane.published[-1]) == [new]
    assert chat.audit_events.filter(verb="claim.reapply").get().data["kid"] == new
    with pytest.raises(NotFound):
        signing.retire(str(old))


def test_new_approvals_for_all_begin_anew(plane: Plane) -> None:
    chat = delivered(plane)
    assert run("resign").startswith("0 claims")
    assert "1 claims" in run("resign", "--all")
    assert work("reapply") == ["done"]
    chat.refresh_from_db()
    assert chat.claim == plane.applied[-1]


def test_the_key_that_signs_is_not_retired(plane: Plane) -> None:
    with pytest.raises(Conflict, match="Rotate first"):
        signing.retire(signing.make_first_key().kid)


# --- applying again ---------------------------------------------------------------------------------------------------


def test_a_claim_on_its_way_out_gets_no_new_approval(plane: Plane) -> None:
    chat = delivered(plane)
    reapplying.ask_new_approvals(all_of_them=True)
    deletion = submit("ada", {"kind": "Delete", "instance": str(chat.pk)})
    assert work("delete") == ["done"]
    assert work("reapply") == ["done"]
    assert (len(plane.applied), OutboxRow.objects.get(topic="reapply").outcome) == (1, "cancelled")
    assert "claim.delete" in verbs(deletion)


@pytest.mark.parametrize(("error", "tries"), [(FORBIDDEN, 1), (DOWN, 2)], ids=["refused", "given up"])
def test_a_claim_that_is_not_taken_stays_as_it_was(plane: Plane, settings: Any, error: Any, tries: int) -> None:
    settings.OUTBOX_MAX_ATTEMPTS = 2
    chat = delivered(plane)
    reapplying.ask_new_approvals(all_of_them=True)
    plane.errors += [error] * tries
    assert [work("reapply")[0] for _ in range(tries)][-1] in {"done", "given up"}
    told = chat.audit_events.get(verb="claim.reapply-failed").data
    assert told == {"code": error.code, "message": error.message}
    before = chat.claim
    chat.refresh_from_db()
    assert (chat.claim, chat.phase) == (before, "Provisioning")
