"""One decision from inputs: every reason named, closed when in doubt, the same whenever it is made again."""

from __future__ import annotations

import copy
import datetime as dt
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal.domain.bundle import Bundle, parse_bundle
from portal.domain.decision import (
    BudgetState,
    Decision,
    HeldLine,
    Inputs,
    PriceRow,
    RequestFacts,
    RequestKind,
    SharedApprovers,
    from_json,
    to_json,
)
from portal.domain.governance import decide, delivery_check, denials_after_votes
from portal.domain.pricing import parse_prices
from tests.domain.policies import ROOT, bundle_of, default_bundle, guardrail, shipped, stage, text_of

AT = dt.datetime(2026, 12, 1, 12, tzinfo=dt.UTC)
MODELS = {"offerings": ["modeldeployments"], "kinds": ["Create"]}
PRICES = parse_prices((ROOT / "portal" / "policies" / "sample-prices.csv").read_text(), "USD").rows
APPROVERS = {"platform-approvers": 2, "finance-approvers": 1, "platform-admins": 1}

L4 = {
    "model": {"source": "hf://meta-llama/Llama-3.1-8B-Instruct", "revision": "main", "quantization": "none"},
    "contextLength": 4096,
    "concurrency": 8,
    "replicas": {"min": 1, "max": 1},
    "accelerator": {"class": "l4", "count": 1},
    "regions": [],
    "dataClassification": "internal",
}
H100 = {
    **L4,
    "replicas": {"min": 1, "max": 2},
    "accelerator": {"class": "h100-80gb", "count": 2},
    "regions": ["eu-central", "eu-west"],
    "dataClassification": "confidential",
}
QDRANT = {
    "engine": "qdrant",
    "vectors": 5_000_000,
    "dimensions": 1536,
    "precision": "float32",
    "highAvailability": False,
    "backup": {"retentionDays": 0},
    "regions": ["eu-central"],
    "dataClassification": "confidential",
}
HELD = (
    HeldLine("acme", "gpu.l4", 2, 8),
    HeldLine("search", "gpu.l4", 0, 4),
    HeldLine("search", "gpu.h100-80gb", 2, 8),
    HeldLine("search", "vectordb.memory_gib", 0, 128),
)


def budget(committed: str = "0", soft: str = "20000", hard: str = "30000", team: str = "search") -> BudgetState:
    return BudgetState(team, "USD", Decimal(committed), Decimal(soft), Decimal(hard))


def inputs(
    spec: dict[str, Any] = L4,
    kind: RequestKind = "Create",
    environment: str = "dev",
    offering: str | None = "modeldeployments",
    old: dict[str, Any] | None = None,
    held: tuple[HeldLine, ...] = HELD,
    prices: tuple[PriceRow, ...] = PRICES,
    budgets: tuple[BudgetState, ...] = (budget(),),
    approvers: dict[str, int] = APPROVERS,
    shared: tuple[SharedApprovers, ...] = (),
) -> Inputs:
    facts = RequestFacts(kind, "ada", ("search",), "search", environment, {"tier": environment}, "to try it")
    return Inputs(facts, offering, "o", "b", spec, old, held, prices, budgets, approvers, AT, shared)


def decided(bundle: Bundle | None = None, **changes: Any) -> Decision:
    made = inputs(**changes)
    return decide(made, shipped(made.offering) if made.offering else None, bundle or default_bundle())


def codes(decision: Decision, effect: str = "deny") -> list[str]:
    return [reason.code for reason in decision.reasons if reason.effect == effect]


# --- the shipped policies -----------------------------------------------------------------------------------------


def test_a_small_model_in_dev_is_allowed_at_once_and_says_why() -> None:
    found = decided()
    assert (found.outcome, found.stages) == ("Allowed", ())
    assert [(r.code, r.message) for r in found.reasons] == [
        (
            "within-policy",
            "within quota, budget and policies: search will hold 1 of 4 gpu.l4; it costs up to 584.00 USD a month",
        )
    ]
    assert found.quote is not None
    assert (found.quote.monthly, found.quote.valid_until) == (Decimal("584.00"), dt.date(2026, 12, 31))


def test_a_big_model_in_prod_waits_for_two_approvers() -> None:
    found = decided(spec=H100, environment="prod")
    assert found.outcome == "NeedsApproval"
    assert [(s.code, s.group, s.quorum) for s in found.stages] == [("production-model", "platform-approvers", 2)]
    assert found.quote is not None
    assert found.quote.monthly == Decimal("8614.00")


def test_a_database_is_allowed_at_once() -> None:
    found = decided(spec=QDRANT, offering="vectordatabases")
    assert (found.outcome, found.quote and found.quote.monthly) == ("Allowed", Decimal("215.00"))


