"""Offerings, policies and prices from files: what changes, what is refused, and that what lives is never broken."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from portal.models import ActiveDocument, AuditEvent, Document
from portal.services import deciding, loading, submitting
from portal.services.errors import Conflict, NotFound, ServiceError
from tests.sample import actor, draft, model_body

pytestmark = pytest.mark.django_db
POLICIES = Path(settings.BASE_DIR) / "portal" / "policies"


@pytest.fixture
def apis(tmp_path: Path, sample: None) -> Path:
    """A copy of the shipped offerings to edit."""
    shutil.copytree(settings.OFFERINGS_PATH[0], tmp_path / "apis")
    return tmp_path / "apis"


def edit(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text, f"{path} does not hold {before!r} any more"
    path.write_text(text.replace(before, after))


def test_the_same_files_change_nothing(apis: Path) -> None:
    events = AuditEvent.objects.count()
    assert loading.load_all([apis], None, None, system="test") == []
    assert AuditEvent.objects.count() == events


def test_an_edited_offering_governs_from_now_on_and_the_old_text_is_kept(apis: Path) -> None:
    before = ActiveDocument.objects.get(kind="offering", name="modeldeployments").document_id
    edit(apis / "modeldeployments" / "offering.yaml", "maxLength: 40", "maxLength: 30")
    assert loading.load_all([apis], None, None, system="test") == ["offering modeldeployments: taken in"]
    after = ActiveDocument.objects.get(kind="offering", name="modeldeployments").document_id
    assert before != after
    assert loading.offering_by_digest(before).naming.max_length == 40
    assert loading.offering_by_digest(after).naming.max_length == 30


def test_a_retired_offering_takes_no_requests_and_its_text_is_kept(apis: Path) -> None:
    shutil.rmtree(apis / "modeldeployments")
    bundle = apis / "bundle.yaml"
    bundle.write_text(
        "apiVersion: portal.aiplatform.example.org/v1\nkind: PolicyBundle\nmetadata: {name: small}\nspec:\n"
        "  currency: USD\n  quote: {validDays: 30}\n  guardrails: []\n  approvals: []\n"
        "  budgetApprovers: {group: finance-approvers, quorum: 1, timeoutHours: 1}\n"
        "  priceReviewers: {group: finance-approvers, quorum: 1, timeoutHours: 1}\n"
        "  quotaApprovers: {group: platform-admins, quorum: 1, timeoutHours: 1}\n"
    )
    assert "offering modeldeployments: taken in" in loading.load_all([apis], bundle, None, system="test")
    with pytest.raises(NotFound):
        submitting.submit(draft(model_body()), acting=actor("ada"))
    assert Document.objects.filter(kind="offering", name="modeldeployments").exists()


def test_an_offering_past_its_date_takes_no_new_requests(apis: Path) -> None:
    edit(
        apis / "modeldeployments" / "offering.yaml",
        "deprecation: null",
        'deprecation: {message: "Use the new one.", after: "2026-01-01"}',
    )
    loading.load_all([apis], None, None, system="test")
    with pytest.raises(Conflict, match="Use the new one"):
        submitting.submit(draft(model_body()), acting=actor("ada"))


def _typo_in_metering(apis: Path) -> None:
    edit(apis / "modeldeployments" / "offering.yaml", "0 : spec.accelerator.count", "0 : spec.accelerator.cuont")


def _field_that_a_policy_needs_is_gone(apis: Path) -> None:
    edit(apis / "modeldeployments" / "definition.yaml", "dataClassification:", "classification:")


def _no_yaml(apis: Path) -> None:
    (apis / "modeldeployments" / "definition.yaml").write_text("a: [")


def _a_key_twice(apis: Path) -> None:
    edit(apis / "modeldeployments" / "offering.yaml", "  owner: platform-team", "  owner: a\n  owner: platform-team")


def _bytes_that_are_no_text(apis: Path) -> None:
    (apis / "modeldeployments" / "offering.yaml").write_bytes(b"\xff\xfe")


@pytest.mark.parametrize(
    ("spoil", "names", "reason"),
    [
        (_typo_in_metering, "cuont", "a typo in CEL must name itself, not count nothing"),
        (_field_that_a_policy_needs_is_gone, "dataClassification", "else a guardrail would fail at each request"),
        (_no_yaml, "definition.yaml", "the file is named"),
        (_a_key_twice, "owner", "the second would silently win"),
        (_bytes_that_are_no_text, "modeldeployments", "no stack trace"),
    ],
)
def test_what_is_wrong_is_named_and_changes_nothing(
    apis: Path, spoil: Callable[[Path], None], names: str, reason: str
) -> None:
    before = list(ActiveDocument.objects.values_list("name", "document_id"))
    spoil(apis)
    with pytest.raises(ServiceError) as refusal:
        loading.load_all([apis], None, None, system="test")
    assert names in refusal.value.message, reason
    assert list(ActiveDocument.objects.values_list("name", "document_id")) == before, reason


def test_a_price_that_can_t_be_relied_on_is_never_free(apis: Path) -> None:
    prices = apis / "prices.csv"
    shutil.copy(POLICIES / "sample-prices.csv", prices)
    edit(prices, "gpu.l4,hour,0.80", "gpu.l4,hour,0")
    notes = loading.load_all([apis], None, prices, system="test")
    assert any("gpu.l4" in note and "needs review" in note for note in notes)
    request = submitting.submit(draft(model_body()), acting=actor("ada")).request
    assert request.state == "Waiting"
    assert request.quote_monthly is None
    assert [stage.group for stage in request.stages.all()] == ["finance-approvers"]
    assert "price-unknown" in {reason.code for reason in deciding.decision_of(request).reasons}
