"""The inbox as a query says the same as the rules of voting say of each request; oldest first, paged."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User

from portal.models import Request
from portal.services import approving
from portal.services import inbox as waiting
from portal.services.access import Actor
from tests.sample import actor, model_body, quota_body
from tests.web.conftest import SignIn
from tests.world import OWN_APPROVER, SUPERUSER, World, submit


def some_requests() -> list[Request]:
    """Requests at all stages: fresh, one vote in, own ones, of quotas, decided, and rejected ones."""
    made = [
        submit("ada", model_body("one", environment="prod")),
        submit(OWN_APPROVER, model_body("two", environment="prod")),
        submit("ada", model_body("three", environment="prod", madeFor=OWN_APPROVER)),
        submit("carol", quota_body(3)),
        submit("ada", quota_body(6, team="search")),
        submit("grace", quota_body(20, team="acme")),
        submit("ada", model_body("four")),
    ]
    approving.vote(made[0].pk, "approve", acting=actor("frank"))
    return made


def test_the_query_agrees_with_the_rules(world: World) -> None:
    requests = some_requests()
    everybody = list(User.objects.filter(is_active=True))
    agreed = 0
    for user in everybody:
        acting = Actor(user)
        listed = set(waiting.answerable(acting).values_list("pk", flat=True))
        allowed = {request.pk for request in requests if approving.why_not(_fresh(request), acting) is None}
        assert listed == allowed, user.username
        assert waiting.count(acting) == len(allowed), user.username
        agreed += len(allowed)
    assert agreed > 8, "the case is not empty"


def test_whom_it_waits_for_is_the_same_for_one_and_for_many(world: World) -> None:
    requests = [_fresh(request) for request in some_requests()]
    each = {request.pk: found for request in requests if (found := waiting.waits_for(request))}
    assert waiting.waits_for_each(requests) == each
    assert sorted(found.missing for found in each.values()) == [1, 1, 1, 1, 2, 2]


def test_everything_that_waits_for_ones_groups_is_there_on_demand(sign_in: SignIn) -> None:
    some_requests()
    client = sign_in(OWN_APPROVER)
    mine, all_of_it = client.get("/inbox/").content.decode(), client.get("/inbox/?show=all").content.decode()
    assert "Create two" not in mine
    assert "Create two" in all_of_it
    assert "you asked for it" in all_of_it


def test_it_is_oldest_first_with_what_is_needed_to_decide(sign_in: SignIn) -> None:
    some_requests()
    page = sign_in("heidi").get("/inbox/").content.decode()
    titles = re.findall(r"<h2><a href=[^>]*>(.*?)</a>", page)
    assert titles == ["Create one", "Create two", "Create three"]
    assert "584.00 USD" in page
    assert "production-model" in page
    assert "0 → 1 of 4" in page
    assert 'class="count" aria-label="3 waiting for you"' in page


def test_it_is_paged(sign_in: SignIn) -> None:
    for number in range(8):
        submit("carol", quota_body(20 + number, dimension=f"gpu.x{number}"))
        submit("dave", quota_body(20 + number, team="research", dimension=f"gpu.x{number}"))
    client = sign_in("grace")
    first, second = client.get("/inbox/").content.decode(), client.get("/inbox/?page=2").content.decode()
    assert (first.count('class="card item"'), second.count('class="card item"')) == (10, 6)
    assert 'rel="next" href="?page=2"' in first
    assert 'rel="next"' not in second


@pytest.mark.parametrize("person", ["ada", "olivia"])
def test_people_of_no_approver_group_have_an_empty_one(sign_in: SignIn, person: str) -> None:
    some_requests()
    page = sign_in(person).get("/inbox/").content.decode()
    assert "Nothing waits for you." in page
    assert 'class="count"' not in page


def test_a_superuser_is_nobody_special(world: World) -> None:
    request = submit(SUPERUSER, model_body("own", environment="prod"))
    assert request.pk not in waiting.answerable(actor(SUPERUSER)).values_list("pk", flat=True)


def _fresh(request: Request) -> Request:
    return Request.objects.get(pk=request.pk)


def test_own_requests_that_are_left_out_are_told(sign_in: SignIn) -> None:
    some_requests()
    page = sign_in(OWN_APPROVER).get("/inbox/").content.decode()
    assert "2 wait for your groups that you can't decide: they are your own" in page.replace("&#x27;", "'")
    assert "can't decide" not in sign_in("frank").get("/inbox/").content.decode().replace("&#x27;", "'")
