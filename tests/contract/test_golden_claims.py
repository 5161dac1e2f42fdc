"""The claims that the portal renders for the offerings' examples: the portal's half of the contract is the XRD."""

import pytest

from portal.domain import strict_yaml
from portal.rendering.claim import claim_yaml, facts_from_claim, render_claim
from portal.rendering.names import claim_name
from tests.contract.claims import EXAMPLES, claim_of, offering_files
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
def test_an_example_has_a_name_that_the_offering_allows(example: str) -> None:
    naming = offering_files(example.split("/")[0])[0]["naming"]
    metadata = claim_of(example)["metadata"]
    derived = tuple(naming.get("derived", ()))
    assert claim_name(metadata["name"], metadata["namespace"], naming["maxLength"], derived) == metadata["name"]
