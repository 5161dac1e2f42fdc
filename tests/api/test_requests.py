"""The path of a request over the API: preview, submit, read, vote, withdraw, timeline."""

from __future__ import annotations

from typing import Any

import pytest

from portal.models import AuditEvent, Quota, Request, Vote
from tests.api.conftest import As, Unwritten
from tests.sample import model_body, quota_body
from tests.world import OUTSIDER, OWN_APPROVER, SUPERUSER, ready, submit


def test_a_small_request_is_stored_and_approved_at_once(call_as: As) -> None:
    answer = call_as("ada").post("requests/", model_body(reason="to try things"))
    assert answer.status == 201
    made = answer.json
    assert (made["state"], made["kind"], made["requester"]) == ("Approved", "Create", "ada")
    assert made["quote"]["monthly"] == "584.00"
    assert made["decision"]["outcome"] == "Allowed"
    assert made["decision"]["usage"][-1] == {
        "team": "search",
        "dimension": "gpu.l4",
        "before": 0,
        "after": 1,
        "limit": 4,
    }
    assert made["stages"] == []
    assert made["waitsFor"] is None
    assert answer.headers["Location"] == made["links"]["self"]
    assert call_as("ada").get(made["links"]["self"]).json == made


def test_a_preview_says_the_same_and_writes_nothing(call_as: As, nothing_written: Unwritten) -> None:
    ada = call_as("ada")
    with nothing_written():
        preview = ada.post("requests/preview/", model_body())
    assert preview.status == 200
    made = ada.post("requests/", model_body()).json
    for member in ("reasons", "usage", "quote", "budgets"):
        assert preview.json[member] == made["decision"][member]
    assert preview.json["outcome"] == made["decision"]["outcome"]
    assert preview.json["spec"] == made["spec"]
    assert "kind: ModelDeployment" in preview.json["claim"]


def test_a_preview_of_a_quota_has_no_claim(call_as: As) -> None:
    preview = call_as("carol").post("requests/preview/", quota_body(2))
    assert preview.json["claim"] is None
    assert [stage["group"] for stage in preview.json["stages"]] == ["platform-admins"]


def test_a_denial_is_stored_with_its_reasons_and_holds_nothing(call_as: As) -> None:
    answer = call_as("carol").post("requests/", model_body(team="ads", gpus=2))
    assert answer.status == 201
    assert answer.json["state"] == "Denied"
    assert answer.json["instance"] is None
    denials = [reason for reason in answer.json["decision"]["reasons"] if reason["effect"] == "deny"]
    assert [reason["code"] for reason in denials] == ["quota-exceeded"]
    assert "up to 1 fits" in denials[0]["message"]
    assert not Quota.objects.filter(reserved__gt=0).exists()


def test_all_lines_that_fail_are_named(call_as: As) -> None:
    """Case 25: the first of several limits is fine, later ones are not."""
    spec = {**model_body()["spec"], "accelerator": {"class": "h100-80gb", "count": 4}, "replicas": {"min": 1, "max": 4}}
    body = model_body(team="research", environment="dev", spec=spec)
    reasons = call_as("dave").post("requests/", body).json["decision"]["reasons"]
    denied = sorted(reason["code"] for reason in reasons if reason["effect"] == "deny")
    assert denied.count("quota-exceeded") == 1  # research; acme's 16 are enough
    assert denied.count("budget-exceeded") == 1  # research; acme's 80,000 are enough


@pytest.mark.parametrize("place", ["header", "member", "both"])
def test_same_key_and_body_answer_the_same_request(call_as: As, place: str) -> None:
    ada = call_as("ada")
    headers = {"Idempotency-Key": "k-1"} if place != "member" else {}
    body = model_body(idempotencyKey="k-1") if place != "header" else model_body()
    first = ada.post("requests/", body, headers=headers)
    again = ada.post("requests/", body, headers=headers)
    assert (first.status, again.status) == (201, 200)
    assert again.json == first.json
    assert Request.objects.count() == 1
    assert AuditEvent.objects.filter(verb="request.allow").count() == 1


def test_a_key_in_the_header_and_in_the_body_is_the_same_key(call_as: As) -> None:
    ada = call_as("ada")
    first = ada.post("requests/", model_body(), headers={"Idempotency-Key": "k-1"})
    again = ada.post("requests/", model_body(idempotencyKey="k-1"))
    assert (again.status, again.json["id"]) == (200, first.json["id"])


