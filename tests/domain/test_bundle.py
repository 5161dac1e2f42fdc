"""Bundles: what is refused before it governs, all of it, with a path."""

from __future__ import annotations

from typing import Any

import pytest

from portal.domain.bundle import BundleError, check_groups, parse_bundle
from tests.domain.policies import bundle_of, default_bundle, guardrail, offerings, shipped, stage, text_of

MODELS = {"offerings": ["modeldeployments"]}
EVERYTHING = {"offerings": ["modeldeployments", "vectordatabases"]}


def refused(text: str) -> list[tuple[str, str]]:
    with pytest.raises(BundleError) as caught:
        parse_bundle(text, offerings())
    return [(problem.path, problem.reason) for problem in caught.value.problems]


WRONG: list[tuple[dict[str, Any], str, str, str]] = [
    (
        {"guardrails": [guardrail(when="spec.replica.max > 2", appliesTo=MODELS)]},
        "/spec/guardrails/0/when",
        "has no field 'replica'",
        "a typo in a path",
    ),
    (
        {"guardrails": [guardrail(when="has(spec.replicas.maximum)", appliesTo=MODELS)]},
        "/spec/guardrails/0/when",
        "has no field 'maximum'",
        "a typo inside has(), where a guardrail would fail open",
    ),
    (
        {"guardrails": [guardrail(when="spec.replicas.max > 2", appliesTo=EVERYTHING)]},
        "/spec/guardrails/0/when",
        "(for vectordatabases)",
        "a path that only one of the offerings has",
    ),
    (
        {"guardrails": [guardrail(when="spec.replicas.max > 2")]},
        "/spec/guardrails/0/when",
        "only request, usage, takes and cost are known",
        "spec in a rule for every offering",
    ),
    (
        {"guardrails": [guardrail(when="spec.replicas.max", appliesTo=MODELS)]},
        "/spec/guardrails/0/when",
        "must be bool",
        "a number is no condition",
    ),
    (
        {"guardrails": [guardrail(when="cost.delta > 1.5")]},
        "/spec/guardrails/0/when",
        "cost.delta > 1.5",
        "cents are integers",
    ),
    (
        {"guardrails": [guardrail(when="request.who == 'x'")]},
        "/spec/guardrails/0/when",
        "has no field 'who'",
        "a typo in request",
    ),
    (
        {"guardrails": [guardrail(when="spec.limits > 2", appliesTo={"kinds": ["Quota"]})]},
        "/spec/guardrails/0/when",
        "has no field 'limits'",
        "a quota's spec is typed too",
    ),
    (
        {"guardrails": [guardrail(appliesTo={"offerings": ["notebooks"]})]},
        "/spec/guardrails/0/appliesTo/offerings",
        "there is no offering 'notebooks'; there are: modeldeployments, vectordatabases",
        "an unknown offering",
    ),
    (
        {"guardrails": [guardrail(appliesTo={**MODELS, "kinds": ["Create", "Quota"]})]},
        "/spec/guardrails/0/appliesTo/offerings",
        "a quota is of no offering",
        "a quota of an offering",
    ),
    (
        {"guardrails": [guardrail(appliesTo={"kinds": ["Update"]})]},
        "/spec/guardrails/0/appliesTo/kinds/0",
        "Create",
        "an unknown kind",
    ),
    (
        {"guardrails": [guardrail(field="/spec/region", appliesTo=MODELS)]},
        "/spec/guardrails/0/field",
        "/spec/region is not in the schema of modeldeployments",
        "a wrong pointer",
    ),
    (
        {"guardrails": [guardrail(field="/spec/regions")]},
        "/spec/guardrails/0/field",
        "a rule for every offering can't name a field below /spec",
        "a pointer without a schema",
    ),
    (
        {"guardrails": [guardrail(field="/status/phase")]},
        "/spec/guardrails/0/field",
        "is no field of a request",
        "a pointer to elsewhere",
    ),
    (
        {"guardrails": [guardrail("a"), guardrail("a")]},
        "/spec/guardrails/1/code",
        "a is the code of /spec/guardrails/0/code too",
        "a code twice",
    ),
    (
        {"guardrails": [guardrail("a")], "approvals": [stage("a")]},
        "/spec/approvals/0/code",
        "a is the code of /spec/guardrails/0/code too",
        "a code twice, across the parts",
    ),
    (
        {"guardrails": [guardrail("quota-exceeded")]},
        "/spec/guardrails/0/code",
        "a code of the portal's own rules",
        "a code that looks built in",
    ),
    ({"guardrails": [guardrail("Not Kebab")]}, "/spec/guardrails/0/code", "", "a code of the wrong form"),
    (
        {"guardrails": [guardrail(messageExpression="'x'")]},
        "/spec/guardrails/0",
        "exactly one of message and messageExpression",
        "both messages",
    ),
    (
        {"guardrails": [{"code": "a", "when": "true"}]},
        "/spec/guardrails/0",
        "exactly one of message and messageExpression",
        "no message",
    ),
    (
        {"approvals": [{"code": "a", "when": "true", "messageExpression": "1", **stage()} | {"message": "m"}]},
        "/spec/approvals/0/messageExpression",
        "must be string",
        "a message that is a number",
    ),
    ({"approvals": [stage(quorum=0)]}, "/spec/approvals/0/quorum", "1", "a quorum of nobody"),
    ({"approvals": [stage(quorum="2")]}, "/spec/approvals/0/quorum", "", "a number sent as a text"),
    ({"approvals": [stage(timeoutHours=0)]}, "/spec/approvals/0/timeoutHours", "1", "no time at all"),
    ({"approvals": [guardrail("a")]}, "/spec/approvals/0/group", "required", "a stage without a group"),
    ({"budgetApprovers": {"group": "x"}}, "/spec/budgetApprovers/quorum", "required", "half of who is asked"),
    ({"currency": "dollars"}, "/spec/currency", "", "no currency code"),
    ({"leases": []}, "/spec/leases", "unknown field", "a member that nobody reads"),
]


