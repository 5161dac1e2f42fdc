"""Signed approvals of the example claims, by a key that is only for tests; both sides of the contract get them.

Ed25519 signs the same twice, so the tokens can be golden files.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from portal.rendering.approval_token import approval_payload, with_approval
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


def approved(example: str, *, private: Ed25519PrivateKey = PRIVATE, kid: str = KID) -> dict[str, Any]:
    """The claim of an example with its approval, as the portal delivers it."""
    claim = claim_of(example)
    offering = offering_named(example.split("/")[0])
    spec = {key: value for key, value in claim["spec"].items() if key != "crossplane"}
    ceilings = offering.measure(spec)
    payload = approval_payload(claim, ceilings, ISSUED, ISSUED + VALID_FOR)
    return with_approval(claim, signed(payload, kid, private), ceilings)