def test_same_key_with_another_body_is_a_conflict(call_as: As, nothing_written: Unwritten) -> None:
    ada = call_as("ada")
    first = ada.post("requests/", model_body(), headers={"Idempotency-Key": "k-1"})
    with nothing_written():
        other = ada.post("requests/", model_body(reason="another"), headers={"Idempotency-Key": "k-1"})
    assert (other.status, other.code) == (409, "idempotency-key-reused")
    assert first.json["id"] in other.json["detail"]


def test_keys_are_one_s_own(call_as: As) -> None:
    first = call_as("ada").post("requests/", model_body("one", idempotencyKey="k-1"))
    other = call_as("ben").post("requests/", model_body("two", idempotencyKey="k-1"))
    assert (first.status, other.status) == (201, 201)


def test_two_keys_that_differ_are_refused(call_as: As, nothing_written: Unwritten) -> None:
    with nothing_written():
        answer = call_as("ada").post("requests/", model_body(idempotencyKey="a"), headers={"Idempotency-Key": "b"})
    assert answer.status == 400
    assert answer.json["errors"][0]["pointer"] == "/idempotencyKey"


def prod(who: str = OWN_APPROVER, **changes: Any) -> str:
    """A request that waits for two of platform-approvers."""
    return str(submit(who, model_body(environment="prod", **changes)).pk)


def test_two_approvers_let_it_through(call_as: As) -> None:
    request = prod()
    waiting = call_as("erin").get(f"requests/{request}/").json
    assert waiting["waitsFor"] == {"group": "platform-approvers", "missing": 2}
    decision = waiting["decision"]["id"]
    one = call_as("frank").post(f"requests/{request}/approve/", {"comment": "fits", "decision": decision})
    assert (one.status, one.json["state"], one.json["waitsFor"]["missing"]) == (200, "Waiting", 1)
    two = call_as("heidi").post(f"requests/{request}/approve/")
    assert (two.status, two.json["state"], two.json["waitsFor"]) == (200, "Approved", None)
    votes = two.json["stages"][0]["votes"]
    assert [(vote["voter"], vote["comment"]) for vote in votes] == [("frank", "fits"), ("heidi", "")]


def test_a_rejection_ends_it_and_gives_back(call_as: As) -> None:
    request = prod()
    assert Quota.objects.get(team__slug="search", dimension="gpu.l4").reserved == 1
    answer = call_as("frank").post(f"requests/{request}/reject/", {"comment": "not now"})
    assert (answer.status, answer.json["state"]) == (200, "Rejected")
    assert Quota.objects.get(team__slug="search", dimension="gpu.l4").reserved == 0


@pytest.mark.parametrize("body", [{}, {"comment": ""}, {"comment": " \n"}])
def test_a_rejection_says_why(call_as: As, nothing_written: Unwritten, body: dict[str, Any]) -> None:
    request = prod()
    with nothing_written():
        answer = call_as("frank").post(f"requests/{request}/reject/", body)
    assert (answer.status, answer.code) == (400, "invalid-input")
    (problem,) = answer.json["errors"]
    assert (problem["pointer"], problem["code"]) == ("/comment", "missing-field")


OWN = [
    (OWN_APPROVER, {}, "one's own request, by somebody in the approvers' group"),
    (SUPERUSER, {}, "one's own request, as superuser and platform admin, in two approver groups"),
    ("ada", {"madeFor": OWN_APPROVER}, "made for the voter"),
    ("ada", {"madeFor": SUPERUSER}, "made for a superuser"),
]


@pytest.mark.parametrize("requester, changes, reason", OWN)
@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_nobody_votes_on_their_own(
    call_as: As, nothing_written: Unwritten, requester: str, changes: dict[str, Any], reason: str, verb: str
) -> None:
    """Case 12."""
    request = prod(requester, **changes)
    voter = changes.get("madeFor", requester)
    with nothing_written():
        answer = call_as(voter).post(f"requests/{request}/{verb}/")
    assert (answer.status, answer.code) == (403, "own-request"), reason


