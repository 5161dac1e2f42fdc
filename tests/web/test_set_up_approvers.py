"""Who set up an approver's account could sign in as them: such a vote does not count for what they ask for."""

from __future__ import annotations

import datetime as dt

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from portal.models import AuditEvent, Request, Team, Vote
from portal.services import approving
from portal.services.errors import Forbidden
from tests.sample import actor, model_body
from tests.web.conftest import SignIn
from tests.world import World, submit

PASSWORD = "another horse battery"
CODE = "approver-set-up-by-requester"


def join(client: Client, slug: str, person: User) -> None:
    """Through the admin, as an owner."""
    team = Team.objects.get(slug=slug)
    rows = list(team.memberships.all())
    sent = {"title": team.title, "memberships-TOTAL_FORMS": len(rows) + 1, "memberships-INITIAL_FORMS": len(rows)}
    for number, row in enumerate(rows):
        for name, value in (("id", row.pk), ("team", team.pk), ("user", row.user_id), ("role", row.role)):
            sent[f"memberships-{number}-{name}"] = value
    last = f"memberships-{len(rows)}"
    sent |= {f"{last}-team": team.pk, f"{last}-user": person.pk, f"{last}-role": "owner"}
    assert client.post(f"/admin/portal/team/{team.pk}/change/", sent).status_code == 302
    assert team.memberships.filter(user=person).exists()


def test_a_superuser_does_not_vote_through_others(world: World) -> None:
    root = User.objects.create_superuser("root", password=None)
    client = Client()
    client.force_login(root)
    join(client, "search", root)
    request = submit("root", model_body(environment="prod"))
    assert request.state == "Waiting"
    for name in ("frank", "heidi"):
        pk = User.objects.get(username=name).pk
        sent = {"password1": PASSWORD, "password2": PASSWORD, "usable_password": "true", "set-password": "1"}
        assert client.post(f"/admin/auth/user/{pk}/password/", sent).status_code == 302
        as_them = Client()
        assert as_them.post("/login/", {"username": name, "password": PASSWORD}).status_code == 302
        decision = request.decisions.latest("id").pk
        answer = as_them.post(f"/requests/{request.pk}/vote/", {"answer": "approve", "decision": decision})
        assert answer.status_code in (403, 409)
        with pytest.raises(Forbidden, match=CODE):
            approving.vote(request.pk, "approve", acting=actor(name))
    assert not Vote.objects.exists()
    assert Request.objects.get(pk=request.pk).state == "Waiting"


def changed(by: str, whom: str, verb: str = "person.change", hours: float = 1) -> None:
    """What the admin writes, some hours ago."""
    person = User.objects.get(username=whom)
    AuditEvent.objects.create(
        at=timezone.now() - dt.timedelta(hours=hours),
        verb=verb,
        actor=User.objects.get(username=by),
        data={"name": whom, "person": person.pk, "changes": []},
    )


@pytest.mark.parametrize(
    ("events", "refused", "reason"),
    [
        ([], False, "nobody was set up"),
        ([("ada", "frank", "person.change", 1)], True, "by who asked for it"),
        ([("ada", "frank", "person.create", 1)], True, "made by who asked for it"),
        ([("ada", "frank", "person.change", 25)], False, "more than a day ago"),
        ([("ada", "heidi", "person.change", 1)], False, "another approver"),
        ([("grace", "frank", "person.change", 1)], False, "by somebody who has nothing to do with it"),
        ([("ada", "frank", "token.create", 1)], False, "another step"),
        ([("grace", "frank", "person.change", 1), ("ada", "grace", "person.change", 2)], True, "through a third"),
        ([("grace", "ada", "person.change", 1), ("grace", "frank", "person.change", 1)], False, "both by an admin"),
    ],
)
def test_who_was_set_up_by_whom(
    world: World, events: list[tuple[str, str, str, float]], refused: bool, reason: str
) -> None:
    request = submit("ada", model_body(environment="prod"))
    for event in events:
        changed(*event)
    why = approving.why_not(request, actor("frank"))
    assert (why.code if why else None) == (CODE if refused else None), reason


def test_the_one_whom_it_is_made_for_counts_too_and_a_new_name_is_the_same_person(world: World) -> None:
    request = submit("grace", model_body(environment="prod", madeFor="ada"))
    changed("ada", "frank")
    User.objects.filter(username="frank").update(username="francis")
    why = approving.why_not(request, actor("francis"))
    assert why and why.code == CODE


def test_the_page_says_so(sign_in: SignIn) -> None:
    request = submit("ada", model_body(environment="prod"))
    changed("ada", "frank")
    page = sign_in("frank").get(f"/requests/{request.pk}/").content.decode()
    assert "our account was made or changed by whoever asked for this" in page
