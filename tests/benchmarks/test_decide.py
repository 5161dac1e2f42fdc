"""decide() with 10 and 100 rules, and the bare evaluation of as many CEL expressions."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import pytest

from portal.domain.bundle import Bundle
from portal.domain.cel import POLICY_SCHEMAS, Environment, Result
from portal.domain.decision import BudgetState, HeldLine, Inputs, RequestFacts
from portal.domain.governance import decide
from portal.domain.pricing import parse_prices
from tests.benchmarks.conftest import Size
from tests.benchmarks.timing import show, side_by_side
from tests.domain.policies import ROOT, bundle_of, guardrail, shipped, stage
from tests.sample import MODEL_SPEC

NOBODY = 'request.environment == "prod" && spec.accelerator.count * spec.replicas.max > {} && request.team != "search"'
MODELS = {"offerings": ["modeldeployments"], "kinds": ["Create"]}
PRICES = parse_prices((ROOT / "portal" / "policies" / "sample-prices.csv").read_text(), "USD").rows
RULES = (0, 10, 100)


@pytest.mark.slow
def test_decide_with_many_rules(size: Size) -> None:
    offering = shipped("modeldeployments")
    spec = offering.with_defaults(MODEL_SPEC)
    calls: dict[str, Callable[[], object]] = {}
    for count in RULES:
        bundle = _bundle(count)
        inputs = _inputs(bundle, spec)
        assert decide(inputs, offering, bundle).outcome == "Allowed"
        calls[f"decide, {count} rules"] = partial(decide, inputs, offering, bundle)
    for count in RULES[1:]:
        calls[f"bare CEL, {count} times"] = _bare(count, spec)
    timings = {timing.name: timing for timing in side_by_side(calls, rounds=size.rounds * 5, warm=20)}
    unit = timings["bare CEL, 10 times"].p50
    rows = [(t.name, f"{t.p50 * 1000:.0f}", f"{t.p95 * 1000:.0f}", f"{t.p50 / unit:.0f}") for t in timings.values()]
    show("decide(), none of whose rules matches", ("", "p50 us", "p95", "to bare CEL, 10 times"), rows)
    hundred, ten = timings["decide, 100 rules"].p50, timings["decide, 10 rules"].p50
    assert hundred < 10 * ten, "ten times the rules take less than ten times as long"
    assert hundred < 100 * timings["bare CEL, 100 times"].p50


def _bundle(count: int) -> Bundle:
    """Half guardrails and half stages, all of which are asked and none of which matches."""
    half = range(count // 2)
    return bundle_of(
        [guardrail(f"no-{number}", NOBODY.format(number), appliesTo=MODELS) for number in half],
        [stage(f"ask-{number}", NOBODY.format(number), appliesTo=MODELS) for number in half],
    )


def _inputs(bundle: Bundle, spec: dict[str, object]) -> Inputs:
    return Inputs(
        request=RequestFacts("Create", "ada", ("search",), "search", "prod", {"tier": "prod"}, "more help"),
        offering="modeldeployments",
        offering_digest=shipped("modeldeployments").digest,
        bundle_digest=bundle.digest,
        spec=spec,
        old=None,
        held=(HeldLine("acme", "gpu.l4", 2, 8), HeldLine("search", "gpu.l4", 0, 4)),
        prices=tuple(row for row in PRICES if row.sku == "gpu.l4"),
        budgets=(BudgetState("search", "USD", Decimal("0"), Decimal("20000"), Decimal("30000")),),
        approvers={"platform-approvers": 2, "finance-approvers": 2, "platform-admins": 2},
        at=dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC),
    )


def _bare(count: int, spec: dict[str, object]) -> Callable[[], object]:
    """As many evaluations of the same expression, of values that are bound already."""
    schemas = POLICY_SCHEMAS
    environment = Environment({**schemas, "spec": shipped("modeldeployments").spec_schema})
    facts = {"kind": "Create", "requester": "ada", "groups": ["search"], "team": "search", "environment": "prod"}
    bound = environment.bind(
        {
            "request": {**facts, "labels": {"tier": "prod"}, "reason": ""},
            "usage": {"gpu.l4": {"before": 0, "after": 1, "limit": 4}},
            "takes": {"gpu.l4": {"before": 0, "after": 1}},
            "cost": {"before": 0, "after": 58400, "delta": 58400, "monthly": 58400},
            "spec": spec,
        }
    )
    programs = [environment.compile(NOBODY.format(number), Result.BOOL)._compiled for number in range(count)]
    return lambda: [program.eval(bound._activation).plain_value() for program in programs]
