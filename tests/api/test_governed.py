"""What governs, as the API shows it: exact numbers, money as strings, and no price that is made up."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from portal.services import loading
from portal.services.errors import ServiceError
from tests.api.conftest import As, Unwritten
from tests.sample import SAMPLE, model_body
from tests.world import SUPERUSER, submit

BUNDLE = (SAMPLE.parent / "../policies/default.yaml").resolve()
HEADER = "sku,unit,price,currency,region,effectiveFrom,source,asOf\n"


def test_teams_say_one_s_own_role(call_as: As) -> None:
    rows = {row["slug"]: row for row in call_as("ada").get("teams/").json["items"]}
    assert rows["search"] == {"slug": "search", "title": "Search", "parent": "acme", "role": "owner"}
    assert rows["acme"] == {"slug": "acme", "title": "Acme", "parent": None, "role": None}


def test_a_quota_says_what_is_held(call_as: As) -> None:
    submit("ada", model_body(gpus=2))
    rows = call_as("ada").get("quotas/", dimension="gpu.l4").json["items"]
    assert rows == [
        {"team": "acme", "dimension": "gpu.l4", "limit": 8, "reserved": 2, "used": 0},
        {"team": "search", "dimension": "gpu.l4", "limit": 4, "reserved": 2, "used": 0},
    ]


def test_a_budget_says_what_is_committed(call_as: As) -> None:
    submit("ada", model_body(gpus=2))
    rows = call_as("ada").get("budgets/", team="search").json["items"]
    assert rows == [
        {"team": "search", "currency": "USD", "soft": "20000.00", "hard": "30000.00", "committed": "1168.00"}
    ]


def test_environments(call_as: As) -> None:
    rows = call_as("ada").get("environments/").json["items"]
    assert [(row["slug"], row["labels"]) for row in rows] == [("dev", {"tier": "dev"}), ("prod", {"tier": "prod"})]
    assert all("simulated" in row["controlPlane"] for row in rows)


def test_an_offering_brings_its_schema(call_as: As) -> None:
    offering = call_as("ada").get("offerings/modeldeployments/").json
    assert offering["kind"] == "ModelDeployment"
    assert offering["schema"]["properties"]["replicas"]["properties"]["max"]["maximum"] == 32
    names = [row["name"] for row in call_as("ada").get("offerings/").json["items"]]
    assert names == ["modeldeployments", "vectordatabases"]


MONEY = {"monthly", "unitPrice", "price", "soft", "hard", "committed", "amount", "before", "after"}


def money(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every amount of money in an answer. Lines of quotas have `before` and `after` too; they name a dimension."""
    found = []
    if isinstance(value, dict):
        for name, item in value.items():
            if name in MONEY and not isinstance(item, dict) and "dimension" not in value:
                found.append((f"{path}/{name}", item))
            found += money(item, f"{path}/{name}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            found += money(item, f"{path}/{place}")
    return found


@pytest.mark.parametrize("path", ["requests/", "instances/", "budgets/", "prices/", "preview"])
def test_money_is_a_string_and_exact(call_as: As, path: str) -> None:
    """Case 11."""
    submit("ada", model_body())
    ada = call_as("ada")
    answer = ada.post("requests/preview/", model_body("two")) if path == "preview" else ada.get(path)
    amounts = money(answer.json)
    assert amounts
    for where, amount in amounts:
        assert isinstance(amount, str), where
        assert Decimal(amount).is_finite(), where


def test_money_is_never_taken_as_a_number(call_as: As, nothing_written: Unwritten) -> None:
    """No body has a member for money: none is taken, as a number or as a string."""
    with nothing_written():
        for amount in (584, 584.0, "584.00"):
            answer = call_as("ada").post("requests/", {**model_body(), "quote": {"monthly": amount}})
            assert answer.status == 400


DOUBTFUL = ["0", "0.00", "NaN", "", "-1", "0.008"]  # the last is a hundredth of its class


@pytest.mark.parametrize("price", DOUBTFUL)
def test_a_doubtful_price_needs_review_and_is_never_free(call_as: As, price: str) -> None:
    """Case 20."""
    shipped = (BUNDLE.parent / "sample-prices.csv").read_text()
    fine = (
        "gpu.l4,hour,0.80,USD,us-east,2026-01-01,s,2026-01-01\ngpu.l4,hour,0.82,USD,eu-west,2026-01-01,s,2026-01-01\n"
    )
    others = "".join(line + "\n" for line in shipped.splitlines()[1:] if not line.startswith("gpu.l4,"))
    text = HEADER + others + fine + f"gpu.l4,hour,{price},USD,eu-central,2026-01-01,s,2026-01-01\n"
    try:
        loading.load_prices(text, "USD", system="test")
    except ServiceError as error:
        assert "line" in error.message  # refused as a whole: also not free
        return
    row = call_as("ada").get("prices/", sku="gpu.l4", region="eu-central").json["items"][0]
    assert row["price"] is None
    assert row["problem"]
    made = call_as("ada").post("requests/", model_body()).json
    assert made["state"] == "Waiting"
    assert made["quote"]["monthly"] is None
    assert "price-unknown" in [reason["code"] for reason in made["decision"]["reasons"]]
    assert made["waitsFor"]["group"] == "finance-approvers"


def test_stages_are_those_that_were_decided(call_as: As) -> None:
    """Case 21: the bundle changes while a request waits."""
    waiting = str(submit("ada", model_body(environment="prod")).pk)
    before = call_as("ada").get(f"requests/{waiting}/").json
    changed = BUNDLE.read_text().replace("quorum: 2", "quorum: 1").replace("production-model", "production-review")
    loading.load_bundle(changed, system="test")
    after = call_as("ada").get(f"requests/{waiting}/").json
    assert after == before
    assert after["stages"][0]["quorum"] == 2
    assert call_as("heidi").post(f"requests/{waiting}/approve/").json["state"] == "Waiting"


def test_a_stage_that_nobody_can_fill_is_denied_at_once(call_as: As) -> None:
    """Case 22: two approvers are demanded where all but one are the requester's own."""
    from django.contrib.auth.models import Group, User

    group = Group.objects.get(name="platform-approvers")
    group.user_set.set(User.objects.filter(username__in=["erin", "frank"]))  # type: ignore[attr-defined]
    made = call_as("erin").post("requests/", model_body(environment="prod")).json
    assert made["state"] == "Denied"
    denial = next(reason for reason in made["decision"]["reasons"] if reason["effect"] == "deny")
    assert denial["code"] == "stage-unsatisfiable"
    assert "platform-approvers" in denial["message"]


def test_a_bundle_whose_group_is_too_small_is_refused(world: object) -> None:
    """Case 22, at load."""
    from django.contrib.auth.models import Group

    Group.objects.get(name="finance-approvers").user_set.clear()  # type: ignore[attr-defined]
    with pytest.raises(ServiceError) as refusal:
        loading.load_bundle(BUNDLE.read_text() + "\n# again\n", system="test")
    assert "finance-approvers" in refusal.value.message


def test_an_audit_event_names_who_did_what(call_as: As) -> None:
    request = submit("ada", model_body())
    event = call_as("olivia").get("audit/", request=str(request.pk)).json["items"][0]
    assert (event["verb"], event["actor"], event["team"]) == ("request.allow", "ada", "search")
    assert event["request"] == str(request.pk)
    assert event["instance"] == str(request.instance_id)
    assert json.dumps(event["data"])
    assert call_as(SUPERUSER).get("audit/", verb="bundle.activate").json["items"][0]["system"] == "bootstrap"
