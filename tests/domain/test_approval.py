"""Votes: who may, what they amount to, and that nobody counts twice."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.approval import (
    Ownership,
    Vote,
    all_passed,
    count_approvers,
    open_stage,
    own_request,
    refuse_vote,
    stage_state,
    unsatisfiable,
)
from portal.domain.decision import SharedApprovers, StageDemand


def stage(code: str = "gpus", group: str = "platform", quorum: int = 1) -> StageDemand:
    return StageDemand(code, group, quorum, 72, "more than 2 GPUs")


def yes(voter: str, code: str = "gpus") -> Vote:
    return Vote(code, voter, "approve")


def no(voter: str, code: str = "gpus") -> Vote:
    return Vote(code, voter, "reject")


MINE = Ownership("Create", frozenset({"dev", "first-dev"}), frozenset({"boss"}))
QUOTA = Ownership("Quota", frozenset({"lead"}), gaining=frozenset({"lead", "dev"}))

OWN = [
    ("dev", MINE, True, "the requester"),
    ("first-dev", MINE, True, "who asked for the request that this one supersedes"),
    ("boss", MINE, True, "it is made for them"),
    ("colleague", MINE, False, "a team mate may approve what isn't theirs"),
    ("dev", QUOTA, True, "a member of the team that gains"),
    ("admin", QUOTA, False, "somebody outside that team"),
]


@pytest.mark.parametrize(("voter", "ownership", "own", "reason"), OWN)
def test_whose_request_it_is(voter: str, ownership: Ownership, own: bool, reason: str) -> None:
    assert (own_request(voter, ownership) is not None) == own, reason


STATES = [
    (1, [], "open", "nobody voted"),
    (1, [yes("a")], "passed", "the quorum is one"),
    (2, [yes("a")], "open", "one of two"),
    (2, [yes("a"), yes("b")], "passed", "two of two"),
    (2, [yes("a"), yes("a")], "open", "the same person is one person"),
    (2, [yes("a"), no("b")], "rejected", "one no ends it"),
    (1, [no("a"), yes("a")], "rejected", "a later vote doesn't overwrite an earlier one"),
    (1, [yes("a"), no("a")], "passed", "also not a yes by a no"),
    (1, [yes("a", "other")], "open", "a vote in another stage"),
]


@pytest.mark.parametrize(("quorum", "votes", "state", "reason"), STATES)
def test_what_votes_amount_to(quorum: int, votes: list[Vote], state: str, reason: str) -> None:
    assert stage_state(stage(quorum=quorum), votes) == state, reason


def test_stages_open_one_after_the_other() -> None:
    stages = [stage("first"), stage("second", "finance")]
    assert open_stage(stages, []) == stages[0]
    assert open_stage(stages, [yes("a", "second")]) == stages[0]
    assert open_stage(stages, [yes("a", "first")]) == stages[1]
    assert open_stage(stages, [no("a", "first")]) is None
    done = [yes("a", "first"), yes("b", "second")]
    assert open_stage(stages, done) is None
    assert all_passed(stages, done)
    assert not all_passed(stages, [no("a", "first")])
    assert all_passed([], [])


TWO = [stage("first"), stage("second", "finance", 2)]
REFUSALS = [
    ("ann", {"platform"}, [], None, "an approver of the open stage"),
    ("ann", {"finance"}, [], "not-an-approver", "an approver of a later stage"),
    ("ann", set(), [], "not-an-approver", "nobody in particular, superusers included"),
    ("dev", {"platform"}, [], "own-request", "the requester, through a group (case 12)"),
    ("boss", {"platform", "finance"}, [], "own-request", "whom it is made for, through two groups"),
    ("ann", {"platform", "finance"}, [yes("ann", "first")], "already-voted", "nobody fills two stages"),
    ("bob", {"finance"}, [yes("ann", "first")], None, "the second stage is open now"),
    ("bob", {"finance"}, [yes("ann", "first"), yes("bob", "second")], "already-voted", "no second vote"),
    ("bob", {"finance"}, [no("ann", "first")], "no-open-stage", "it is rejected already"),
]


@pytest.mark.parametrize(("voter", "groups", "votes", "code", "reason"), REFUSALS)
def test_who_may_vote_now(voter: str, groups: set[str], votes: list[Vote], code: str | None, reason: str) -> None:
    refusal = refuse_vote(voter, groups, TWO, votes, MINE)
    assert (refusal.code if refusal else None) == code, reason


SATISFIABLE = [
    ([stage(quorum=2)], {"platform": 2}, [], 0, "just enough"),
    ([stage(quorum=2)], {"platform": 1}, [], 1, "a group of one for two (case 22)"),
    ([stage()], {}, [], 1, "no such group"),
    ([stage("a"), stage("b", quorum=2)], {"platform": 2}, [], 1, "two stages of a group need three people"),
    ([stage("a"), stage("b", "finance")], {"platform": 1, "finance": 1}, [], 0, "two people"),
    (
        [stage("a"), stage("b", "finance")],
        {"platform": 1, "finance": 1},
        [SharedApprovers(("finance", "platform"), 1)],
        1,
        "one person in both groups is not two people",
    ),
    (
        [stage("a", quorum=2), stage("b", "finance")],
        {"platform": 1, "finance": 0},
        [],
        2,
        "both are named, and not once more together",
    ),
    ([], {}, [], 0, "nobody to ask"),
]


@pytest.mark.parametrize(("stages", "approvers", "shared", "count", "reason"), SATISFIABLE)
def test_stages_that_cannot_be_filled(
    stages: list[StageDemand], approvers: dict[str, int], shared: list[SharedApprovers], count: int, reason: str
) -> None:
    found = unsatisfiable(stages, approvers, shared)
    assert len(found) == count, reason
    assert {r.code for r in found} <= {"stage-unsatisfiable"}


def test_the_message_says_who_would_be_needed() -> None:
    (reason,) = unsatisfiable([stage("prod-change", "platform-approvers", 2)], {"platform-approvers": 1})
    assert reason.message == (
        "prod-change needs 2 different people of platform-approvers who may vote on this request (nobody votes on "
        "their own); there is 1. Ask a platform admin to add 1 to platform-approvers, or to lower the quorum"
    )


def test_ones_own_request_is_not_counted_and_overlaps_are() -> None:
    members = {"platform": ["dev", "ann", "bob"], "finance": ["ann", "boss", "eve"], "empty": []}
    approvers, shared = count_approvers(members, MINE)
    assert approvers == {"platform": 2, "finance": 2, "empty": 0}
    assert shared == (SharedApprovers(("finance", "platform"), 1),)


PEOPLE = st.dictionaries(
    st.sampled_from(["ann", "bob", "cy", "dan"]),
    st.sets(st.sampled_from(["platform", "finance", "security"])),
    max_size=4,
)
STAGES = st.lists(
    st.tuples(st.sampled_from(["platform", "finance", "security"]), st.integers(1, 2)), min_size=1, max_size=3
).map(lambda rows: [stage(f"s{i}", group, quorum) for i, (group, quorum) in enumerate(rows)])


@given(PEOPLE, STAGES)
def test_satisfiable_means_that_some_way_of_voting_passes_every_stage(
    people: dict[str, set[str]], stages: list[StageDemand]
) -> None:
    members = {g: [p for p, groups in people.items() if g in groups] for g in ("platform", "finance", "security")}
    approvers, shared = count_approvers(members, Ownership("Create", frozenset({"dev"})))
    assert bool(unsatisfiable(stages, approvers, shared)) == (not some_way(people, stages, []))


def some_way(people: dict[str, set[str]], stages: list[StageDemand], votes: list[Vote]) -> bool:
    """Try everything by refuse_vote alone."""
    if all_passed(stages, votes):
        return True
    here = open_stage(stages, votes)
    assert here is not None
    owner = Ownership("Create", frozenset({"dev"}))
    can = [p for p in sorted(people) if refuse_vote(p, people[p], stages, votes, owner) is None]
    return any(some_way(people, stages, [*votes, yes(person, here.code)]) for person in can)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["approve", "reject"])), max_size=8))
def test_votes_that_were_let_in_count_each_person_once(tries: list[tuple[str, str]]) -> None:
    stages = [stage("first", quorum=2), stage("second", quorum=1)]
    votes: list[Vote] = []
    for voter, answer in tries:
        if refuse_vote(voter, {"platform"}, stages, votes, MINE) is None:
            here = open_stage(stages, votes)
            assert here is not None
            votes.append(yes(voter, here.code) if answer == "approve" else no(voter, here.code))
    assert max(Counter(v.voter for v in votes).values(), default=0) <= 1
    if all_passed(stages, votes):
        assert len(votes) == 3
