"""What is decided of a change: by its difference from what its instance holds and costs, and by the old spec."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from portal.domain.bundle import Bundle
from portal.domain.decision import BudgetState, Decision, HeldLine, from_json, to_json
from portal.domain.governance import decide
from tests.domain.policies import bundle_of, default_bundle, guardrail, shipped
from tests.domain.test_governance import L4, QDRANT, budget, codes, inputs

MODELS = ["modeldeployments"]


def gpus(count: int, **more: Any) -> dict[str, Any]:
    return {**L4, "replicas": {"min": 1, "max": count}, **more}


def changed(
    old: dict[str, Any],
    new: dict[str, Any],
    own: int,
    held: int = 0,
    limit: int = 4,
    bundle: Bundle | None = None,
    lines: tuple[HeldLine, ...] = (),
    **more: Any,
) -> Decision:
    """The decision on a change of an instance that holds `own` L4 and pays for them; others of the team hold `held`."""
    facts = {"kind": "Change", "old": shipped("modeldeployments").with_defaults(old), **more}
    facts["held"] = lines or (HeldLine("search", "gpu.l4", held, limit, own),)
    made = msgspec.structs.replace(inputs(spec=new, **facts), committed=Decimal("584.00") * own)
    return decide(made, shipped("modeldeployments"), bundle or default_bundle())


CASES: list[tuple[dict[str, Any], str, list[str], tuple[int, int], str]] = [
    ({"old": gpus(1), "new": gpus(2), "own": 1}, "Allowed", [], (1, 2), "one more"),
    ({"old": gpus(4), "new": gpus(3), "own": 4}, "Allowed", [], (4, 3), "less needs nobody, though it is more than 2"),
    ({"old": gpus(2), "new": gpus(3), "own": 2}, "NeedsApproval", ["gpu-count"], (2, 3), "more than 2, and more"),
    (
        {"old": gpus(1), "new": gpus(3), "own": 1, "held": 2},
        "Denied",
        ["quota-exceeded", "gpu-count"],
        (3, 5),
        "no more fits",
    ),
    ({"old": gpus(4), "new": gpus(3), "own": 4, "limit": 2}, "Allowed", [], (4, 3), "less fits where too much is held"),
    (
        {"old": gpus(2), "new": gpus(2, suspend=True), "own": 2, "kind": "Suspend"},
        "Allowed",
        [],
        (2, 0),
        "suspended, it gives back what it held",
    ),
    (
        {"old": gpus(4, suspend=True), "new": gpus(4), "own": 0, "kind": "Resume"},
        "Allowed",
        [],
        (0, 4),
        "what was approved is resumed without being asked again",
    ),
    (
        {"old": gpus(2, suspend=True), "new": gpus(4, suspend=True), "own": 0},
        "NeedsApproval",
        ["gpu-count"],
        (0, 0),
        "to change what sleeps is no way around the approval",
    ),
    (
        {"old": gpus(1), "new": gpus(1, contextLength=8192), "own": 1, "environment": "prod"},
        "NeedsApproval",
        ["production-model"],
        (1, 1),
        "in prod two people look at every change",
    ),
]


@pytest.mark.parametrize(("given", "outcome", "asked", "usage", "reason"), CASES)
def test_a_change_is_judged_by_what_it_changes(
    given: dict[str, Any], outcome: str, asked: list[str], usage: tuple[int, int], reason: str
) -> None:
    found = changed(**given)
    assert found.outcome == outcome, reason
    assert codes(found, "deny") + codes(found, "approve") == asked, reason
    lines = [(line.before, line.after) for line in found.usage if line.dimension == "gpu.l4"]
    assert lines == ([usage] if usage != (0, 0) else []), reason


SLICES: list[tuple[int, int, list[str], str]] = [
    (1_000_000, 7_000_000, [], "61 GiB are within what is approved at once"),
    (7_000_000, 8_000_000, ["large-database"], "a slice of 8 GiB that crosses the line is asked about"),
    (8_000_000, 9_000_000, ["large-database"], "and so is each slice after it"),
    (9_000_000, 8_000_000, [], "less is not, though it is more than 64"),
]


@pytest.mark.parametrize(("before", "after", "asked", "reason"), SLICES)
def test_a_database_does_not_grow_past_the_line_in_slices(
    before: int, after: int, asked: list[str], reason: str
) -> None:
    old, new = ({**QDRANT, "vectors": count} for count in (before, after))
    own = shipped("vectordatabases").measure(old)["vectordb.memory_gib"]
    facts = inputs(
        spec=new,
        kind="Change",
        offering="vectordatabases",
        old=shipped("vectordatabases").with_defaults(old),
        held=(HeldLine("search", "vectordb.memory_gib", 0, 512, own),),
    )
    found = decide(facts, shipped("vectordatabases"), default_bundle())
    assert codes(found, "approve") == asked, reason


def test_another_class_gives_one_dimension_back_and_takes_another() -> None:
    new = gpus(1, accelerator={"class": "h100-80gb", "count": 1})
    lines = (HeldLine("search", "gpu.h100-80gb", 2, 8), HeldLine("search", "gpu.l4", 0, 4, 2))
    found = changed(gpus(2), new, 2, lines=lines)
    assert [(line.dimension, line.before, line.after) for line in found.usage] == [
        ("gpu.h100-80gb", 2, 3),
        ("gpu.l4", 2, 0),
    ]


def test_the_budget_counts_the_difference() -> None:
    """584 of 1,168 committed are this instance's own; the second GPU brings it to the line and not over."""
    exactly = (BudgetState("search", "USD", Decimal("584.00"), Decimal("1752.00"), Decimal("1752.00")),)
    found = changed(gpus(1), gpus(2), 1, budgets=exactly)
    assert [(line.before, line.after) for line in found.budgets] == [(Decimal("1168.00"), Decimal("1752.00"))]
    assert found.outcome == "Allowed"
    over = changed(gpus(1), gpus(2), 1, budgets=(budget("584.01", "1752", "1752"),))
    assert codes(over) == ["budget-exceeded"]
    less = changed(gpus(2), gpus(1), 2, budgets=(budget("5000", "100", "200"),))
    assert less.outcome == "Allowed", "less fits where too much is committed"