DEMO: list[tuple[dict[str, Any], str, str | None, str]] = [
    ({"spec": {**L4, "replicas": {"min": 1, "max": 2}}}, "Allowed", None, "two GPUs are approved at once"),
    (
        {"spec": {**L4, "replicas": {"min": 1, "max": 3}}},
        "NeedsApproval",
        "up to 2 GPUs are approved at once outside prod; you asked for 3",
        "three are not",
    ),
    ({"environment": "prod"}, "NeedsApproval", "models in prod are approved by two people", "prod, even if small"),
    (
        {"spec": {**H100, "regions": []}},
        "Denied",
        "confidential data must stay in the EU; you asked for any region",
        "anywhere is not the EU",
    ),
    (
        {"spec": {**H100, "regions": ["eu-west", "us-east"], "dataClassification": "restricted"}},
        "Denied",
        "restricted data must stay in the EU; you asked for eu-west, us-east",
        "one region outside is enough",
    ),
    ({"spec": {**L4, "regions": ["us-east"]}}, "Allowed", None, "internal data may leave"),
    (
        {"spec": {**QDRANT, "highAvailability": True}, "offering": "vectordatabases"},
        "NeedsApproval",
        "databases of up to 64 GiB are approved at once; you asked for 86",
        "a large database",
    ),
    (
        {"spec": {**H100, "replicas": {"min": 1, "max": 3}}, "environment": "prod"},
        "NeedsApproval",
        "up to 10000 USD a month is approved without finance; this costs up to 12921 USD",
        "an expensive one",
    ),
    ({"budgets": (budget("0", "100", "500"),)}, "Denied", "over its hard line of 500.00 USD", "over budget"),
    (
        {"budgets": (budget("0", "100", "600"),)},
        "NeedsApproval",
        "over its soft line of 100.00 USD",
        "over the soft line",
    ),
    ({"held": (HeldLine("search", "gpu.l4", 4, 4),)}, "Denied", "search holds 4 of 4 gpu.l4", "over quota"),
    ({"held": ()}, "Denied", "search has no quota for gpu.l4", "without a quota"),
]


@pytest.mark.parametrize(("changes", "outcome", "message", "reason"), DEMO)
def test_what_the_shipped_policies_say(changes: dict[str, Any], outcome: str, message: str | None, reason: str) -> None:
    found = decided(**changes)
    assert found.outcome == outcome, f"{reason}: {found.reasons}"
    assert message is None or any(message in r.message for r in found.reasons), f"{reason}: {found.reasons}"


# --- all reasons, in doubt closed ---------------------------------------------------------------------------------


def test_every_denial_is_named_not_only_the_first() -> None:
    found = decided(
        spec={**H100, "regions": []},
        held=(HeldLine("acme", "gpu.h100-80gb", 16, 16), HeldLine("search", "gpu.h100-80gb", 8, 8)),
        budgets=(budget("0", "99999", "99999", "acme"), budget("0", "1", "2"), budget("1", "1", "1", "dept")),
    )
    assert codes(found) == [
        *("quota-exceeded", "quota-exceeded"),
        *("budget-exceeded", "budget-exceeded"),
        "sensitive-data-stays-in-eu",
    ]
    assert found.stages == ()


CLOSED = [
    (guardrail(when='usage["gpu.h200"].after > 2'), ["policy-error"], "a dimension that isn't used"),
    (guardrail(when="1 / (size(request.groups) - 1) > 0"), ["policy-error"], "a division by zero"),
    (guardrail(when='request.labels["owner"] == "x"'), ["policy-error"], "a label that isn't there"),
    (guardrail(when="cost.delta + 9223372036854775807 > 0"), ["policy-error"], "an overflow"),
    (
        {"code": "no", "when": "true", "messageExpression": 'request.labels["owner"]'},
        ["policy-error"],
        "a message that can't be made",
    ),
    (guardrail(when="has(request.labels.owner)"), [], "asking first is fine"),
    (guardrail(when="request.environment == 'dev'"), ["no"], "it applies"),
    (guardrail(when="true", appliesTo={"kinds": ["Delete"]}), [], "another kind"),
    (guardrail(when="true", appliesTo={"offerings": ["vectordatabases"]}), [], "another offering"),
    (guardrail(when="spec.regions.exists(r, r == 'x')", appliesTo=MODELS), [], "an empty list has nothing"),
]


