"""Accounts of people who come from Backstage: made once, with the rights that the directory gives now, and no more."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from portal.models import AuditEvent, Identity, Membership
from portal.ports import DirectoryPerson, RetryableError
from portal.services import identities, loading
from portal.services.errors import ServiceError, Unavailable
from tests import sample

NORA = "user:default/nora"
RULES = """
apiVersion: portal.aiplatform.example.org/v1
kind: DirectoryRules
rules:
  - {group: "group:default/search", team: search}
  - {group: "group:default/search-leads", team: search, role: owner}
  - {group: "group:default/ads", team: ads}
  - {group: "group:default/platform", approvers: platform-approvers}
"""


class Known:
    """A directory that answers what it is told to."""

    def __init__(self) -> None:
        self.people: dict[str, DirectoryPerson] = {}
        self.down = False
        self.asked = 0

    def put(self, ref: str, *groups: str, person_id: str = "") -> None:
        name = ref.rpartition("/")[2]
        refs = tuple(f"group:default/{group}" for group in groups)
        self.people[ref] = DirectoryPerson(ref, person_id or f"id of {name}", name.title(), f"{name}@example.org", refs)

    def person(self, ref: str) -> DirectoryPerson | None:
        self.asked += 1
        if self.down:
            raise RetryableError("backstage-unavailable", "it can't be reached")
        return self.people.get(ref)


@pytest.fixture
def known(db: None) -> Known:
    sample.load_sample()
    loading.load_directory(RULES, system="tests")
    return Known()


def rights(user: User) -> tuple[dict[str, str], set[str]]:
    teams = dict(Membership.objects.filter(user=user).values_list("team__slug", "role"))
    return teams, set(user.groups.values_list("name", flat=True))


def look(known: Known, ref: str = NORA) -> User:
    found = identities.person(ref, known)
    assert found is not None
    return found.user


def later(seconds: float) -> None:
    """As if the groups had been read so long ago."""
    for each in Identity.objects.exclude(groups_read_at=None):
        each.groups_read_at -= dt.timedelta(seconds=seconds)
        each.save(update_fields=["groups_read_at"])


def test_who_is_first_seen_gets_an_account_and_what_the_rules_give(known: Known) -> None:
    known.put(NORA, "search", "platform", "chess-club")
    user = look(known)
    assert (user.username, user.email, user.first_name) == ("nora", "nora@example.org", "Nora")
    assert not user.has_usable_password() and not user.is_staff
    assert rights(user) == ({"search": "member"}, {"platform-approvers"})
    events = AuditEvent.objects.filter(verb__in=["person.create", "identity.rights"], data__ref=NORA)
    assert [(e.verb, e.data.get("given")) for e in events] == [
        ("person.create", None),
        ("identity.rights", ["member of search", "platform-approvers"]),
    ]


def test_an_equal_name_is_no_proof(known: Known) -> None:
    """There is a local Grace, an admin, who was never said to be Backstage's."""
    Identity.objects.filter(ref="user:default/grace").delete()
    known.put("user:default/grace", "search")
    user = look(known, "user:default/grace")
    assert user.username == "grace-2"
    assert rights(user) == ({"search": "member"}, set())


def test_who_was_said_to_be_the_same_is(known: Known) -> None:
    known.put("user:default/erin", "ads")
    user = look(known, "user:default/erin")
    assert user.username == "erin"
    assert rights(user) == ({"search": "member", "ads": "member"}, {"platform-approvers"}), "local rights stay"
    known.put("user:default/erin")
    later(301)
    assert rights(look(known, "user:default/erin")) == ({"search": "member"}, {"platform-approvers"})


CHANGES: list[tuple[list[str], list[str], dict[str, str], set[str], str]] = [
    (["search"], ["search"], {"search": "member"}, set(), "nothing changed"),
    (["search", "platform"], ["search"], {"search": "member"}, set(), "no approver any more"),
    (["search"], ["ads"], {"ads": "member"}, set(), "moved to another team"),
    (["search"], ["search", "search-leads"], {"search": "owner"}, set(), "became an owner"),
    (["search-leads"], ["search"], {"search": "member"}, set(), "is no owner any more"),
    (["search", "platform"], [], {}, set(), "in no group any more"),
    ([], ["platform"], {}, {"platform-approvers"}, "became an approver"),
]