@pytest.mark.parametrize(
    ("when", "matches", "reason"),
    [
        ("cost.delta == 58400", True, "one L4 more a month, in cents"),
        ("cost.before == 58400 && cost.after == 116800", True, "the team's run rate with this instance's in it"),
        ('usage["gpu.l4"].after - usage["gpu.l4"].before == 1', True, "the difference"),
        ('request.kind == "Change" && spec.replicas.max > old.replicas.max', True, "the old spec is there"),
        ('takes["gpu.l4"].before == 1 && takes["gpu.l4"].after == 2', True, "the instance alone"),
        ("cost.monthly == 116800", True, "what it costs in all"),
        ("spec.model == old.model && spec.regions == old.regions", True, "objects and lists are compared as a whole"),
        ("spec.model != old.model", False, "nothing changed there"),
    ],
)
def test_rules_see_the_difference_and_the_old_spec(when: str, matches: bool, reason: str) -> None:
    rules = bundle_of([guardrail("seen", when, appliesTo={"offerings": MODELS, "kinds": ["Change"]})])
    assert codes(changed(gpus(1), gpus(2), 1, bundle=rules)) == (["seen"] if matches else []), reason


@pytest.mark.parametrize(
    ("when", "outcome", "reason"),
    [
        ("old.replicas.max > 1", ["policy-error"], "nothing was there before: never a silent 0"),
        ("has(old.regions)", ["policy-error"], "nor a silent no"),
        ('request.kind != "Create" && old.replicas.max > 1', [], "who asks for the kind first is safe"),
    ],
)
def test_a_rule_that_reads_the_old_spec_of_a_creation_fails_closed(when: str, outcome: list[str], reason: str) -> None:
    rules = bundle_of([guardrail("seen", when, appliesTo={"offerings": MODELS})])
    made = inputs(spec=gpus(1))
    assert codes(decide(made, shipped("modeldeployments"), rules)) == outcome, reason


def test_an_old_spec_that_fits_no_more_denies_only_where_a_rule_reads_it() -> None:
    """The offering has moved on: `accelerator` was something else once."""
    old = {**gpus(1), "accelerator": "one L4"}
    made = msgspec.structs.replace(inputs(spec=gpus(1), kind="Change", old=old), offering_was="before")
    offering = shipped("modeldeployments")
    reads = bundle_of([guardrail("seen", "old.replicas.max > 9", appliesTo={"offerings": MODELS})])
    assert codes(decide(made, offering, reads)) == ["policy-error"]
    deaf = bundle_of([guardrail("seen", "spec.replicas.max > 9", appliesTo={"offerings": MODELS})])
    found = decide(made, offering, deaf)
    assert found.outcome == "Allowed"
    assert "offering-moved" in codes(found, "note")


def test_inputs_of_before_there_were_changes_are_read_as_they_were_meant() -> None:
    plain = to_json(inputs())
    for name in ("offering_was", "committed"):
        del plain[name]
    for line in plain["held"]:
        del line["own"]
    assert from_json(type(inputs()), plain) == inputs()