def test_an_admin_does_not_raise_the_quota_of_their_own_team(call_as: As, nothing_written: Unwritten) -> None:
    request = submit("ada", quota_body(6, team="search")).pk
    with nothing_written():
        answer = call_as(SUPERUSER).post(f"requests/{request}/approve/")
    assert (answer.status, answer.code) == (403, "own-request")
    assert call_as("grace").post(f"requests/{request}/approve/").json["state"] == "Done"
    assert Quota.objects.get(team__slug="search", dimension="gpu.l4").limit == 6


REFUSED_VOTES = [
    ("ada", 403, "not-an-approver", "of the team, in no approver group"),
    ("ivan", 403, "not-an-approver", "an admin who is not in the group"),
    (OUTSIDER, 404, "not-found", "may not even see it"),
    ("carol", 404, "not-found", "of another team"),
]


@pytest.mark.parametrize("voter, status, code, reason", REFUSED_VOTES)
def test_who_may_not_vote(
    call_as: As, nothing_written: Unwritten, voter: str, status: int, code: str, reason: str
) -> None:
    request = prod()
    with nothing_written():
        answer = call_as(voter).post(f"requests/{request}/approve/")
    assert (answer.status, answer.code) == (status, code), reason


def test_a_person_votes_once(call_as: As, nothing_written: Unwritten) -> None:
    request = prod()
    call_as("frank").post(f"requests/{request}/approve/")
    with nothing_written():
        again = call_as("frank").post(f"requests/{request}/reject/")
    assert (again.status, again.code) == (409, "already-voted")
    assert Vote.objects.get().answer == "approve"


def test_a_vote_on_what_was_not_seen_is_a_conflict(call_as: As, nothing_written: Unwritten) -> None:
    request = prod()
    with nothing_written():
        answer = call_as("frank").post(f"requests/{request}/approve/", {"decision": 999_999_999})
    assert (answer.status, answer.code) == (409, "decision-changed")


def test_a_vote_on_what_does_not_wait_is_a_conflict(call_as: As) -> None:
    request = submit("ada", model_body()).pk
    answer = call_as(SUPERUSER).post(f"requests/{request}/approve/")
    assert (answer.status, answer.code) == (409, "not-waiting")


def test_withdrawing_gives_back(call_as: As) -> None:
    request = prod("ada")
    answer = call_as("ada").post(f"requests/{request}/withdraw/")
    assert (answer.status, answer.json["state"]) == (200, "Withdrawn")
    assert not Quota.objects.filter(reserved__gt=0).exists()
    again = call_as("ada").post(f"requests/{request}/withdraw/")
    assert (again.status, again.code) == (409, "too-late")


def test_withdrawing_another_s_is_refused(call_as: As, nothing_written: Unwritten) -> None:
    request = prod("ada")
    with nothing_written():
        answer = call_as("ben").post(f"requests/{request}/withdraw/")
    assert (answer.status, answer.code) == (403, "not-yours")


def test_the_timeline_is_the_audit_events_in_their_order(call_as: As) -> None:
    request = prod("ada")
    call_as("frank").post(f"requests/{request}/approve/", {"comment": "fits"})
    call_as("ada").post(f"requests/{request}/withdraw/")
    events = call_as("ada").get(f"requests/{request}/timeline/").json["items"]
    assert [(event["verb"], event["actor"]) for event in events] == [
        ("request.ask", "ada"),
        ("vote.cast", "frank"),
        ("request.withdraw", "ada"),
    ]
    assert events[1]["data"]["comment"] == "fits"


def test_deleting_is_a_request(call_as: As) -> None:
    instance = ready("ada", model_body())
    answer = call_as("ben").post("requests/", {"kind": "Delete", "instance": str(instance.pk)})
    assert (answer.status, answer.json["kind"], answer.json["state"]) == (201, "Delete", "Approved")
    again = call_as("ada").post("requests/", {"kind": "Delete", "instance": str(instance.pk)})
    assert (again.status, again.code) == (409, "already-asked")


def test_a_name_that_is_taken_is_a_conflict(call_as: As, nothing_written: Unwritten) -> None:
    submit("ada", model_body())
    with nothing_written():
        answer = call_as("ben").post("requests/", model_body())
    assert (answer.status, answer.code) == (409, "name-taken")
