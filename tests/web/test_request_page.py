"""A request's page: votes bind to what was seen, nobody votes on their own, withdrawing gives back."""

from __future__ import annotations

import html
import re

import pytest

from portal.models import AuditEvent, Quota, Request, Vote
from portal.services import approving, journal
from portal.web import timeline
from tests.sample import actor, model_body, quota_body
from tests.web.conftest import SignIn
from tests.world import OUTSIDER, OWN_APPROVER, SUPERUSER, ready, submit


def page_of(sign_in: SignIn, person: str, request: Request) -> str:
    response = sign_in(person).get(f"/requests/{request.pk}/")
    assert response.status_code == 200, person
    return html.unescape(response.content.decode())


def decision_of(page: str) -> str:
    found = re.search(r'name="decision" value="(\d+)"', page)
    assert found, "the vote form names the decision that is shown"
    return found[1]


def test_two_people_approve_and_it_goes_on(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    for person, state in (("frank", "Waiting"), ("heidi", "Approved")):
        decision = decision_of(page_of(sign_in, person, request))
        data = {"answer": "approve", "comment": "fine", "decision": decision}
        response = sign_in(person).post(f"/requests/{request.pk}/vote/", data, follow=True)
        assert "Your approval was recorded" in response.content.decode()
        request.refresh_from_db()
        assert request.state == state
    page = page_of(sign_in, "ada", request)
    assert "2 of 2" in page
    assert "fine" in page


def test_a_rejection_shows_its_comment(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    decision = decision_of(page_of(sign_in, "frank", request))
    data = {"answer": "reject", "comment": "<b>after the launch</b>", "decision": decision}
    sign_in("frank").post(f"/requests/{request.pk}/vote/", data)
    page = sign_in("ada").get(f"/requests/{request.pk}/").content.decode()
    assert "&lt;b&gt;after the launch&lt;/b&gt;" in page
    assert "<b>after" not in page
    assert f"/offerings/modeldeployments/request/?from={request.pk}" in page


@pytest.mark.parametrize(
    ("requester", "voter", "body", "says", "reason"),
    [
        (OWN_APPROVER, OWN_APPROVER, model_body(environment="prod"), "you asked for it", "a requester in the group"),
        (SUPERUSER, SUPERUSER, model_body(environment="prod"), "you asked for it", "a superuser"),
        ("ada", OWN_APPROVER, model_body(environment="prod", madeFor=OWN_APPROVER), "made for you", "made for them"),
        ("ada", SUPERUSER, quota_body(6, team="search"), "ceiling", "a quota that they gain from"),
    ],
)
def test_nobody_votes_on_their_own_request(
    sign_in: SignIn, requester: str, voter: str, body: dict[str, object], says: str, reason: str
) -> None:
    request = submit(requester, body)
    assert request.state == "Waiting", reason
    page = page_of(sign_in, voter, request)
    assert 'name="answer"' not in page, reason
    assert says in page, reason
    before = AuditEvent.objects.count()
    data = {"answer": "approve", "decision": request.decisions.latest("id").pk}
    response = sign_in(voter).post(f"/requests/{request.pk}/vote/", data)
    assert response.status_code == 403, reason
    assert says in html.unescape(response.content.decode()), reason
    assert not Vote.objects.exists(), reason
    assert AuditEvent.objects.count() == before, reason


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        ({"answer": "maybe", "decision": "1"}, 400, "no such answer"),
        ({"answer": "approve"}, 400, "what was seen is missing"),
        ({"answer": "approve", "decision": "x"}, 400, "no id"),
        ({"answer": "approve", "decision": "999999"}, 409, "another decision than the one that stands"),
        ({"answer": "approve", "decision": "1", "comment": "x" * 5000}, 400, "a comment that is too long"),
    ],
)
def test_a_vote_that_says_too_little_is_refused(
    sign_in: SignIn, data: dict[str, str], status: int, reason: str
) -> None:
    request = submit("ada", model_body(environment="prod"))
    assert sign_in("frank").post(f"/requests/{request.pk}/vote/", data).status_code == status, reason
    assert not Vote.objects.exists()


