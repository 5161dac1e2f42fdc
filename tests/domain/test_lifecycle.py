"""The transition table: what it allows, that it ends, and that nothing leaves an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.lifecycle import (
    FINAL,
    OPEN,
    TRANSITIONS,
    IllegalTransition,
    InstancePhase,
    RequestState,
    Verb,
    holds_quota,
    next_state,
    phase_holds_quota,
    verbs,
)

STEPS = [
    ("Draft", "ask", "Waiting", "submitted, stages demanded"),
    ("Draft", "allow", "Approved", "submitted, nobody to ask"),
    ("Draft", "deny", "Denied", "a denial is stored"),
    ("Draft", "adopt", "Done", "found on a control plane"),
    ("Waiting", "adopt", "Done", "the database was restored from before its votes"),
    ("Approved", "adopt", "Done", "the database was restored from before its delivery"),
    ("Waiting", "approve", "Approved", "the quorum is complete"),
    ("Waiting", "reject", "Rejected", "one person said no"),
    ("Waiting", "withdraw", "Withdrawn", "the requester thought again"),
    ("Waiting", "expire", "Expired", "a timeout never approves"),
    ("Waiting", "supersede", "Superseded", "a corrected request takes over"),
    ("Waiting", "deny", "Denied", "decided again"),
    ("Approved", "deliver", "Delivering", "first attempt"),
    ("Approved", "withdraw", "Withdrawn", "nothing was delivered yet"),
    ("Approved", "ask_again", "Waiting", "cost above the quote"),
    ("Approved", "deny", "Denied", "decided again"),
    ("Approved", "fail", "Failed", "it can't be delivered at all"),
    ("Delivering", "finish", "Done", "observed as asked"),
    ("Delivering", "fail", "Failed", "a terminal error"),
    ("Delivering", "supersede", "Superseded", "a later change, say a revert, is delivered before it was observed"),
]


@pytest.mark.parametrize(("state", "verb", "to", "reason"), STEPS)
def test_a_step_leads_where_the_design_says(state: str, verb: str, to: str, reason: str) -> None:
    assert next_state(state, verb) == to, reason


REFUSED = [
    ("Delivering", "withdraw", "supersede, finish, fail", "once delivery began it ends by itself"),
    (
        "Waiting",
        "deliver",
        "deny, approve, reject, withdraw, expire, supersede, ask_again, adopt",
        "not without approval",
    ),
    ("Draft", "deliver", "ask, allow, deny, withdraw, adopt", "not before it is submitted"),
    ("Denied", "approve", "this state is final", "people don't overrule a policy"),
]


@pytest.mark.parametrize(("state", "verb", "way_out", "reason"), REFUSED)
def test_a_refused_step_names_what_is_possible(state: str, verb: str, way_out: str, reason: str) -> None:
    with pytest.raises(IllegalTransition) as caught:
        next_state(state, verb)
    assert str(caught.value).startswith(f"a request in state {state} can't {verb}"), reason
    assert way_out in str(caught.value), reason


def test_an_unknown_word_is_an_error_and_not_a_step() -> None:
    with pytest.raises(ValueError, match="explode"):
        next_state("Draft", "explode")


@given(st.sampled_from(sorted(FINAL)), st.sampled_from(list(Verb)))
def test_no_verb_leaves_a_final_state(state: RequestState, verb: Verb) -> None:
    with pytest.raises(IllegalTransition):
        next_state(state, verb)


def test_final_states_are_exactly_those_without_a_way_out() -> None:
    assert frozenset(state for state in RequestState if not verbs(state)) == FINAL
    assert {"Draft", "Waiting", "Approved", "Delivering"} == OPEN


def test_each_state_is_reachable_from_draft_and_each_open_one_can_end() -> None:
    def reach(start: RequestState) -> set[RequestState]:
        found, todo = {start}, [start]
        while todo:
            here = todo.pop()
            steps = {to for (state, _), to in TRANSITIONS.items() if state == here} - found
            found |= steps
            todo += steps
        return found

    assert reach(RequestState.DRAFT) == set(RequestState)
    assert all(reach(state) & FINAL for state in OPEN)


@given(st.lists(st.sampled_from(list(Verb)), max_size=30))
def test_quota_is_never_held_before_submission_nor_after_the_end(walk: list[Verb]) -> None:
    state = RequestState.DRAFT
    for verb in walk:
        if verb in verbs(state):
            state = next_state(state, verb)
        assert holds_quota(state) == (state in OPEN and state is not RequestState.DRAFT)


def test_an_instance_holds_its_quota_until_it_is_gone() -> None:
    assert [phase for phase in InstancePhase if not phase_holds_quota(phase)] == [InstancePhase.GONE]
