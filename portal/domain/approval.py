"""Who may vote, and what votes amount to.

In charge of: the rules of voting, on plain names. Not in charge of: which stages a request needs (governance), finding
out who is in a group (services), or storing votes. People are any stable id; nobody is above these rules, superusers
and delegates included (case 12).

A person counts once per request, not once per stage: two stages are two looks at it by different people, and somebody
who sits in both groups would otherwise be all four eyes. When a request asks again its stages form a new round; give
only that round's votes, so that the same people can answer what is asked now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from portal.domain.decision import Reason, RequestKind, SharedApprovers, StageDemand

Answer = Literal["approve", "reject"]
StageState = Literal["open", "passed", "rejected"]

MAX_GROUPS = 12  # approver groups of one bundle, so that trying all sets of them stays cheap


class Vote(msgspec.Struct, frozen=True):
    """One person's answer in the stage of that code."""

    stage: str
    voter: str
    answer: Answer


class Ownership(msgspec.Struct, frozen=True):
    """Whose request it is. `requesters` has everybody in its supersede chain; `gaining` the members of the team whose
    quota or budget it changes, and nobody for the other kinds."""

    kind: RequestKind
    requesters: frozenset[str]
    made_for: frozenset[str] = frozenset()
    gaining: frozenset[str] = frozenset()


def own_request(voter: str, ownership: Ownership) -> Reason | None:
    """Why this is the voter's own request, or None when it is somebody else's."""
    if voter in ownership.requesters:
        why = "you asked for it, or for a request that it supersedes"
    elif voter in ownership.made_for:
        why = "it is made for you"
    elif voter in ownership.gaining:
        why = "you are in the team that it changes the ceiling of"
    else:
        return None
    return Reason("own-request", "deny", f"you can't vote on this request, because {why}; somebody else has to")


def stage_state(stage: StageDemand, votes: Iterable[Vote]) -> StageState:
    """`rejected` at the first no, `passed` when as many different people as the quorum said yes, else `open`."""
    answers: dict[str, Answer] = {}
    for vote in votes:
        if vote.stage == stage.code:
            answers.setdefault(vote.voter, vote.answer)  # a later vote never overwrites an earlier one
    if "reject" in answers.values():
        return "rejected"
    return "passed" if len(answers) >= stage.quorum else "open"


def open_stage(stages: Sequence[StageDemand], votes: Sequence[Vote]) -> StageDemand | None:
    """The stage that is voted on now: the first that isn't passed, since stages go in order. None when all are passed
    or one is rejected."""
    for stage in stages:
        state = stage_state(stage, votes)
        if state != "passed":
            return stage if state == "open" else None
    return None


def all_passed(stages: Sequence[StageDemand], votes: Sequence[Vote]) -> bool:
    """Whether nobody has to be asked any more."""
    return all(stage_state(stage, votes) == "passed" for stage in stages)


def refuse_vote(
    voter: str, groups: Collection[str], stages: Sequence[StageDemand], votes: Sequence[Vote], ownership: Ownership
) -> Reason | None:
    """Why this person, a member of `groups`, can't vote in the open stage now, or None when they can.

    Codes: own-request, no-open-stage, already-voted, not-an-approver. An earlier vote is never overwritten.
    """
    if own := own_request(voter, ownership):
        return own
    stage = open_stage(stages, votes)
    if stage is None:
        return Reason("no-open-stage", "deny", "no stage of this request is open for votes")
    if any(vote.voter == voter for vote in votes):
        message = "you have voted on this request, and each person counts once; somebody else has to vote now"
        return Reason("already-voted", "deny", message)
    if stage.group not in groups:
        return Reason("not-an-approver", "deny", f"stage {stage.code} is for members of {stage.group}; ask one of them")
    return None


def count_approvers(
    members: Mapping[str, Collection[str]], ownership: Ownership
) -> tuple[dict[str, int], tuple[SharedApprovers, ...]]:
    """What Inputs.approvers and Inputs.shared_approvers say, from the members of each approver group of a bundle."""
    groups_of: dict[str, list[str]] = {}
    for group in sorted(members):
        for person in set(members[group]):
            if own_request(person, ownership) is None:
                groups_of.setdefault(person, []).append(group)
    approvers = {group: sum(group in found for found in groups_of.values()) for group in members}
    several = Counter(tuple(found) for found in groups_of.values() if len(found) > 1)
    return approvers, tuple(SharedApprovers(groups, people) for groups, people in sorted(several.items()))


def unsatisfiable(
    stages: Sequence[StageDemand], approvers: Mapping[str, int], shared: Sequence[SharedApprovers] = ()
) -> tuple[Reason, ...]:
    """A `stage-unsatisfiable` denial for each smallest set of stages that these people can't fill (case 22).

    Each person counts once, so n stages together need the sum of their quorums in different people (Hall's condition:
    it is enough that this holds for every set of the groups).
    """
    needed: Counter[str] = Counter()
    for stage in stages:
        needed[stage.group] += stage.quorum
    reasons: list[Reason] = []
    failed: list[set[str]] = []
    for size in range(1, len(needed) + 1):
        for groups in combinations(sorted(needed), size):
            wanted, there = sum(needed[group] for group in groups), _people(groups, approvers, shared)
            if there < wanted and not any(smaller <= set(groups) for smaller in failed):
                failed.append(set(groups))
                reasons.append(_unsatisfiable(groups, wanted, there, stages))
    return tuple(reasons)


def _people(groups: Collection[str], approvers: Mapping[str, int], shared: Iterable[SharedApprovers]) -> int:
    """How many different people are in at least one of the groups: each once, however many of them they are in."""
    counted = sum(approvers.get(group, 0) for group in groups)
    twice = sum(max(0, len(set(groups) & set(s.groups)) - 1) * s.people for s in shared)
    return counted - twice


def _unsatisfiable(groups: Sequence[str], wanted: int, there: int, stages: Iterable[StageDemand]) -> Reason:
    codes = " and ".join(stage.code for stage in stages if stage.group in groups)
    message = (
        f"{codes} needs {wanted} different {'person' if wanted == 1 else 'people'} of {' and '.join(groups)} who may "
        f"vote on this request (nobody votes on their own); there {'is' if there == 1 else 'are'} {there}. "
        f"Ask a platform admin to add {wanted - there} to {' or '.join(groups)}, or to lower the quorum"
    )
    return Reason("stage-unsatisfiable", "deny", message)