@pytest.mark.parametrize(("spec", "path", "reason", "why"), WRONG)
def test_a_bundle_that_cannot_govern_is_refused_with_a_path(
    spec: dict[str, Any], path: str, reason: str, why: str
) -> None:
    found = refused(text_of(**spec))
    assert any(where == path and reason in text for where, text in found), f"{why}: {found}"


def test_every_problem_is_listed() -> None:
    wrong = [guardrail("a", "spec.nope", appliesTo=MODELS), guardrail("b", "nope"), guardrail("b", field="/x")]
    paths = [path for path, _ in refused(text_of(wrong))]
    assert paths == [
        "/spec/guardrails/0/when",
        "/spec/guardrails/1/when",
        "/spec/guardrails/2/field",
        "/spec/guardrails/2/code",
    ]


@pytest.mark.parametrize("text", ["", "[]", "a: 1\na: 2", "kind: PolicyBundle", "{{7*7}}", "\x00", "- " * 300])
def test_what_is_no_bundle_is_refused(text: str) -> None:
    assert refused(text)


def test_a_bundle_is_named_by_its_text_and_knows_its_groups() -> None:
    one, other = bundle_of([], [stage(group="security")]), bundle_of()
    assert one.digest == bundle_of([], [stage(group="security")]).digest != other.digest
    assert one.groups == {"security", "finance-approvers", "platform-admins"}


def test_a_checked_bundle_is_compiled_again_for_one_offering_only() -> None:
    text = text_of([guardrail(when="spec.replicas.max > 2", appliesTo=MODELS)])
    whole, part = parse_bundle(text, offerings()), parse_bundle(text, [shipped("vectordatabases")], partial=True)
    assert part.digest == whole.digest
    assert part.guardrails[0].programs == {}
    with pytest.raises(BundleError):
        parse_bundle(text, [shipped("vectordatabases")])


def test_more_approver_groups_than_can_be_checked_are_refused() -> None:
    found = refused(text_of([], [stage(f"s{i}", group=f"g{i}") for i in range(11)]))
    assert found == [("/spec", "13 approver groups; at most 12 are accepted")]


def test_groups_that_are_too_small_for_their_stage_are_found_at_load() -> None:
    bundle = bundle_of([], [stage(group="platform-approvers", quorum=2), stage("other", group="nobody")])
    sizes = {"platform-approvers": 1, "finance-approvers": 1, "platform-admins": 0}
    assert [(p.path, p.reason) for p in check_groups(bundle, sizes)] == [
        ("/spec/approvals/0", "needs 2 of group platform-approvers, which has 1 members"),
        ("/spec/approvals/1", "needs 1 of group nobody, which has 0 members"),
        ("/spec/quotaApprovers", "needs 1 of group platform-admins, which has 0 members"),
    ]
    assert check_groups(bundle, {**sizes, "platform-approvers": 2, "nobody": 1, "platform-admins": 1}) == []


def test_the_shipped_bundle_is_fine() -> None:
    assert default_bundle().currency == "USD"
    assert default_bundle().groups == {"platform-approvers", "finance-approvers", "platform-admins"}
