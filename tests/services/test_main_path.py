"""Submit, approve, deliver, observe, delete: each step's state, holdings and audit events."""

from __future__ import annotations

import pytest

from portal.models import AuditEvent, Instance, OutboxRow, Quota, Request
from portal.services import approving, deciding, submitting, withdrawing
from portal.services.errors import Conflict, Forbidden
from tests.sample import actor, draft, model_body, quota_body

pytestmark = pytest.mark.django_db


def held(team: str, dimension: str = "gpu.l4") -> tuple[int, int]:
    row = Quota.objects.get(team__slug=team, dimension=dimension)
    return row.reserved, row.used


def verbs(request: Request) -> list[str]:
    return list(AuditEvent.objects.filter(request=request).order_by("id").values_list("verb", flat=True))


def test_a_small_request_is_approved_at_once(sample: None) -> None:
    result = submitting.submit(draft(model_body()), acting=actor("ada"))
    assert result.created
    assert result.request.state == "Approved"
    assert str(result.request.quote_monthly) == "584.00"
    assert held("search") == (1, 0)
    assert held("acme") == (1, 0)
    assert OutboxRow.objects.get(topic="apply").payload == {"request": str(result.request.pk)}
    assert verbs(result.request) == ["request.allow"]


def test_a_preview_says_the_same_and_writes_nothing(sample: None) -> None:
    before = (Request.objects.count(), Instance.objects.count(), AuditEvent.objects.count(), OutboxRow.objects.count())
    preview = submitting.preview(draft(model_body()), acting=actor("ada"))
    assert preview.decision.outcome == "Allowed"
    assert str(preview.decision.quote and preview.decision.quote.monthly) == "584.00"
    after = (Request.objects.count(), Instance.objects.count(), AuditEvent.objects.count(), OutboxRow.objects.count())
    assert after == before
    assert held("search") == (0, 0)


def test_over_quota_is_a_stored_denial_that_holds_nothing(sample: None) -> None:
    result = submitting.submit(draft(model_body(team="ads", gpus=2)), acting=actor("carol"))
    assert result.request.state == "Denied"
    assert result.request.instance is None
    assert held("ads") == (0, 0)
    decision = deciding.decision_of(result.request)
    assert [(r.code, r.effect) for r in decision.reasons if r.effect == "deny"] == [("quota-exceeded", "deny")]
    assert "up to 1 fits" in decision.reasons[0].message


def test_two_approvers_neither_of_them_the_requester(sample: None) -> None:
    request = submitting.submit(draft(model_body(environment="prod")), acting=actor("erin")).request
    assert request.state == "Waiting"
    with pytest.raises(Forbidden) as refusal:
        approving.vote(request.pk, "approve", acting=actor("erin"))
    assert refusal.value.code == "own-request"
    approving.vote(request.pk, "approve", acting=actor("frank"))
    with pytest.raises(Conflict) as twice:
        approving.vote(request.pk, "approve", acting=actor("frank"))
    assert twice.value.code == "already-voted"
    assert approving.vote(request.pk, "approve", acting=actor("heidi")).state == "Approved"
    assert verbs(request) == ["request.ask", "vote.cast", "vote.cast", "request.approve"]


def test_a_rejection_gives_everything_back(sample: None) -> None:
    request = submitting.submit(draft(model_body(environment="prod")), acting=actor("ada")).request
    assert held("search") == (1, 0)
    approving.vote(request.pk, "reject", "not now", acting=actor("frank"))
    request.refresh_from_db()
    assert request.state == "Rejected"
    assert held("search") == (0, 0)
    assert request.instance is not None
    assert request.instance.phase == "Gone"


def test_a_withdrawal_gives_everything_back_and_cancels_the_delivery(sample: None) -> None:
    request = submitting.submit(draft(model_body()), acting=actor("ada")).request
    withdrawing.withdraw(request.pk, acting=actor("ada"))
    assert held("search") == (0, 0)
    assert OutboxRow.objects.get(topic="apply").outcome == "cancelled"


def test_a_quota_is_raised_by_an_admin_and_nobody_of_the_team(sample: None) -> None:
    request = submitting.submit(draft(quota_body(2)), acting=actor("carol")).request
    assert request.state == "Waiting"
    approving.vote(request.pk, "approve", acting=actor("grace"))
    request.refresh_from_db()
    assert request.state == "Done"
    assert Quota.objects.get(team__slug="ads", dimension="gpu.l4").limit == 2
    assert verbs(request) == [
        "request.ask",
        "vote.cast",
        "request.approve",
        "request.deliver",
        "quota.set",
        "request.finish",
    ]
