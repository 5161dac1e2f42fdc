"""What a signed approval of each example looks like: the function's verifier and an admission policy rest on it."""

from __future__ import annotations

import json

import jwt
import pytest

from portal.rendering.approval_token import APPROVAL, CEILINGS, ceilings_text
from portal.rendering.claim import ClaimError, facts_from_claim
from tests.contract.approvals import PUBLIC_PEM, approved
from tests.contract.claims import EXAMPLES, claim_of
from tests.contract.goldens import assert_golden, golden_files


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_signed_approval_is_as_it_was_seen(example: str) -> None:
    annotations = approved(example)["metadata"]["annotations"]
    token = annotations[APPROVAL]
    payload = jwt.decode(
        token,
        PUBLIC_PEM,
        algorithms=["EdDSA"],
        audience="composition-function",
        options={"verify_exp": False, "verify_iat": False},
    )
    shown = {
        "token": token,
        "header": jwt.get_unverified_header(token),
        "payload": payload,
        "ceilings": annotations[CEILINGS],
    }
    assert_golden(f"approvals/{example}.json", json.dumps(shown, indent=2, sort_keys=True) + "\n")


def test_there_is_no_golden_file_without_its_example() -> None:
    assert golden_files("approvals") == {f"approvals/{example}.json" for example in EXAMPLES}


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_approval_changes_nothing_that_the_claim_says(example: str) -> None:
    assert facts_from_claim(approved(example)) == facts_from_claim(claim_of(example))


@pytest.mark.parametrize("dimension", ["gpu,l4", "gpu=l4"])
def test_a_dimension_that_would_be_read_as_two_is_refused(dimension: str) -> None:
    with pytest.raises(ClaimError, match=dimension):
        ceilings_text({dimension: 1})
