"""A claim holds the approved spec untouched, the pinned revision, and all that the portal's row can be rebuilt from."""

import copy
import dataclasses
import json
import re
from decimal import Decimal
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from portal.rendering.claim import ClaimError, ClaimFacts, claim_yaml, facts_from_claim, render_claim

P = "portal.aiplatform.example.org/"
FACTS = ClaimFacts(
    api_version="aiplatform.example.org/v1alpha1",
    kind="ModelDeployment",
    composition="modeldeployments-kserve",
    composition_revision="modeldeployments-kserve-6f2c1d9",
    offering="modeldeployments",
    offering_digest="9" * 64,
    instance_id="5a4f2f0e-7f6d-4c0e-9a53-0d8a4a3d2b11",
    instance_name="chat",
    name="chat",
    namespace="search-dev",
    team="search",
    team_title="Search & Discovery",
    environment="dev",
    request_id="1c9b7f6e-33a1-4be7-8a54-1f8ad0b6a0d3",
    requester="ada",
    owner="grace",
    quote_monthly=Decimal("584.00"),
    quote_currency="EUR",
    spec={"model": {"source": "hf://meta-llama/Llama-3.1-8B-Instruct"}, "replicas": {"min": 1, "max": 1}},
    environment_labels={"stage": "dev"},
)
CORE = {
    "compositionRef": {"name": "modeldeployments-kserve"},
    "compositionRevisionRef": {"name": "modeldeployments-kserve-6f2c1d9"},
    "compositionUpdatePolicy": "Manual",
}


def with_spec(spec: dict[str, Any], **changes: Any) -> ClaimFacts:
    return dataclasses.replace(FACTS, spec=spec, **changes)


def test_the_claim_of_an_xrd_of_v2() -> None:
    assert render_claim(FACTS) == {
        "apiVersion": "aiplatform.example.org/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {
            "name": "chat",
            "namespace": "search-dev",
            "labels": {
                P + "managed-by": "portal",
                P + "instance": "5a4f2f0e-7f6d-4c0e-9a53-0d8a4a3d2b11",
                P + "team": "search",
                P + "environment": "dev",
                P + "offering": "modeldeployments",
            },
            "annotations": {
                P + "request": "1c9b7f6e-33a1-4be7-8a54-1f8ad0b6a0d3",
                P + "requester": "ada",
                P + "owner": "grace",
                P + "instance-name": "chat",
                P + "team-title": "Search & Discovery",
                P + "environment-labels": '{"stage": "dev"}',
                P + "offering-digest": "9" * 64,
                P + "quote-monthly": "584.00",
                P + "quote-currency": "EUR",
                "terasky.backstage.io/exclude-from-catalog": "true",
            },
        },
        "spec": {**FACTS.spec, "crossplane": CORE},
    }


def test_the_claim_of_an_xrd_of_v1_has_the_machinery_directly_in_its_spec() -> None:
    assert render_claim(dataclasses.replace(FACTS, style="v1"))["spec"] == {**FACTS.spec, **CORE}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        *(
            (text, "case 9: YAML reads it as something else")
            for text in ("y", "no", "0123", "12:30:45", "1E6", "1_000")
        ),
        *(
            (text, "case 9, others of that kind")
            for text in ("null", "~", "true", "0x1F", "1.0", ".inf", "=", "<<", "", " ")
        ),
        *(
            (text, "case 18: nothing is evaluated")
            for text in ("{{7*7}}", "${{ secrets.X }}", "<script>", "'; drop table")
        ),
        *(
            (text, "text that YAML can break")
            for text in ("a: b", "# x", "a\nb\n", "\ta", "é\u2028x", "データ 🚀", "- a", "&a *b")
        ),
        *((number, "case 11: an integer stays one") for number in (2, 0, -1, 2**53 + 1, 10**30)),
        (True, "a boolean is no number"),
        (0.1, "a fraction stays one"),
        (None, "null is a value"),
        ([], "an empty list is not nothing"),
        ({}, "nor is an empty object"),
    ],
)
def test_a_value_reaches_the_claim_as_it_is(value: Any, reason: str) -> None:
    facts = with_spec({"x": value, "list": [value], "deep": {"x": value}})
    claim = render_claim(facts)
    for got in (claim["spec"], json.loads(json.dumps(claim))["spec"], yaml.safe_load(claim_yaml(claim))["spec"]):
        assert {key: got[key] for key in facts.spec} == facts.spec, reason
        assert type(got["x"]) is type(value), reason
        assert type(got["deep"]["x"]) is type(value), reason