@pytest.mark.parametrize(("rule", "denials", "reason"), CLOSED)
def test_a_rule_that_cannot_be_evaluated_denies(rule: dict[str, Any], denials: list[str], reason: str) -> None:
    found = decided(bundle_of([rule]))
    assert codes(found) == denials, reason
    assert found.outcome == ("Denied" if denials else "Allowed"), reason


def test_a_stage_that_cannot_be_evaluated_denies_and_names_the_rule() -> None:
    found = decided(bundle_of([], [stage("gpu-count", when='usage["x"].after > 1')]))
    assert (found.outcome, codes(found)) == ("Denied", ["policy-error"])
    assert "policy rule gpu-count can't be evaluated" in found.reasons[0].message


def test_a_spec_that_cannot_be_measured_is_denied() -> None:
    found = decided(spec={**L4, "replicas": {"min": 1, "max": 2**60}, "accelerator": {"class": "l4", "count": 16}})
    assert (found.outcome, codes(found)) == ("Denied", ["policy-error"])


def test_a_value_that_does_not_fit_its_type_is_denied() -> None:
    found = decided(spec={**L4, "regions": "eu"})
    assert (found.outcome, codes(found)) == ("Denied", ["policy-error"])


def test_usage_and_cost_are_seen_by_rules_as_integers() -> None:
    seen = guardrail(
        when='usage["gpu.l4"].before == 0 && usage["gpu.l4"].after == 1 && usage["gpu.l4"].limit == 4 '
        "&& cost.before == 12345 && cost.delta == 58400 && cost.after == 70745",
    )
    assert codes(decided(bundle_of([seen]), budgets=(budget("123.45"), budget("9", team="acme")))) == ["no"]


def test_the_tightest_line_is_the_one_that_rules_see() -> None:
    seen = guardrail(when='usage["gpu.l4"].limit == 8')
    held = (HeldLine("acme", "gpu.l4", 6, 8), HeldLine("search", "gpu.l4", 0, 4))
    assert codes(decided(bundle_of([seen]), held=held)) == ["no"]


def test_the_wrong_bundle_is_a_mistake_and_not_a_decision() -> None:
    with pytest.raises(ValueError, match="not compiled for"):
        decide(inputs(), shipped("modeldeployments"), parse_bundle(text_of(), [shipped("vectordatabases")]))
    with pytest.raises(ValueError, match="with its offering"):
        decide(inputs(), None, default_bundle())


# --- prices that nobody knows -------------------------------------------------------------------------------------


def test_an_unknown_price_is_reviewed_and_never_free() -> None:
    found = decided(bundle_of(), prices=())
    assert found.outcome == "NeedsApproval"
    assert [(s.code, s.group) for s in found.stages] == [("price-unknown", "finance-approvers")]
    assert found.stages[0].message == (
        "its cost is unknown, and so has to be reviewed: the price list has no price for gpu.l4 in any region"
    )
    assert found.quote is not None
    assert found.quote.monthly is None


def test_an_unknown_price_meets_every_condition_on_cost() -> None:
    bundle = bundle_of(
        [guardrail("too-dear", "cost.delta > 100000000")], [stage("expensive", "cost.after > 100000000")]
    )
    denied = decided(bundle, prices=())
    assert codes(denied) == ["too-dear"]
    assert "depends on the cost, which is unknown" in denied.reasons[1].message
    asked = decided(bundle_of([], [stage("expensive", "cost.after > 100000000")]), prices=())
    assert codes(asked, "approve") == ["price-unknown", "expensive"]
    assert decided(bundle_of([], [stage("expensive", "cost.after > 100000000")])).outcome == "Allowed"


def test_an_unknown_price_is_not_told_as_a_number() -> None:
    rule = {"code": "no", "when": "true", "messageExpression": '"this costs " + string(cost.delta)'}
    assert [r.message for r in decided(bundle_of([rule]), prices=()).reasons if r.code == "no"] == [
        "no applies; the cost is unknown"
    ]
    assert [r.message for r in decided(bundle_of([rule])).reasons] == ["this costs 58400"]


# --- approvers ----------------------------------------------------------------------------------------------------


def test_a_stage_that_nobody_could_fill_is_denied_at_once_with_who_is_missing() -> None:
    found = decided(spec=H100, environment="prod", approvers={**APPROVERS, "platform-approvers": 1})
    assert (found.outcome, codes(found)) == ("Denied", ["stage-unsatisfiable"])
    assert "production-model needs 2 different people of platform-approvers" in found.reasons[-1].message
    assert [s.code for s in found.stages] == ["production-model"]


