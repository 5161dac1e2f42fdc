"""Who sees what, who may do what, and that nobody says yes to what they asked for, on any path.

What one may not see is not there (`not-found`); what one sees and may not do is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction

from portal.models import Membership, Quota, Request, Team
from portal.services import access, approving, submitting, withdrawing
from portal.services.access import Actor
from portal.services.errors import Conflict, Forbidden, ServiceError
from tests.sample import actor, draft, member_of, model_body, quota_body
from tests.world import ready

pytestmark = pytest.mark.django_db

# name: (teams with role, groups, superuser), beside the people of the sample world
MORE_PEOPLE: dict[str, tuple[dict[str, str], list[str], bool]] = {
    "paul": ({"acme": "member"}, [], False),  # of the group above search
    "olga": ({"acme": "owner"}, [], False),
    "root": ({}, [], True),  # a superuser and nothing else
    "zoe": ({}, [], False),  # a stranger
}
WHAT = ("read request", "read instance", "vote", "withdraw", "delete", "submit", "quotas", "audit")
NO = "not-found"
# Ada of team search waits for two votes of the platform's approvers, and has a model that is Ready.
EVERY = "acme ads research search"
# who: (why, what comes of each of WHAT)
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "ada": (
        "is its requester and an owner of the team",
        ("ok", "ok", "own-request", "ok", "ok", "ok", "acme search", "ok"),
    ),
    "ben": (
        "is a member of the team",
        ("ok", "ok", "not-an-approver", "not-yours", "ok", "ok", "acme search", "ok"),
    ),
    "paul": (
        "is a member of the group above",
        ("ok", "ok", "not-an-approver", "not-yours", "ok", "ok", EVERY, "ok"),
    ),
    "olga": (
        "is an owner of the group above",
        ("ok", "ok", "not-an-approver", "ok", "ok", "ok", EVERY, "ok"),
    ),
    "erin": (
        "is a member of the team and of the approvers, and asked for nothing here",
        ("ok", "ok", "ok", "not-yours", "ok", "ok", "acme search", "ok"),
    ),
    "frank": (
        "is an approver: sees what he is asked about, and nothing else of the team",
        ("ok", NO, "ok", "not-yours", NO, NO, "", "ok"),
    ),
    "grace": (
        "is a platform admin: sees all, asks for anybody, and is no approver of this stage",
        ("ok", "ok", "not-an-approver", "not-yours", "ok", "ok", EVERY, "ok"),
    ),
    "olivia": (
        "is an auditor: sees all and does nothing",
        ("ok", "ok", "not-an-approver", "not-yours", "not-a-member", "not-a-member", EVERY, "ok"),
    ),
    "carol": (
        "is of another team",
        (NO, NO, NO, NO, NO, NO, "acme ads", NO),
    ),
    "root": (
        "is a superuser: that opens no door of the portal",
        (NO, NO, NO, NO, NO, NO, "", NO),
    ),
    "zoe": (
        "is a stranger",
        (NO, NO, NO, NO, NO, NO, "", NO),
    ),
}


@pytest.fixture
def people(sample: None) -> None:
    for name, (teams, groups, superuser) in MORE_PEOPLE.items():
        user = User.objects.create_user(name, is_superuser=superuser, is_staff=superuser)
        for slug, role in teams.items():
            Membership.objects.create(user=user, team=Team.objects.get(slug=slug), role=role)
        joins(name, *groups)


def joins(username: str, *groups: str) -> None:
    for group in groups:
        Group.objects.get(name=group).user_set.add(User.objects.get(username=username))  # type: ignore[attr-defined]


@contextmanager
def undone() -> Iterator[None]:
    """Whatever happens in here is rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def attempt(step: Callable[[], object]) -> str:
    """ "ok", or the code of the refusal; nothing of it stays."""
    try:
        with undone():
            step()
    except ServiceError as error:
        return error.code
    return "ok"


def attempts(who: Actor, waiting: Request, instance_id: Any) -> tuple[str, ...]:
    """What comes of everything in WHAT."""
    delete = {"kind": "Delete", "instance": str(instance_id)}
    quotas = access.visible_quotas(who).values_list("team__slug", flat=True)
    seen = access.visible_audit(who).filter(request=waiting).exists()
    return (
        attempt(lambda: access.request_for(who, waiting.pk)),
        attempt(lambda: access.instance_for(who, instance_id)),
        attempt(lambda: approving.vote(waiting.pk, "approve", acting=who)),
        attempt(lambda: withdrawing.withdraw(waiting.pk, acting=who)),
        attempt(lambda: submitting.submit(draft(delete), acting=who)),
        attempt(lambda: submitting.submit(draft(model_body("another")), acting=who)),
        " ".join(sorted(set(quotas))),
        "ok" if seen else NO,
    )


def test_who_sees_what_and_may_do_what(people: None) -> None:
    waiting = submitting.submit(draft(model_body("asked", environment="prod")), acting=actor("ada")).request
    instance = ready("ben", model_body("there"))
    for who, (reason, outcomes) in EXPECTED.items():
        found = attempts(actor(who), waiting, instance.pk)
        assert dict(zip(WHAT, found, strict=True)) == dict(zip(WHAT, outcomes, strict=True)), f"{who} {reason}"