@pytest.mark.parametrize(("before", "after", "teams", "groups", "reason"), CHANGES, ids=[c[4] for c in CHANGES])
def test_rights_follow_the_groups(
    known: Known, before: list[str], after: list[str], teams: dict[str, str], groups: set[str], reason: str
) -> None:
    known.put(NORA, *before)
    look(known)
    known.put(NORA, *after)
    later(301)
    assert rights(look(known)) == (teams, groups), reason


def test_groups_are_not_read_again_before_their_time(known: Known) -> None:
    known.put(NORA, "search")
    for _ in range(3):
        look(known)
    assert known.asked == 1
    later(299)
    look(known)
    assert known.asked == 1
    later(2)
    look(known)
    assert known.asked == 2


def test_while_the_directory_is_away_nothing_is_added_and_then_rights_lapse(known: Known) -> None:
    known.put(NORA, "search", "platform")
    look(known)
    known.down = True
    later(301)
    assert rights(look(known)) == ({"search": "member"}, {"platform-approvers"}), "as last read"
    later(3600)
    assert rights(look(known)) == ({}, set()), "for too long"
    assert AuditEvent.objects.filter(verb="identity.rights", data__why__icontains="too long").count() == 1
    known.down = False
    assert rights(look(known)) == ({"search": "member"}, {"platform-approvers"}), "it answers again"


def test_who_was_never_seen_is_not_let_in_while_the_directory_is_away(known: Known) -> None:
    known.down = True
    with pytest.raises(Unavailable, match="does not say who user:default/nora is"):
        identities.person(NORA, known)
    assert not User.objects.filter(username="nora").exists()


def test_who_has_left_is_out_and_comes_back_as_somebody_new(known: Known) -> None:
    known.put(NORA, "search", "platform")
    old = look(known)
    del known.people[NORA]
    later(301)
    assert identities.person(NORA, known) is None
    old.refresh_from_db()
    assert not old.is_active
    assert rights(old) == ({}, set())
    assert identities.person(NORA, known) is None, "and stays out"
    known.put(NORA, "search", person_id="another")
    assert look(known).username == "nora-2"


def test_a_name_that_is_given_to_somebody_else_inherits_nothing(known: Known) -> None:
    known.put(NORA, "search", "platform")
    old = look(known)
    known.put(NORA, "ads", person_id="somebody else")
    later(301)
    new = look(known)
    assert new.pk != old.pk
    assert rights(new) == ({"ads": "member"}, set())
    old.refresh_from_db()
    assert (old.is_active, rights(old)) == (False, ({}, set()))
    assert identities.ref_of(new) == NORA
    assert identities.ref_of(old) is None


def test_an_inactive_account_stays_out(known: Known) -> None:
    known.put(NORA, "search")
    User.objects.filter(pk=look(known).pk).update(is_active=False)
    assert identities.person(NORA, known) is None


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ('{group: "group:default/x", team: nowhere}', "there is no team 'nowhere'"),
        ('{group: "group:default/x", approvers: nobody}', "there is no approver group 'nobody'"),
        ('{group: "group:default/x"}', "names a team or approvers, one of the two"),
        ('{group: "group:default/x", team: ads, approvers: platform-approvers}', "one of the two"),
        ('{group: "x", team: ads}', "/rules/0/group"),
        ('{group: "group:default/x", team: ads, role: boss}', "/rules/0/role"),
    ],
)
def test_wrong_rules_are_refused_and_the_old_ones_stay(known: Known, rule: str, told: str) -> None:
    before = loading.directory_rules()
    text = RULES.partition("rules:")[0] + f"rules: [{rule}]"
    with pytest.raises(ServiceError) as caught:
        loading.load_directory(text, system="tests")
    assert told in caught.value.message
    assert loading.directory_rules() == before


@pytest.fixture
def loaded(transactional_db: None) -> Iterator[Known]:
    sample.load_sample()
    loading.load_directory(RULES, system="tests")
    yield Known()


@pytest.mark.slow
def test_two_first_visits_at_once_make_one_account(loaded: Known) -> None:
    loaded.put(NORA, "search")
    at_once = threading.Barrier(8)

    def visit(_: int) -> Any:
        try:
            at_once.wait(10)
            found = identities.person(NORA, loaded)
            return found.user.pk if found else None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        seen = set(pool.map(visit, range(8)))
    assert len(seen) == 1 and None not in seen
    assert User.objects.filter(username__startswith="nora").count() == 1
