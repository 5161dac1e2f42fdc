"""A stored decision is made again from what was stored with it, whatever governs by now; what was altered is shown."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from portal.domain.decision import digest
from portal.models import DecisionRecord, Request, Team
from portal.services import approving, holding, loading, submitting
from portal.services.explaining import explain
from tests.sample import actor, draft, model_body, quota_body
from tests.tampering import tamper
from tests.world import work

pytestmark = pytest.mark.django_db

POLICIES = settings.BASE_DIR / "portal" / "policies"


def submitted(body: dict[str, Any], username: str = "ada") -> Request:
    return submitting.submit(draft(body), acting=actor(username)).request


def change_everything() -> None:
    """Another bundle, other prices, other ceilings: all of these requests would be decided otherwise today."""
    bundle = (POLICIES / "default.yaml").read_text()
    bundle = bundle.replace('request.environment == "prod"', "size(request.team) > 0").replace("quorum: 2", "quorum: 1")
    loading.load_bundle(bundle.replace("cost.monthly > 1000000", "cost.delta > 1"), system="tests")
    loading.load_prices((POLICIES / "sample-prices.csv").read_text().replace("0.80", "8.00"), "USD", system="tests")
    holding.set_quota(Team.objects.get(slug="search"), "gpu.l4", 4_000)
    holding.set_quota(Team.objects.get(slug="ads"), "gpu.l4", 8)


@pytest.mark.parametrize(
    ("username", "body", "outcome"),
    [
        pytest.param("ada", model_body(), "Allowed", id="within policy"),
        pytest.param("ada", model_body(gpus=3), "NeedsApproval", id="more GPUs than at once"),
        pytest.param("ada", model_body(environment="prod"), "NeedsApproval", id="prod"),
        pytest.param("carol", model_body(team="ads", gpus=2), "Denied", id="over quota"),
        pytest.param("carol", quota_body(2), "NeedsApproval", id="a quota"),
    ],
)
def test_decisions_are_made_again_as_they_were(sample: None, username: str, body: dict[str, Any], outcome: str) -> None:
    request = submitted(body, username)
    change_everything()
    [explanation] = explain(request.pk)
    assert explanation.record.outcome == outcome
    assert explanation.differences == []
    # The change was one that matters: the same draft is decided differently now.
    another = {**body, "name": "other"} if "name" in body else quota_body(2, dimension="gpu.l40s")
    again = submitting.preview(draft(another), acting=actor(username))
    assert again.inputs.bundle_digest != explanation.record.inputs["bundle_digest"]
    if body["kind"] == "Create":
        assert [r.code for r in again.decision.reasons] != [r["code"] for r in explanation.record.result["reasons"]]


def test_every_moment_of_a_request_is_explained(sample: None) -> None:
    """Submission, the last vote, delivery: three decisions, each with inputs of its own."""
    request = submitted(model_body(environment="prod"))
    for username in ("frank", "heidi"):
        approving.vote(request.pk, "approve", acting=actor(username))
    work()
    change_everything()
    shown = StringIO()
    call_command("explain", str(request.pk), stdout=shown)
    text = shown.getvalue()
    assert [line.split()[0] for line in text.splitlines() if " at " in line and line[0] != " "] == [
        "submission",
        "approval",
        "delivery",
    ]
    assert text.count("made again from the stored inputs: the same") == 3
    assert "production-model" in text


TAMPERED = [
    pytest.param("inputs", "{spec,replicas,max}", "2", "/result/usage/0/after", id="asked for more"),
    pytest.param("inputs", "{held,1,held}", "4", "/result/outcome", id="the team held more"),
    pytest.param("inputs", "{prices,0,price}", '"0.10"', "/result/quote/monthly", id="it was cheaper"),
    pytest.param("inputs", "{request,environment}", '"prod"', "/result/outcome", id="it was for prod"),
    pytest.param("inputs", "{budgets,1,hard}", '"1.00"', "/result/outcome", id="the budget was smaller"),
    pytest.param("inputs", "{bundle_digest}", '"0000"', "/inputs", id="a bundle that nobody knows"),
    pytest.param("inputs", "{spec,replicas,max}", '"two"', "/result", id="a text for a number"),
    pytest.param("inputs", "{prices}", '"none"', "/inputs", id="of another shape"),
    pytest.param("result", "{quote,monthly}", '"1.00"', "/result/quote/monthly", id="the result itself"),
    pytest.param("result", "{reasons}", "[]", "/result/reasons", id="reasons removed"),
]


@pytest.mark.parametrize(("column", "path", "value", "pointer"), TAMPERED)
def test_what_was_altered_is_shown(sample: None, column: str, path: str, value: str, pointer: str) -> None:
    request = submitted(model_body())
    alter(request, column, path, value)
    paths = differing(request)
    assert any(each == pointer or each.startswith(f"{pointer}/") for each in paths), paths
    assert ("/inputsDigest" in paths) == (column == "inputs")

    record = DecisionRecord.objects.get(request=request)
    tamper("UPDATE portal_decisionrecord SET inputs_digest = %s WHERE id = %s", [digest(record.inputs), record.pk])
    assert differing(request) == [each for each in paths if each != "/inputsDigest"], "a new digest hides nothing"

    shown = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("explain", str(request.pk), stdout=shown)
    assert failed.value.returncode == 1
    assert f"differs at {pointer}" in shown.getvalue()


def test_a_tampered_outcome_is_shown(sample: None) -> None:
    request = submitted(model_body(gpus=3))
    tamper("UPDATE portal_decisionrecord SET outcome = 'Allowed' WHERE request_id = %s", [request.pk])
    [explanation] = explain(request.pk)
    assert [(d.path, d.stored, d.again) for d in explanation.differences] == [("/outcome", "Allowed", "NeedsApproval")]


def test_an_unknown_request_is_a_clear_error(sample: None) -> None:
    with pytest.raises(CommandError, match="There is no request 00000000-0000-0000-0000-000000000000"):
        call_command("explain", "00000000-0000-0000-0000-000000000000")


def alter(request: Request, column: str, path: str, value: str) -> None:
    """What somebody with the database's password can do."""
    assert column in {"inputs", "result"}
    tamper(
        f"UPDATE portal_decisionrecord SET {column} = jsonb_set({column}, %s, %s) WHERE request_id = %s",  # noqa: S608
        [path, value, request.pk],
    )


def differing(request: Request) -> list[str]:
    """Where its decisions differ when they are made again."""
    return [difference.path for explanation in explain(request.pk) for difference in explanation.differences]