def test_a_scope_limits_a_token_whatever_its_person_may(people: None) -> None:
    """Each verb asks for its scope; reading needs no more than being known."""
    waiting = submitting.submit(draft(model_body("asked", environment="prod")), acting=actor("ada")).request
    steps: dict[str, tuple[str, Callable[[Actor], object]]] = {
        "vote": ("approve", lambda who: approving.vote(waiting.pk, "approve", acting=who)),
        "withdraw": ("request", lambda who: withdrawing.withdraw(waiting.pk, acting=who)),
        "submit": ("request", lambda who: submitting.submit(draft(model_body("x")), acting=who)),
        "feed": ("feed", access.may_read_feed),
    }
    for name, (scope, step) in steps.items():
        who = {"vote": "frank", "feed": "olivia"}.get(name, "ada")
        with_it = Actor(User.objects.get(username=who), frozenset({scope}))
        without = Actor(User.objects.get(username=who), frozenset(access.SCOPES) - {scope})
        assert attempt(lambda step=step, a=with_it: step(a)) == "ok", name
        assert attempt(lambda step=step, a=without: step(a)) == "missing-scope", name


def test_the_feed_is_for_services_and_those_who_see_all(people: None) -> None:
    service = User.objects.get(username="catalog-service")
    assert attempt(lambda: access.may_read_feed(Actor(service, frozenset({"feed"})))) == "ok"
    for who, code in (("olivia", "ok"), ("grace", "ok"), ("ada", "not-a-service"), ("root", "not-a-service")):
        assert attempt(lambda who=who: access.may_read_feed(actor(who))) == code, who


# --- nobody on their own request (case 12) ----------------------------------------------------------------------------


def model(who: str = "ada", **more: Any) -> Request:
    body = model_body(environment="prod", **more)
    return submitting.submit(draft(body), acting=actor(who)).request


def quota(who: str, team: str, dimension: str = "gpu.l4") -> Request:
    limit = Quota.objects.get(team__slug=team, dimension=dimension).limit + 1
    return submitting.submit(draft(quota_body(limit, team, dimension)), acting=actor(who)).request


def by_an_approver_of_the_group() -> Request:
    return model("erin")


def through_a_second_group() -> Request:
    """The stage's group is one that she joined after she had asked."""
    request = model("ada")
    joins("ada", "platform-approvers", "finance-approvers", "platform-admins")
    return request


def made_for_the_approver() -> Request:
    with member_of("search", "frank"):
        return model("ada", madeFor="frank")


def by_somebody_who_has_left_the_team() -> Request:
    request = model("erin")
    Membership.objects.filter(user__username="erin").delete()
    return request


def by_a_superuser() -> Request:
    User.objects.filter(username="erin").update(is_superuser=True, is_staff=True)
    return model("erin")


def a_quota_asked_for_by_an_admin_of_the_team() -> Request:
    joins("carol", "platform-admins")
    return quota("carol", "ads")


def a_quota_of_the_admins_own_team() -> Request:
    """Somebody else of the team asks; the admin gains all the same."""
    joins("erin", "platform-admins")
    return quota("ada", "search")


def a_quota_of_the_group_above_the_admins_team() -> Request:
    joins("carol", "platform-admins")
    return quota("grace", "acme")


def a_quota_of_a_team_below_the_admins_group() -> Request:
    joins("paul", "platform-admins")
    return quota("carol", "ads")


def a_quota_of_the_superusers_team() -> Request:
    joins("carol", "platform-admins")
    User.objects.filter(username="carol").update(is_superuser=True)
    return quota("grace", "ads")


OWN = [
    pytest.param(by_an_approver_of_the_group, "erin", "frank"),
    pytest.param(through_a_second_group, "ada", "frank"),
    pytest.param(made_for_the_approver, "frank", "heidi"),
    pytest.param(by_somebody_who_has_left_the_team, "erin", "frank"),
    pytest.param(by_a_superuser, "erin", "frank"),
    pytest.param(a_quota_asked_for_by_an_admin_of_the_team, "carol", "grace"),
    pytest.param(a_quota_of_the_admins_own_team, "erin", "grace"),
    pytest.param(a_quota_of_the_group_above_the_admins_team, "carol", "ivan"),
    pytest.param(a_quota_of_a_team_below_the_admins_group, "paul", "grace"),
    pytest.param(a_quota_of_the_superusers_team, "carol", "ivan"),
]


@pytest.mark.parametrize(("made", "own", "other"), OWN, ids=lambda value: getattr(value, "__name__", value))
def test_nobody_votes_on_their_own_request(people: None, made: Callable[[], Request], own: str, other: str) -> None:
    request = made()
    assert request.state == "Waiting", request.decisions.latest("id").result["reasons"]
    for answer in ("approve", "reject"):
        with pytest.raises(Forbidden) as refusal, transaction.atomic():
            approving.vote(request.pk, answer, acting=actor(own))
        assert refusal.value.code == "own-request"
    # What the page and the API show beforehand is the same refusal.
    shown = approving.why_not(request, actor(own))
    assert shown is not None
    assert (shown.code, shown.message) == (refusal.value.code, refusal.value.message)
    assert not request.stages.get().votes.exists()
    # The stage is one that somebody else can answer: the refusal is about the person.
    assert approving.why_not(request, actor(other)) is None
    approving.vote(request.pk, "approve", acting=actor(other))
    assert request.stages.get().votes.count() == 1


def test_a_person_counts_once_whatever_groups_they_are_in(people: None) -> None:
    joins("frank", "platform-admins")
    request = model("ada")
    approving.vote(request.pk, "approve", acting=actor("frank"))
    with pytest.raises(Conflict) as again:
        approving.vote(request.pk, "approve", acting=actor("frank"))
    assert again.value.code == "already-voted"
    assert Request.objects.get(pk=request.pk).state == "Waiting"


def test_who_is_no_longer_active_can_fill_no_stage(people: None) -> None:
    """Of three approvers one asks and one has left the company: two votes can't come together (case 22)."""
    User.objects.filter(username="heidi").update(is_active=False)
    request = model("erin")
    assert request.state == "Denied"
    assert "stage-unsatisfiable" in {r["code"] for r in request.decisions.latest("id").result["reasons"]}
