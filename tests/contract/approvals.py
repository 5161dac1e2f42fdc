"""Signed approvals of the example claims, by a key that is only for tests; both sides of the contract get them.

Ed25519 signs the same twice, so the tokens can be golden files.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from portal.rendering.approval_token import approval_payload, with_approval
from portal.rendering.claim import facts_from_claim
from portal.services.signing import VALID_FOR, signed
from tests.contract.claims import claim_of, offering_named

KID = "2026-12-01-test"
ISSUED = dt.datetime(2026, 12, 1, 12, 0, tzinfo=dt.UTC)
PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC_PEM = (
    PRIVATE.public_key()
    .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    .decode()
)


def approved(example: str) -> dict[str, Any]:
    """The claim of an example with its approval, as the portal delivers it."""
    return approve(claim_of(example), ISSUED)


def approve(claim: dict[str, Any], issued: dt.datetime) -> dict[str, Any]:
    """A claim with an approval of what it says, in place of the one that it has."""
    facts = facts_from_claim(claim)
    ceilings = offering_named(facts.offering).measure(facts.spec)
    payload = approval_payload(claim, ceilings, issued, issued + VALID_FOR)
    return with_approval(claim, signed(payload, KID, PRIVATE), ceilings)