def test_somebody_of_no_approver_group_sees_no_buttons(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    page = page_of(sign_in, "ben", request)
    assert 'name="answer"' not in page
    data = {"answer": "approve", "decision": request.decisions.latest("id").pk}
    assert sign_in("ben").post(f"/requests/{request.pk}/vote/", data).status_code == 403


def test_what_one_may_not_see_is_not_there(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    unknown = "00000000-0000-0000-0000-000000000000"
    for person in (OUTSIDER, "carol"):
        hidden = sign_in(person).get(f"/requests/{request.pk}/")
        missing = sign_in(person).get(f"/requests/{unknown}/")
        assert (hidden.status_code, missing.status_code) == (404, 404)
        texts = [re.sub(r"[0-9a-f-]{36}|csrf\S+ value=\S+", "", each.content.decode()) for each in (hidden, missing)]
        assert texts[0] == texts[1], "the two look alike"
        assert sign_in(person).post(f"/requests/{request.pk}/withdraw/").status_code == 404


def test_withdrawing_gives_back(sign_in: SignIn) -> None:
    request = submit("ben", model_body(environment="prod"))
    assert "/withdraw/" in page_of(sign_in, "ben", request)
    assert sign_in("erin").post(f"/requests/{request.pk}/withdraw/").status_code == 403, "neither hers nor an owner"
    sign_in("ada").post(f"/requests/{request.pk}/withdraw/")
    request.refresh_from_db()
    assert request.state == "Withdrawn"
    assert Quota.objects.get(team__slug="search", dimension="gpu.l4").reserved == 0


def test_a_moving_request_looks_again_and_only_for_news(sign_in: SignIn) -> None:
    request = submit("ada", model_body())
    client = sign_in("ada")
    page = client.get(f"/requests/{request.pk}/").content.decode()
    address = re.search(r'hx-get="([^"]+)" hx-trigger="every 2s"', page)
    assert address
    headers = {"HX-Request": "true"}
    assert client.get(address[1], headers=headers).status_code == 204, "nothing is new"
    Request.objects.filter(pk=request.pk).update(state="Done")
    again = client.get(address[1], headers=headers)
    assert again.status_code == 200
    assert b"every 2s" not in again.content, "it does not go on once it is done"


def test_a_quota_shows_what_it_changes(sign_in: SignIn) -> None:
    request = submit("carol", quota_body(3))
    page = page_of(sign_in, "grace", request)
    assert re.search(r"<del>1</del>.*<ins>3</ins>", page)


def test_an_instance_shows_what_was_observed(sign_in: SignIn) -> None:
    instance = ready("ada", model_body(), {"endpoint": {"url": "https://chat.example.org/<v1>"}})
    page = sign_in("ada").get(f"/instances/{instance.pk}/").content.decode()
    assert "https://chat.example.org/&lt;v1&gt;" in page
    assert "584.00 USD per month" in page
    assert "kind: ModelDeployment" in page, "the claim"
    assert "no cluster behind it" in page, "the control plane says that it is simulated"
    assert sign_in("carol").get(f"/instances/{instance.pk}/").status_code == 404


def test_deleting_asks_back_and_is_a_request(sign_in: SignIn) -> None:
    instance = ready("ada", model_body())
    client, address = sign_in("ada"), f"/instances/{instance.pk}/delete/"
    page = client.get(address).content.decode()
    assert "Delete chat?" in page
    assert not Request.objects.filter(kind="Delete").exists()
    key = re.search(r'name="idempotencyKey" value="([^"]+)"', page)
    assert key
    response = client.post(address, {"idempotencyKey": key[1], "/reason": "done with it"})
    deletion = Request.objects.get(kind="Delete")
    assert response.url == f"/requests/{deletion.pk}/"  # type: ignore[attr-defined]  # a redirect's
    again = client.post(address, {"idempotencyKey": "another"})
    assert again.status_code == 409
    assert sign_in("carol").post(address).status_code == 404


def test_a_late_vote_shows_who_decided_and_keeps_the_comment(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    decision = decision_of(page_of(sign_in, "frank", request))
    approving.vote(request.pk, "reject", "after the launch", acting=actor("heidi"))
    data = {"answer": "approve", "comment": "two lines\nof <mine>", "decision": decision}
    response = sign_in("frank").post(f"/requests/{request.pk}/vote/", data)
    page = html.unescape(response.content.decode())
    assert response.status_code == 409
    assert "Your approval was not counted" in page
    assert "It is decided: heidi ended it with a no" in page
    assert '<span class="state s-rejected">Rejected</span>' in page, "the request itself"
    assert "two lines\nof <mine>" in page
    assert 'href="/inbox/">Back to the inbox' in page
    assert Vote.objects.count() == 1
    again = sign_in("frank").get(f"/requests/{request.pk}/vote/")
    assert again.url == f"/requests/{request.pk}/", "a reload is no dead end"  # type: ignore[attr-defined]


def test_a_vote_on_another_decision_can_be_cast_again_with_the_same_comment(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    data = {"answer": "approve", "comment": "looks fine", "decision": "999999"}
    response = sign_in("frank").post(f"/requests/{request.pk}/vote/", data)
    page = html.unescape(response.content.decode())
    assert response.status_code == 409
    assert "Look again" in page
    assert re.search(r"<textarea[^>]*>\nlooks fine</textarea>", page)
    assert decision_of(page) == str(request.decisions.get().pk)


def test_a_rejection_needs_a_reason(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    data = {"answer": "reject", "comment": " ", "decision": decision_of(page_of(sign_in, "frank", request))}
    response = sign_in("frank").post(f"/requests/{request.pk}/vote/", data)
    page = html.unescape(response.content.decode())
    assert response.status_code == 400
    assert re.search(r'<a href="#comment-[^"]+">Comment: a rejection needs a reason', page)
    assert re.search(r'<textarea[^>]*aria-invalid="true"', page)
    assert not Vote.objects.exists()


def test_a_denial_by_ones_own_quota_leads_to_the_form_that_raises_it(sign_in: SignIn) -> None:
    request = submit("ada", model_body(gpus=9))
    assert request.state == "Denied"
    page = page_of(sign_in, "ada", request)
    assert 'href="/quotas/raise/?team=search&dimension=gpu.l4&limit=9"' in page
    assert "team=acme" not in page, "the group above is not hers to ask for"
    assert "acme, the group above search, holds 0 of 8 gpu.l4" in page
    assert "team=acme&dimension=gpu.l4&limit=9" in page_of(sign_in, "ivan", request), "an admin asks for any"
    form = sign_in("ada").get("/quotas/raise/?team=search&dimension=gpu.l4&limit=9").content.decode()
    assert re.search(r'name="/spec/limit"[^>]* value="9"', form)


def test_a_quota_that_is_done_says_what_it_is_now(sign_in: SignIn) -> None:
    request = submit("carol", quota_body(3))
    assert "limit 1 → 3" in page_of(sign_in, "grace", request)
    approving.vote(request.pk, "approve", acting=actor("grace"))
    page = page_of(sign_in, "carol", request)
    assert "Done: the quota is 3 now." in page
    assert "limit 1 → 3" in page
    Quota.objects.filter(team__slug="ads", dimension="gpu.l4").update(limit=5)
    assert "set to 3. Since then it was changed, to 5." in page_of(sign_in, "carol", request)


def test_a_timeline_folds_what_is_published_again_and_tells_close_times_apart(sign_in: SignIn) -> None:
    instance = ready("ada", model_body())
    for _ in range(2):
        journal.record("catalog.publish", system="publishing", instance=instance, data={})
    events = AuditEvent.objects.filter(instance=instance).order_by("-id")
    told = timeline.story(events)
    published = [moment for moment in told if moment.event.verb == "catalog.publish"]
    count = events.filter(verb="catalog.publish").count()
    assert [moment.sentence for moment in published] == [f"wrote its entry in the catalog, {count} times"]
    assert count > 2
    assert "saw it Ready" in [moment.sentence for moment in told], "and not: saw it Ready: ready"
    assert all(moment.close for moment in told) or len({moment.at.minute for moment in told}) > 1
    page = sign_in("ada").get(f"/instances/{instance.pk}/").content.decode()
    assert re.search(r'<time datetime="[^"]+">[0-9-]+ [0-9]+:[0-9]+:[0-9]+</time>', page)


def test_codes_are_told_once() -> None:
    event = AuditEvent(verb="request.deny", data={"from": "Draft", "codes": ["quota-exceeded", "quota-exceeded"]})
    (moment,) = timeline.moments([event])
    assert moment.sentence == "asked; the policies denied it (quota-exceeded)"


def test_a_deletion_is_explained_as_one(sign_in: SignIn) -> None:
    instance = ready("ada", model_body())
    page = html.unescape(sign_in("ada").get(f"/instances/{instance.pk}/delete/").content.decode())
    assert "Why it isn't needed any more." in page
    assert "no policy speaks against the deletion" in page
    assert "What it is for" not in page
