"""What one may not see is not there: every list and every address, for each kind of person."""

from __future__ import annotations

import pytest

from tests.api.conftest import As, Unwritten
from tests.sample import member_of, model_body, quota_body
from tests.world import OUTSIDER, OWN_APPROVER, SUPERUSER, ready, submit, work

SEEN = [
    # who, requests they see, why
    ("ada", {"search-dev", "search-prod"}, "of the team"),
    ("ben", {"search-dev", "search-prod"}, "of the team"),
    ("carol", {"ads-dev"}, "of the other team"),
    ("dave", set(), "of a third team"),
    (OUTSIDER, {"for-zoe"}, "of no team: only what is made for them"),
    ("frank", {"search-prod", "ads-quota"}, "an approver: only what asks their groups"),
    ("heidi", {"search-prod"}, "an approver of another group"),
    ("grace", {"search-dev", "search-prod", "ads-dev", "ads-quota", "for-zoe"}, "an admin sees all"),
    ("olivia", {"search-dev", "search-prod", "ads-dev", "ads-quota", "for-zoe"}, "an auditor sees all"),
]


@pytest.fixture
def ids(world: object) -> dict[str, str]:
    """Five requests, by name."""
    with member_of("search", OUTSIDER):
        for_zoe = submit("ada", model_body("four", madeFor=OUTSIDER))
    made = {
        "search-dev": submit("ada", model_body("one")),
        "search-prod": submit("ben", model_body("two", environment="prod")),
        "ads-dev": submit("carol", model_body("three", team="ads")),
        "ads-quota": submit("carol", quota_body(2)),
        "for-zoe": for_zoe,
    }
    return {name: str(request.pk) for name, request in made.items()}


@pytest.mark.parametrize("who, expected, reason", SEEN, ids=[who for who, *_ in SEEN])
def test_requests(call_as: As, ids: dict[str, str], who: str, expected: set[str], reason: str) -> None:
    if who in ("ada", "ben"):
        expected = expected | {"for-zoe"}
    if who == "carol":
        expected = expected | {"ads-quota"}
    if who == "frank":
        expected = expected - {"ads-quota"}  # asks platform-admins
    caller = call_as(who)
    listed = {item["id"] for item in caller.get("requests/").json["items"]}
    assert listed == {ids[name] for name in expected}, reason
    for name, request in ids.items():
        status = 200 if name in expected else 404
        for path in ("", "timeline/"):
            assert caller.get(f"requests/{request}/{path}").status == status, (name, path, reason)


def test_verbs_on_what_one_does_not_see(call_as: As, ids: dict[str, str], nothing_written: Unwritten) -> None:
    with nothing_written():
        for verb in ("approve", "reject", "withdraw"):
            answer = call_as("dave").post(f"requests/{ids['search-prod']}/{verb}/")
            assert (answer.status, answer.code) == (404, "not-found")


def test_instances_follow_their_team(call_as: As) -> None:
    instance = ready("ada", model_body()).pk
    for who, status in [("ben", 200), ("olivia", 200), ("carol", 404), (OUTSIDER, 404), ("frank", 404)]:
        assert call_as(who).get(f"instances/{instance}/").status == status, who
        listed = call_as(who).get("instances/").json["items"]
        assert [item["id"] for item in listed] == ([str(instance)] if status == 200 else []), who


def test_the_audit_log_follows_requests_and_instances(call_as: As, ids: dict[str, str]) -> None:
    work()
    mine = call_as("carol").get("audit/", limit=200).json["items"]
    assert {event["team"] for event in mine} == {"ads"}
    everything = call_as("olivia").get("audit/", limit=200).json["items"]
    assert {event["team"] for event in everything} >= {"ads", "search", None}
    assert call_as(OUTSIDER).get("audit/", request=ids["ads-dev"]).json["items"] == []


@pytest.mark.parametrize(
    "who, teams",
    [
        ("ada", {"acme", "search"}),
        ("carol", {"acme", "ads"}),
        (OUTSIDER, set()),
        ("olivia", {"acme", "search", "ads", "research"}),
    ],
)
def test_teams_quotas_and_budgets_of_one_s_own_and_above(call_as: As, who: str, teams: set[str]) -> None:
    caller = call_as(who)
    assert {row["slug"] for row in caller.get("teams/").json["items"]} == teams
    assert {row["team"] for row in caller.get("quotas/").json["items"]} == teams
    assert {row["team"] for row in caller.get("budgets/").json["items"]} == teams


def waiting(call_as: As, who: str) -> set[str]:
    return {item["id"] for item in call_as(who).get("requests/", waitingFor="me").json["items"]}


def test_the_inbox_holds_what_one_may_vote_on(call_as: As) -> None:
    own = str(submit(OWN_APPROVER, model_body("one", environment="prod")).pk)
    with member_of("search", "frank"):
        made_for = str(submit("ada", model_body("two", environment="prod", madeFor="frank")).pk)
    quota = str(submit("ada", quota_body(6, team="search")).pk)
    submit("ada", model_body("three"))
    expected = [
        ("erin", {made_for}, "not her own"),
        ("frank", {own}, "not what is made for him"),
        ("heidi", {own, made_for}, "an approver"),
        ("grace", {quota}, "an admin approves quotas"),
        (SUPERUSER, {own, made_for}, "an admin, but of the team that gains"),
        ("ada", set(), "in no group"),
    ]
    for who, ids, reason in expected:
        assert waiting(call_as, who) == ids, f"{who}: {reason}"
    call_as("heidi").post(f"requests/{own}/approve/")
    assert waiting(call_as, "heidi") == {made_for}, "voted already"
    call_as("frank").post(f"requests/{own}/approve/")
    assert own not in waiting(call_as, SUPERUSER), "waits no longer"


def test_the_inbox_is_what_votes_are_taken_for(call_as: As) -> None:
    """The filter and the vote say the same of everybody."""
    with member_of("search", "frank"):
        for_frank = str(submit("ada", model_body("two", environment="prod", madeFor="frank")).pk)
    requests = [
        str(submit(OWN_APPROVER, model_body("one", environment="prod")).pk),
        for_frank,
        str(submit("carol", quota_body(2)).pk),
        str(submit(SUPERUSER, quota_body(2, team="research")).pk),
    ]
    for who in ("ada", "carol", "erin", "frank", "heidi", "grace", "ivan", SUPERUSER):
        inbox = waiting(call_as, who)
        for request in requests:
            refused = call_as(who).post(f"requests/{request}/approve/", {"decision": 10**9})
            assert (refused.code == "decision-changed") == (request in inbox), (who, request, refused.json)
