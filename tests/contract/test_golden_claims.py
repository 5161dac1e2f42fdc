"""The claims that the portal renders for the offerings' examples: the portal's half of the contract is the XRD."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.domain import strict_yaml
from portal.rendering.claim import claim_yaml, facts_from_claim, render_claim
from portal.rendering.names import NamingError, claim_name
from tests.contract.claims import APIS, EXAMPLES, claim_of, offering_named
from tests.contract.goldens import assert_golden, golden_files


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_claim_is_the_golden_one(example: str) -> None:
    claim = claim_of(example)
    text = claim_yaml(claim)
    assert_golden(f"claims/{example}.yaml", text)
    assert strict_yaml.parse(text) == claim


def test_every_golden_claim_is_made_of_an_example() -> None:
    assert golden_files("claims") == {f"claims/{example}.yaml" for example in EXAMPLES}


def test_each_offering_has_examples() -> None:
    assert {example.split("/")[0] for example in EXAMPLES} >= {"modeldeployments", "vectordatabases"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_claim_holds_the_spec_as_it_was_written_and_its_facts(example: str) -> None:
    claim = claim_of(example)
    written = strict_yaml.parse(EXAMPLES[example].read_text(encoding="utf-8"))
    assert {key: value for key, value in claim["spec"].items() if key != "crossplane"} == written["spec"]
    assert render_claim(facts_from_claim(claim)) == claim


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_claim_names_a_composition_of_its_kind(example: str) -> None:
    claim = claim_of(example)
    files = (APIS / example.split("/")[0]).glob("composition-*.yaml")
    compositions = [strict_yaml.parse(file.read_text(encoding="utf-8")) for file in files]
    made_of = {item["metadata"]["name"]: item["spec"]["compositeTypeRef"] for item in compositions}
    named = claim["spec"]["crossplane"]["compositionRef"]["name"]
    assert made_of[named] == {"apiVersion": claim["apiVersion"], "kind": claim["kind"]}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_claim_is_valid_by_the_xrd(example: str) -> None:
    offering = offering_named(example.split("/")[0])
    claim = claim_of(example)
    assert (claim["apiVersion"], claim["kind"]) == (offering.api_version, offering.kind)
    spec = {key: value for key, value in claim["spec"].items() if key != "crossplane"}
    assert offering.validate(spec) == []
    assert offering.with_defaults(spec) == spec, "an example says everything: it shows what a claim holds"


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_xrd_refuses_a_claim_with_a_field_more_or_of_another_type(example: str) -> None:
    offering = offering_named(example.split("/")[0])
    spec = {key: value for key, value in claim_of(example)["spec"].items() if key != "crossplane"}
    assert [problem.pointer for problem in offering.validate({**spec, "surprise": 1})] != []
    for key in spec:
        assert offering.validate({**spec, key: 1.5}) != [], f"/{key} may be 1.5"


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_has_a_name_that_offering_and_rendering_allow(example: str) -> None:
    offering = offering_named(example.split("/")[0])
    metadata = claim_of(example)["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    assert offering.check_name(name, namespace) == []
    derived = tuple(offering.naming.derived)
    assert claim_name(name, namespace, offering.naming.max_length, derived) == name


@given(
    name=st.one_of(st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True), st.text(max_size=50)),
    namespace=st.from_regex(r"[a-z][a-z0-9]{0,30}", fullmatch=True),
)
@pytest.mark.parametrize("offering_name", ["modeldeployments", "vectordatabases"])
def test_a_name_that_the_form_takes_is_never_refused_at_delivery(offering_name: str, name: str, namespace: str) -> None:
    offering = offering_named(offering_name)
    try:
        claim_name(name, namespace, offering.naming.max_length, tuple(offering.naming.derived))
    except NamingError:
        assert offering.check_name(name, namespace) != []
    else:
        assert offering.check_name(name, namespace) == []