def test_what_several_rules_ask_of_a_group_is_one_stage_with_all_their_reasons() -> None:
    rules = [
        stage("a"),
        stage("b", group="finance-approvers"),
        stage("c", quorum=2, timeoutHours=24, message="third"),
    ]
    found = decided(bundle_of([], rules))
    assert [(s.code, s.group, s.quorum, s.timeout_hours, s.message) for s in found.stages] == [
        ("a", "platform-approvers", 2, 24, "it is not wanted; third"),
        ("b", "finance-approvers", 1, 72, "it is not wanted"),
    ]
    assert codes(found, "approve") == ["a", "b", "c"]


def test_one_person_in_two_groups_is_one_person() -> None:
    bundle = bundle_of([], [stage("a"), stage("b", group="finance-approvers")])
    counts = {"platform-approvers": 1, "finance-approvers": 1}
    assert decided(bundle, approvers=counts).outcome == "NeedsApproval"
    shared = (SharedApprovers(("finance-approvers", "platform-approvers"), 1),)
    assert codes(decided(bundle, approvers=counts, shared=shared)) == ["stage-unsatisfiable"]


# --- deletions and quotas -----------------------------------------------------------------------------------------


def test_a_deletion_takes_nothing_and_costs_nothing() -> None:
    found = decided(kind="Delete", old=L4, held=(), prices=(), budgets=(budget("9", "1", "2"),))
    assert [reason.message for reason in found.reasons] == ["no policy speaks against the deletion"]
    assert (found.outcome, found.usage, found.quote, found.budgets) == ("Allowed", (), None, ())
    assert codes(found, "note") == ["within-policy"]


def test_policies_can_ask_about_a_deletion() -> None:
    bundle = bundle_of(
        [], [stage(when="spec.dataClassification == 'internal'", appliesTo={**MODELS, "kinds": ["Delete"]})]
    )
    assert decided(bundle, kind="Delete", old=L4).outcome == "NeedsApproval"
    assert decided(bundle).outcome == "Allowed"


def quota_change(limit: Any, old: int | None = 8, held: int = 6, **more: Any) -> Decision:
    before = None if old is None else {"dimension": "gpu.l4", "limit": old}
    lines = (HeldLine("search", "gpu.l4", held, old),)
    spec = {"dimension": "gpu.l4", "limit": limit}
    return decided(kind="Quota", offering=None, environment="", spec=spec, old=before, held=lines, budgets=(), **more)


QUOTAS = [
    (12, 8, "NeedsApproval", [], "a raise"),
    (6, 8, "NeedsApproval", [], "down to what is held"),
    (12, None, "NeedsApproval", [], "a first quota"),
    (5, 8, "Denied", ["quota-below-held"], "below what is held"),
    (8, 8, "Denied", ["quota-unchanged"], "no change"),
    (-1, 8, "Denied", ["quota-invalid"], "less than nothing"),
    ("12", 8, "Denied", ["quota-invalid", "policy-error"], "a number sent as a text"),
    (True, 8, "Denied", ["quota-invalid"], "a truth is no number"),
]


@pytest.mark.parametrize(("limit", "old", "outcome", "denials", "reason"), QUOTAS)
def test_a_quota_change_never_passes_unseen(
    limit: Any, old: int | None, outcome: str, denials: list[str], reason: str
) -> None:
    found = quota_change(limit, old)
    assert (found.outcome, set(codes(found)) >= set(denials[:1]), bool(codes(found))) == (
        outcome,
        True,
        bool(denials),
    ), reason
    if outcome == "NeedsApproval":
        assert [(s.code, s.group) for s in found.stages] == [("quota-change", "platform-admins")]
        assert found.reasons[-1].message == f"the quota of search for gpu.l4 would go from {old or 'none'} to {limit}"


def test_a_bundle_may_have_stages_of_its_own_for_quotas() -> None:
    large = stage("large-quota", "spec.limit > 10", group="platform-admins", quorum=2, appliesTo={"kinds": ["Quota"]})
    two = {"platform-admins": 2}
    assert [s.code for s in quota_change(12, bundle=bundle_of([], [large]), approvers=two).stages] == ["large-quota"]
    assert [s.code for s in quota_change(9, bundle=bundle_of([], [large]), approvers=two).stages] == ["quota-change"]


def test_nobody_left_to_approve_a_quota_is_said_at_once() -> None:
    assert codes(quota_change(12, approvers={})) == ["stage-unsatisfiable"]


# --- again --------------------------------------------------------------------------------------------------------


def dearer(factor: str) -> tuple[PriceRow, ...]:
    return tuple(
        msgspec.structs.replace(row, price=row.price * Decimal(factor)) if row.price else row for row in PRICES
    )