def test_the_approved_spec_is_copied_and_not_shared() -> None:
    spec = {"model": {"tags": ["a"]}}
    before = copy.deepcopy(spec)
    claim = render_claim(with_spec(spec))
    claim["spec"]["model"]["tags"].append("b")
    assert spec == before


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"x": value}
    return value


@pytest.mark.parametrize(
    ("spec", "style", "field", "says"),
    [
        ({"crossplane": {}}, "v2", "/spec/crossplane", "belongs to Crossplane"),
        ({"compositionRef": {"name": "mine"}}, "v1", "/spec/compositionRef", "belongs to Crossplane"),
        ({"resourceRef": {}}, "v1", "/spec/resourceRef", "belongs to Crossplane"),
        ({"a": {"b/c": [1, float("nan")]}}, "v2", "/spec/a/b~1c/1", "is not a JSON value"),
        ({"a": float("inf")}, "v2", "/spec/a", "is not a JSON value"),
        ({"price": Decimal("1.5")}, "v2", "/spec/price", "is not a JSON value"),
        ({"a": (1, 2)}, "v2", "/spec/a", "is not a JSON value"),
        ({"a": {1: "x"}}, "v2", "/spec/a", "which is not a string"),
        (deep(200), "v2", "/spec" + "/x" * 101, "nested deeper than 100 levels"),
    ],
)
def test_a_spec_that_can_not_be_one_is_refused_by_field(
    spec: dict[str, Any], style: Any, field: str, says: str
) -> None:
    with pytest.raises(ClaimError, match=says) as refused:
        render_claim(with_spec(spec, style=style))
    assert refused.value.field == field


def test_what_belongs_to_the_other_style_is_an_ordinary_field() -> None:
    assert render_claim(with_spec({"compositionRef": "x"}))["spec"]["compositionRef"] == "x"


def test_an_original_that_no_label_can_hold_is_in_the_annotations() -> None:
    metadata = render_claim(dataclasses.replace(FACTS, team="データ team"))["metadata"]
    assert re.fullmatch(r"team_[0-9a-f]{10}", metadata["labels"][P + "team"])
    assert metadata["annotations"][P + "team"] == "データ team"


@pytest.mark.parametrize(
    ("amount", "text"),
    [(Decimal("1E+3"), "1000"), (Decimal("0.10"), "0.10"), (Decimal("12345678901234567.89"), "12345678901234567.89")],
)
def test_money_is_a_plain_string(amount: Decimal, text: str) -> None:
    claim = render_claim(dataclasses.replace(FACTS, quote_monthly=amount))
    assert claim["metadata"]["annotations"][P + "quote-monthly"] == text
    assert facts_from_claim(claim).quote_monthly == amount


@pytest.mark.parametrize("amount", [Decimal("NaN"), Decimal("Infinity"), Decimal("-1")])
def test_what_is_no_money_is_refused(amount: Decimal) -> None:
    with pytest.raises(ClaimError, match="not an amount of money"):
        render_claim(dataclasses.replace(FACTS, quote_monthly=amount))


