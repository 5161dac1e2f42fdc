"""`manage.py admission_policy`: what it prints is what an administrator applies."""

from __future__ import annotations

from io import StringIO

import pytest
import yaml
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


def printed(*arguments: str) -> list[dict[str, object]]:
    said = StringIO()
    call_command("admission_policy", *arguments, stdout=said)
    return list(yaml.safe_load_all(said.getvalue()))


def test_it_prints_a_policy_and_a_binding_per_offering(sample: None) -> None:
    kinds = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]
    assert [each["kind"] for each in printed()] == kinds * 2
    assert [each["kind"] for each in printed("--offering", "vectordatabases")] == kinds


def test_who_is_who_can_be_said(sample: None) -> None:
    arguments = ["--portal-user", "p", "--crossplane-user", "c", "--admin-group", "a", "--admin-group", "b", "--warn"]
    policy, binding = printed("--offering", "modeldeployments", *arguments)
    said = {each["name"]: each["expression"] for each in policy["spec"]["variables"]}  # type: ignore[index]  # YAML
    assert said["portal"] == 'request.userInfo.username == "p"'
    assert said["crossplane"] == 'request.userInfo.username in ["c"]'
    assert said["admin"].endswith('in ["a", "b"])')
    assert binding["spec"]["validationActions"] == ["Warn", "Audit"]  # type: ignore[index]  # YAML


@pytest.mark.parametrize(("offering", "message"), [("nothing", "There is no offering 'nothing'")])
def test_an_unknown_offering_is_named(sample: None, offering: str, message: str) -> None:
    with pytest.raises(CommandError, match=message):
        printed("--offering", offering)


def test_without_offerings_it_says_what_to_do(db: None) -> None:
    with pytest.raises(CommandError, match="bootstrap FILE"):
        printed()
