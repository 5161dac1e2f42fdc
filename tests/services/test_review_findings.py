"""What a security review got past, and can't any more."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import Group

from portal.domain.draft import Draft, parse_draft
from portal.models import Budget, Commitment, OutboxRow, Request
from portal.services import approving, delivering, loading, outbox, submitting
from portal.services.errors import Conflict, Forbidden, InvalidInput
from tests.sample import SAMPLE, actor, draft, model_body, quota_body
from tests.services.planes import embedded_plane


def test_twenty_thousand_wrong_labels_are_refused_at_once() -> None:
    body = model_body(labels={f"!{number}": "!" for number in range(20_000)})
    started = time.monotonic()
    problems = parse_draft(body)
    assert not isinstance(problems, Draft)
    assert [(problem.pointer, problem.code) for problem in problems] == [("/labels", "too-many")]
    assert time.monotonic() - started < 5, "an order of magnitude above what it takes"


def test_a_price_that_rises_before_delivery_is_committed_even_where_nobody_is_asked(
    world: None, tmp_path: Path
) -> None:
    request = submitting.submit(draft(model_body()), acting=actor("ada")).request
    assert request.quote_monthly == Decimal("584.00")
    prices = tmp_path / "prices.csv"
    text = (SAMPLE.parent.parent / "policies" / "sample-prices.csv").read_text()
    prices.write_text(text.replace("gpu.l4,hour,0.80", "gpu.l4,hour,1.60"))
    loading.load_prices(prices.read_text(), "USD", system="test")
    plane = embedded_plane()
    for row_id, lease in outbox.lease_due():
        row = OutboxRow.objects.get(pk=row_id, lease=lease)
        if row.topic == "apply":
            delivering.apply(row, lambda name: plane)
    request = Request.objects.get(pk=request.pk)
    assert request.state == "Delivering"
    assert request.quote_monthly == Decimal("1168.00")
    assert Commitment.objects.get(request=request).monthly == Decimal("1168.00")
    assert {row.committed for row in Budget.objects.filter(team__slug__in=["acme", "search"])} == {Decimal("1168.00")}
    annotations = (
        request.instance.claim["metadata"]["annotations"] if request.instance and request.instance.claim else {}
    )
    assert "1168.00" in annotations.values()


@pytest.mark.django_db
def test_a_vote_counts_only_for_who_is_in_the_group_when_it_is_cast(sample: None) -> None:
    request = submitting.submit(draft(model_body(environment="prod")), acting=actor("ada")).request
    frank = actor("frank")
    assert "platform-approvers" in frank.groups()
    frank.user.groups.remove(Group.objects.get(name="platform-approvers"))
    with pytest.raises(Forbidden) as refusal:
        approving.vote(request.pk, "approve", acting=frank)
    assert refusal.value.code == "not-an-approver"


@pytest.mark.django_db
def test_one_quota_is_asked_for_once_at_a_time(sample: None) -> None:
    submitting.submit(draft(quota_body(2)), acting=actor("carol"))
    with pytest.raises(Conflict) as refusal:
        submitting.submit(draft(quota_body(50)), acting=actor("carol"))
    assert refusal.value.code == "already-asked"


@pytest.mark.django_db
def test_it_is_made_for_somebody_of_the_team_only(sample: None) -> None:
    with pytest.raises(InvalidInput) as refusal:
        submitting.submit(draft(model_body(environment="prod", madeFor="heidi")), acting=actor("ada"))
    assert [problem.pointer for problem in refusal.value.problems] == ["/madeFor"], "else one could pick who can't vote"
    assert submitting.submit(draft(model_body(madeFor="ben")), acting=actor("ada")).request.made_for is not None


@pytest.mark.django_db
def test_a_region_that_only_looks_european_is_not(sample: None) -> None:
    spec = {**model_body()["spec"], "dataClassification": "restricted", "regions": ["eu-moon"]}
    request = submitting.submit(draft(model_body(spec=spec)), acting=actor("ada")).request
    assert request.state == "Denied"
