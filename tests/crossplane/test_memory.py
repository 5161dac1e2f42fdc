"""What the function remembers of its answers, and what it makes of a claim that does not show them."""

from __future__ import annotations

from typing import Any

import pytest
from composition_function.contract import Composed, Condition, Outcome
from composition_function.memory import LAG_SECONDS, REFUSE_SECONDS, Memory
from composition_function.slots import Placement, Slot, Step

SLOT = Slot("eu-west-1", "l4")
BOUND = Outcome(
    ready=False,
    resources={"main": Composed({})},
    status={"placement": {"cluster": "eu-west-1", "pool": "l4"}},
    conditions=[Condition("Placed", True, "Placed", "runs in eu-west-1/l4")],
    placement=Placement(Step.BOUND, SLOT),
)
SHOWN = [
    {"type": "Placed", "status": "True", "reason": "Placed", "message": "runs in eu-west-1/l4"},
    {"type": "Ready", "status": "False"},
]
BEFORE = [{"type": "Placed", "status": "False", "reason": "Reserved"}, {"type": "Ready", "status": "False"}]
FAILING = {"type": "Synced", "status": "False"}


def claim(conditions: list[Any], refs: bool, uid: str = "u") -> dict[str, Any]:
    """As it is handed over."""
    placement = {"cluster": "eu-west-1", "pool": "l4"}
    spec = {"crossplane": {"resourceRefs": [{"name": "main"}]}} if refs else {}
    return {"metadata": {"uid": uid}, "spec": spec, "status": {"placement": placement, "conditions": conditions}}


@pytest.mark.parametrize(
    ("handed", "after", "old", "reason"),
    [
        (claim(SHOWN, True), 0.1, False, "it shows the answer"),
        (claim(BEFORE, False), 0.1, True, "neither what was composed nor what was said"),
        (claim(BEFORE, True), 0.1, True, "references were written, conditions not yet"),
        (claim(BEFORE, True), REFUSE_SECONDS, False, "the answer may never have been written"),
        (claim(SHOWN, False), REFUSE_SECONDS, True, "what was composed would be forgotten"),
        (claim(SHOWN, False), LAG_SECONDS, False, "by now it is known to be gone"),
        (claim([*BEFORE, FAILING], False), 0.1, False, "writing fails, and that is said"),
        (claim(BEFORE, False, uid="other"), 0.1, False, "nothing was answered to it"),
        (claim(BEFORE, False, uid=""), 0.1, False, "it is nobody"),
    ],
)
def test_a_claim_as_it_was_before_the_last_answer_is_known(
    handed: dict[str, Any], after: float, old: bool, reason: str
) -> None:
    now = 1000.0
    memory = Memory(lambda: now)
    memory.keep(claim(BEFORE, False), BOUND)
    now += after
    assert memory.is_old(handed, {}) is old, reason


def test_a_placement_is_remembered_for_a_while() -> None:
    now = 1000.0
    memory = Memory(lambda: now)
    memory.keep(claim(BEFORE, False), BOUND)
    assert memory.placement(claim(BEFORE, False)) == BOUND.placement
    now += LAG_SECONDS
    assert memory.placement(claim(BEFORE, False)) is None
