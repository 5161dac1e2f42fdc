"""The generated admission policies as texts. What an API server makes of them: tests/e2e/test_admission.py."""

from __future__ import annotations

from typing import Any

import pytest

from portal.domain.offerings import Offering, parse_offering
from portal.rendering.admission import Actors, AdmissionError, admission_policy
from tests.contract.claims import APIS, offering_named

URL = "https://portal.example.org"


def policy_of(offering: Offering, actors: Actors | None = None) -> dict[str, Any]:
    policy, _ = admission_policy(offering, actors or Actors(), URL)
    spec: dict[str, Any] = policy["spec"]
    return spec


def variables(offering: Offering, actors: Actors | None = None) -> dict[str, str]:
    return {each["name"]: each["expression"] for each in policy_of(offering, actors)["variables"]}


def edited(old: str, new: str) -> Offering:
    """The database offering with another text in its governance file."""
    folder = APIS / "vectordatabases"
    definition, governance = ((folder / name).read_text() for name in ("definition.yaml", "offering.yaml"))
    assert old in governance
    return parse_offering("vectordatabases", definition, governance.replace(old, new))


def test_it_is_about_the_offerings_kind_and_closed_when_it_fails() -> None:
    policy, binding = admission_policy(offering_named("modeldeployments"), Actors(), URL)
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]
    assert rule == {
        "apiGroups": ["aiplatform.example.org"],
        "apiVersions": ["v1alpha1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["modeldeployments"],
    }
    assert policy["spec"]["failurePolicy"] == "Fail"
    assert binding["spec"] == {"policyName": policy["metadata"]["name"], "validationActions": ["Deny"]}


def test_warn_refuses_nothing() -> None:
    _, binding = admission_policy(offering_named("modeldeployments"), Actors(), URL, warn=True)
    assert binding["spec"]["validationActions"] == ["Warn", "Audit"]


@pytest.mark.parametrize("name", ["modeldeployments", "vectordatabases"])
def test_every_message_says_where_to_ask(name: str) -> None:
    for rule in policy_of(offering_named(name))["validations"]:
        assert f"{URL}/offerings/{name}/" in rule["message"]
        assert f"{URL}/offerings/{name}/" in rule.get("messageExpression", rule["message"])


def test_names_are_quoted() -> None:
    made = variables(offering_named("modeldeployments"), Actors(portal='a"b', admin_groups=("x", "データ")))
    assert made["portal"] == r'request.userInfo.username == "a\"b"'
    assert made["admin"].endswith('group in ["x", "データ"])')


def test_lines_of_one_dimension_add_up() -> None:
    doubled = edited("  metering:\n", "  metering:\n    - {dimension: '\"vectordb.memory_gib\"', amount: '1'}\n")
    made = variables(doubled)
    assert made["amount0"] == "[variables.spec].map(spec, 1)[0]"
    assert made["total1"] == (
        "(variables.dimension0 == variables.dimension1 ? variables.amount0 : 0) + "
        "(variables.dimension1 == variables.dimension1 ? variables.amount1 : 0)"
    )


def test_a_name_that_an_admission_policy_does_not_know_is_refused() -> None:
    offering = offering_named("vectordatabases")
    odd = type("Odd", (), {"metering": (('"x"', "spec.memory__dash__gib"),), "name": "odd"})()
    for name in ("plural", "group", "version", "kind"):
        setattr(odd, name, getattr(offering, name))
    with pytest.raises(AdmissionError, match=r"offering odd: .*'__dash__'"):
        admission_policy(odd, Actors(), URL)
