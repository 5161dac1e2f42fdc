"""Teams, what they hold, and asking for another ceiling."""

from __future__ import annotations

import html
import re

import pytest

from portal.models import Quota, Request
from tests.sample import model_body
from tests.web.conftest import SignIn
from tests.world import submit

RAISE = "/quotas/raise/"


def test_a_team_shows_ceilings_and_who_holds_what(sign_in: SignIn) -> None:
    submit("ada", model_body())
    page = html.unescape(sign_in("ben").get("/teams/search/").content.decode())
    assert "0 used, 1 reserved, limit 4" in page
    assert "584.00 committed, soft 20,000.00, hard 30,000.00 USD" in page
    assert re.search(r'data-label="Held by"><a href="/instances/[^"]+">chat</a>', page)
    assert f"{RAISE}?team=search&dimension=gpu.l4" in page


def test_a_group_above_shows_its_ceilings_and_not_what_others_hold(sign_in: SignIn) -> None:
    submit("ada", model_body("secret-project"))
    page = sign_in("carol").get("/teams/acme/").content.decode()
    assert "0 used, 1 reserved, limit 8" in page
    assert "secret-project" not in page


@pytest.mark.parametrize(
    ("who", "below"),
    [
        ("ada", ["search"]),
        ("carol", ["ads"]),
        ("grace", ["ads", "research", "search"]),
        ("olivia", ["ads", "research", "search"]),
    ],
)
def test_a_group_above_shows_only_the_teams_that_one_sees(sign_in: SignIn, who: str, below: list[str]) -> None:
    page = sign_in(who).get("/teams/acme/").content.decode()
    assert re.findall(r'href="/teams/(ads|research|search)/"', page) == below


def test_a_quota_is_asked_for_and_not_simply_set(sign_in: SignIn) -> None:
    sent = {"idempotencyKey": "k", "/team": "ads", "/spec/dimension": "gpu.l4", "/spec/limit": "3", "/reason": "more"}
    client = sign_in("carol")
    preview = client.post(f"{RAISE}preview/", sent).content.decode()
    assert "platform-admins" in preview
    assert not Request.objects.exists()
    client.post(RAISE, sent)
    request = Request.objects.get()
    assert (request.kind, request.state, request.spec) == ("Quota", "Waiting", {"dimension": "gpu.l4", "limit": 3})
    assert Quota.objects.get(team__slug="ads", dimension="gpu.l4").limit == 1
    page = sign_in("grace").get(f"/requests/{request.pk}/").content.decode()
    decision = re.search(r'name="decision" value="(\d+)"', page)
    assert decision
    sign_in("grace").post(f"/requests/{request.pk}/vote/", {"answer": "approve", "decision": decision[1]})
    assert Quota.objects.get(team__slug="ads", dimension="gpu.l4").limit == 3


@pytest.mark.parametrize(
    ("changes", "label", "says", "reason"),
    [
        ({"/spec/limit": "many"}, "Limit", "whole number", "no number"),
        ({"/spec/limit": "-1"}, "Limit", "from 0", "negative"),
        ({"/spec/limit": ""}, "Limit", "is required", "missing"),
        ({"/spec/dimension": "GPU l4"}, "Dimension", "match", "no such form"),
        ({"/team": ""}, "Team", "is required", "not chosen"),
    ],
)
def test_a_wrong_quota_says_where(sign_in: SignIn, changes: dict[str, str], label: str, says: str, reason: str) -> None:
    sent = {"/team": "ads", "/spec/dimension": "gpu.l4", "/spec/limit": "3", **changes}
    response = sign_in("carol").post(RAISE, sent)
    assert response.status_code == 400, reason
    page = html.unescape(response.content.decode())
    assert re.search(rf'<a href="#[^"]+">{label}: [^<]*{says}', page), reason
    assert not Request.objects.exists()


def test_another_teams_quota_can_not_be_asked_for(sign_in: SignIn) -> None:
    sent = {"/team": "search", "/spec/dimension": "gpu.l4", "/spec/limit": "9"}
    assert sign_in("carol").post(RAISE, sent).status_code == 404
    assert not Request.objects.exists()


def test_the_preview_draws_the_limit_and_says_what_the_group_above_has(sign_in: SignIn) -> None:
    sent = {"/team": "ads", "/spec/dimension": "gpu.l4", "/spec/limit": "20"}
    page = html.unescape(sign_in("carol").post(f"{RAISE}preview/", sent).content.decode())
    assert "limit 1 → 20" in page
    assert "the group above has only 8" in page
    assert re.search(r'<li class="mind">acme, the group above ads, has only 8 gpu.l4', page)


def test_a_dimension_that_nobody_knows_is_questioned(sign_in: SignIn) -> None:
    sent = {"/team": "ads", "/spec/dimension": "gpu.l5", "/spec/limit": "2"}
    page = html.unescape(sign_in("carol").post(f"{RAISE}preview/", sent).content.decode())
    assert "gpu.l5 has neither a price nor a quota. Did you mean gpu.l4?" in page
    known = {**sent, "/spec/dimension": "gpu.l40s"}
    page = sign_in("carol").post(f"{RAISE}preview/", known).content.decode()
    assert "neither a price nor a quota" not in page, "it has a price, so a first quota is no mistake"


def test_the_team_is_asked_for_as_whose_limit_it_is(sign_in: SignIn) -> None:
    page = sign_in("carol").get(RAISE).content.decode()
    assert "Whose limit it is." in page
    assert "quota and budget it takes" not in page
