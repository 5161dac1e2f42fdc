"""Quota sums: which lines fail, all of them, and with which words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain.decision import HeldLine, UsageLine
from portal.domain.quota import check_change, check_usage, fits, tightest, usage_lines

H100 = "gpu.h100-80gb"


def test_the_message_says_what_would_have_fitted() -> None:
    lines = usage_lines("search", {H100: 4}, [HeldLine("search", H100, held=6, limit=8)])
    (reason,) = check_usage("search", lines)
    assert reason.code == "quota-exceeded"
    assert reason.message == (
        "search holds 6 of 8 gpu.h100-80gb; you asked for 4, up to 2 fit. Ask for a quota of 10 or free some"
    )


def test_a_group_above_is_not_ones_own_to_ask_for() -> None:
    lines = usage_lines("search", {H100: 4}, [HeldLine("acme", H100, held=6, limit=8), HeldLine("search", H100, 0, 8)])
    (reason,) = check_usage("search", lines)
    assert reason.message == (
        "acme, the group above search, holds 6 of 8 gpu.h100-80gb; you asked for 4, up to 2 fit. "
        "Its members or a platform admin can ask for a quota of 10"
    )


CASES = [
    ([("search", H100, 4, 8)], {H100: 4}, [], "exactly the limit fits"),
    ([("search", H100, 5, 8)], {H100: 4}, ["quota-exceeded"], "one above does not"),
    ([("search", H100, 9, 8)], {H100: 0}, [], "asking for nothing fits where too much is held"),
    ([("search", H100, 0, 0)], {H100: 1}, ["quota-exceeded"], "a limit of 0 is a limit"),
    ([("search", H100, 0, None)], {H100: 1}, ["quota-missing"], "no limit is not a free pass"),
    ([], {H100: 1}, ["quota-missing"], "no row at all is not a free pass"),
    ([("search", "gpu.l4", 0, 9)], {H100: 1}, ["quota-missing"], "another dimension's row doesn't help"),
    ([("org", H100, 8, 8), ("search", H100, 0, 8)], {H100: 1}, ["quota-exceeded"], "the parent group is full"),
    ([("org", H100, 8, 8), ("search", H100, 8, 8)], {H100: 1}, ["quota-exceeded"] * 2, "both lines are named"),
    (
        [("search", "gpu.l4", 0, 9), ("search", H100, 8, 8), ("search", "vectordb.memory_gib", 64, 64)],
        {"gpu.l4": 1, H100: 1, "vectordb.memory_gib": 8},
        ["quota-exceeded"] * 2,
        "the first is fine and the other two are named (case 25)",
    ),
]


@pytest.mark.parametrize(("held", "demand", "codes", "reason"), CASES)
def test_every_failing_line_is_named(
    held: list[tuple[str, str, int, int | None]], demand: dict[str, int], codes: list[str], reason: str
) -> None:
    lines = usage_lines("search", demand, [HeldLine(*row) for row in held])
    assert [r.code for r in check_usage("search", lines)] == codes, reason


def test_a_full_line_says_that_none_fits() -> None:
    (reason,) = check_usage("search", [UsageLine("search", H100, before=9, after=10, limit=8)])
    assert "none fits. Ask for a quota of 10" in reason.message


def test_a_negative_demand_is_refused_and_never_frees_quota() -> None:
    with pytest.raises(ValueError, match="-3 gpu"):
        usage_lines("search", {H100: -3}, [HeldLine("search", H100, 6, 8)])


ROWS = st.builds(
    HeldLine,
    team=st.sampled_from(["org", "dept", "search"]),
    dimension=st.sampled_from(["a", "b"]),
    held=st.integers(0, 20),
    limit=st.none() | st.integers(0, 20),
)


@given(st.lists(ROWS, max_size=6), st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(0, 20)))
def test_without_a_refusal_no_line_overshoots(rows: list[HeldLine], demand: dict[str, int]) -> None:
    lines = usage_lines("search", demand, rows)
    refused = check_usage("search", lines)
    assert len(refused) == sum(not fits(line) for line in lines)
    assert {line.dimension for line in lines} == set(demand), "each dimension that is asked for has a line"
    if not refused:
        for line in lines:
            asked = line.after - line.before
            assert asked == demand[line.dimension]
            assert asked == 0 or (line.limit is not None and line.before + asked <= line.limit)


def test_the_tightest_line_of_a_dimension_is_the_one_with_least_room() -> None:
    lines = [UsageLine("org", "a", 1, 2, 9), UsageLine("search", "a", 1, 2, 3), UsageLine("search", "b", 0, 1, None)]
    found = tightest(lines)
    assert (found["a"].team, found["b"].limit) == ("search", None)
    assert tightest([UsageLine("org", "a", 1, 2, 9), UsageLine("search", "a", 0, 1, None)])["a"].limit is None


CHANGES = [
    (4, 4, 0, ["quota-unchanged"], "no change is not a change"),
    (4, 8, 4, [], "a raise"),
    (None, 8, 0, [], "the first limit"),
    (None, 0, 0, [], "a first limit of 0 says that it was thought of"),
    (8, 4, 4, [], "down to what is held"),
    (8, 3, 4, ["quota-below-held"], "below what is held"),
    (None, 3, 6, ["quota-below-held"], "a first limit must cover what is held under a group's"),
]


@pytest.mark.parametrize(("old", "new", "held", "codes", "reason"), CHANGES)
def test_a_quota_change(old: int | None, new: int, held: int, codes: list[str], reason: str) -> None:
    found = check_change("search", H100, old, new, [HeldLine("search", H100, held, old)])
    assert [r.code for r in found] == codes, reason


def test_a_quota_above_its_parent_is_told_not_refused() -> None:
    found = check_change("search", H100, 2, 16, [HeldLine("org", H100, 2, 8), HeldLine("search", H100, 2, 2)])
    assert [(r.code, r.effect) for r in found] == [("quota-above-parent", "note")]
    assert "org, the group above search, has only 8" in found[0].message
    assert "Its members or a platform admin can ask for more" in found[0].message
    assert check_change("search", H100, 2, 8, [HeldLine("org", H100, 2, 8), HeldLine("search", H100, 2, 2)]) == ()