AGAIN: list[tuple[dict[str, Any], list[str], list[str], str]] = [
    ({}, [], [], "nothing changed"),
    ({"prices": dearer("0.5")}, [], [], "cheaper is within the quote"),
    ({"prices": dearer("1.01")}, ["cost-above-quote"], [], "dearer than quoted"),
    ({"prices": ()}, ["new-stage", "new-stage", "cost-above-quote"], [], "the price is gone"),
    ({"budgets": (budget("15000"),)}, ["new-stage"], [], "over the soft line now"),
    ({"budgets": (budget("25000"),)}, [], ["budget-exceeded"], "over the hard line now: denied, not asked"),
    ({"approvers": {"platform-approvers": 1}}, [], [], "an approver left after voting"),
    ({"held": (HeldLine("search", "gpu.h100-80gb", 8, 8),)}, [], ["quota-exceeded"], "the quota is gone"),
]


@pytest.mark.parametrize(("changes", "changed", "denials", "reason"), AGAIN)
def test_votes_stand_until_a_stage_is_new_or_the_cost_is_above_the_quote(
    changes: dict[str, Any], changed: list[str], denials: list[str], reason: str
) -> None:
    approvers = {**APPROVERS, "finance-approvers": 3}
    voted = decided(spec=H100, environment="prod", approvers=approvers)
    now = decided(spec=H100, environment="prod", **{"approvers": approvers, **changes})
    assert [r.code for r in denials_after_votes(now)] == denials, reason
    if not denials:
        assert [r.code for r in delivery_check(voted, now)] == changed, reason


def test_where_nobody_has_to_be_asked_a_dearer_price_asks_nobody() -> None:
    assert delivery_check(decided(), decided(prices=dearer("2"))) == []


def test_asking_again_whom_nobody_can_answer_is_a_denial() -> None:
    voted = decided(spec=H100, environment="prod")
    alone = {"platform-approvers": 1, "finance-approvers": 1}
    same = decided(spec=H100, environment="prod", approvers=alone)
    assert denials_after_votes(same, voted) == []
    risen = decided(spec=H100, environment="prod", approvers=alone, prices=dearer("1.01"))
    assert [r.code for r in denials_after_votes(risen, voted)] == ["stage-unsatisfiable"]


def test_a_stage_of_another_group_or_of_more_people_is_new() -> None:
    voted = decided(bundle_of([], [stage()]))
    assert delivery_check(voted, decided(bundle_of([], [stage(quorum=1)]))) == []
    assert [r.code for r in delivery_check(voted, decided(bundle_of([], [stage(quorum=2)])))] == ["new-stage"]
    other = decided(bundle_of([], [stage(group="finance-approvers")]))
    assert [r.code for r in delivery_check(voted, other)] == ["new-stage"]
    assert delivery_check(voted, decided(bundle_of())) == []
    more = decided(bundle_of([], [stage(), stage("other")]))
    assert [r.message for r in delivery_check(voted, more)] == ["other asks for approval now: it is not wanted"]


def test_a_decision_is_the_same_after_its_inputs_were_stored() -> None:
    made = inputs(spec=H100, environment="prod")
    kept = copy.deepcopy(made)
    first = decide(made, shipped("modeldeployments"), default_bundle())
    again = decide(from_json(Inputs, to_json(made)), shipped("modeldeployments"), default_bundle())
    assert (again, made) == (first, kept)
    assert from_json(Decision, to_json(first)) == first


@settings(max_examples=60)
@given(
    count=st.integers(1, 16),
    most=st.integers(1, 8),
    held=st.integers(0, 8),
    limit=st.none() | st.integers(0, 40),
    committed=st.decimals(0, 40000, places=2),
    environment=st.sampled_from(["dev", "prod"]),
)
def test_allowed_means_that_every_ceiling_holds(
    count: int, most: int, held: int, limit: int | None, committed: Decimal, environment: str
) -> None:
    spec = {**H100, "accelerator": {"class": "h100-80gb", "count": count}, "replicas": {"min": 1, "max": most}}
    state = BudgetState("search", "USD", committed, Decimal(20000), Decimal(30000))
    lines = (HeldLine("search", "gpu.h100-80gb", held, limit),)
    found = decided(spec=spec, environment=environment, held=lines, budgets=(state,))
    assert found.reasons
    assert (found.outcome == "Denied") == any(r.effect == "deny" for r in found.reasons)
    if found.outcome != "Denied":
        assert limit is not None
        assert held + count * most <= limit
        assert committed + Decimal("2153.50") * count * most <= 30000
        assert bool(found.stages) == (found.outcome == "NeedsApproval")
    if found.outcome == "Allowed":
        assert (environment, count * most <= 2) == ("dev", True)