words = st.text(st.characters(codec="utf-8"), max_size=30)
some = words.filter(bool)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
specs = st.dictionaries(
    words.filter(lambda key: key != "crossplane" and not key.startswith("compos")), values, max_size=4
)
facts = st.builds(
    ClaimFacts,
    **dict.fromkeys(("api_version", "kind", "composition", "composition_revision", "name", "namespace"), some),
    **dict.fromkeys(("offering", "offering_digest", "instance_id", "instance_name", "team", "team_title"), words),
    **dict.fromkeys(("environment", "request_id", "requester", "owner", "quote_currency"), words),
    quote_monthly=st.none() | st.decimals(0, 10**9, places=2),
    spec=specs,
    environment_labels=st.dictionaries(words, words, max_size=3),
    style=st.sampled_from(["v1", "v2"]),
)


@given(facts)
@example(FACTS)
@example(dataclasses.replace(FACTS, quote_monthly=None, style="v1"))
def test_the_facts_come_back_from_the_claim(made_of: ClaimFacts) -> None:
    claim = json.loads(json.dumps(render_claim(made_of)))
    assert facts_from_claim(claim) == made_of
    assert render_claim(facts_from_claim(claim)) == claim


@pytest.mark.parametrize("style", ["v2", "v1"])
def test_what_the_core_and_others_add_is_not_taken_for_a_fact(style: Any) -> None:
    made_of = dataclasses.replace(FACTS, style=style)
    claim = render_claim(made_of)
    core = claim["spec"]["crossplane"] if style == "v2" else claim["spec"]
    core["resourceRef"] = {"name": "chat-x7k2p"}
    claim["metadata"] |= {"uid": "u", "generation": 4, "managedFields": [], "finalizers": ["foregroundDeletion"]}
    claim["metadata"]["labels"]["crossplane.io/composite"] = "chat"
    claim["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"] = "now"
    claim["status"] = {"conditions": []}
    assert facts_from_claim(claim) == made_of


def without(*path: str) -> dict[str, Any]:
    claim = render_claim(FACTS)
    inner = claim
    for step in path[:-1]:
        inner = inner[step]
    del inner[path[-1]]
    return claim


def with_annotation(key: str, text: str) -> dict[str, Any]:
    claim = render_claim(FACTS)
    claim["metadata"]["annotations"][P + key] = text
    return claim


@pytest.mark.parametrize(
    ("claim", "field", "says"),
    [
        ({}, "/metadata", "missing"),
        (without("metadata", "labels"), "/metadata/labels", "missing"),
        (without("metadata", "labels", P + "managed-by"), "/metadata/labels/.*~1managed-by", "not made by the portal"),
        (without("metadata", "labels", P + "team"), "/metadata/annotations/.*~1team", "can't be rebuilt"),
        (
            without("metadata", "annotations", P + "requester"),
            "/metadata/annotations/.*~1requester",
            "can't be rebuilt",
        ),
        (without("metadata", "name"), "/metadata/name", "missing"),
        (without("spec"), "/spec", "missing"),
        (without("spec", "crossplane"), "/spec/compositionRef", "missing"),
        (without("spec", "crossplane", "compositionRevisionRef"), "/spec/crossplane/compositionRevisionRef", "missing"),
        (
            with_annotation("quote-monthly", "free"),
            "/metadata/annotations/.*~1quote-monthly",
            "'free' is not an amount",
        ),
        (with_annotation("quote-monthly", "NaN"), "/metadata/annotations/.*~1quote-monthly", "'NaN' is not an amount"),
        (with_annotation("quote-monthly", "sNaN"), "/metadata/annotations/.*~1quote-monthly", "not an amount"),
        (
            with_annotation("environment-labels", "{"),
            "/metadata/annotations/.*~1environment-labels",
            "not a JSON object",
        ),
        (
            with_annotation("environment-labels", '{"a": 1}'),
            "/metadata/annotations/.*~1environment-labels",
            "of strings",
        ),
    ],
)
def test_a_claim_that_can_not_be_read_says_where(claim: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(ClaimError, match=says) as refused:
        facts_from_claim(claim)
    assert re.fullmatch(field, refused.value.field)
