"""What a signed approval says: which claim was approved, with which spec, up to which ceilings, at which quote.

In charge of: the payload of the token in the claim's annotation, the ceilings as a text that CEL can read at the door
(portal.rendering.admission), and the ConfigMap of the public keys that it is verified with. Not in charge of: keys and
signatures (services.signing), or of what the composition function makes of it.

The payload's members `iss`, `aud`, `sub`, `iat` and `exp` are those of RFC 7519, section 4.1.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from portal.rendering.claim import ClaimError, ClaimFacts, facts_from_claim
from portal.rendering.names import ANNOTATION_PREFIX

APPROVAL = ANNOTATION_PREFIX + "approval"
CEILINGS = ANNOTATION_PREFIX + "ceilings"
ISSUER, AUDIENCE, TYPE = "portal", "composition-function", "approval+jwt"
KEYS_NAMESPACE, KEYS_NAME = "portal-system", "portal-approval-keys"


def approval_payload(
    claim: Mapping[str, Any], ceilings: Mapping[str, int], issued: dt.datetime, expires: dt.datetime
) -> dict[str, Any]:
    """The payload for a claim as rendered. `ceilings`: dimension -> how much of it the approved spec holds at most.

    Raises ClaimError for a claim that is not the portal's.
    """
    facts = facts_from_claim(claim)
    return {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": facts.instance_id,
        "iat": int(issued.timestamp()),
        "exp": int(expires.timestamp()),
        "request": facts.request_id,
        "claim": {
            "apiVersion": facts.api_version,
            "kind": facts.kind,
            "namespace": facts.namespace,
            "name": facts.name,
        },
        "spec": facts.spec,
        "ceilings": dict(sorted(ceilings.items())),
        "quote": {"monthly": _amount(facts), "currency": facts.quote_currency},
    }


def ceilings_text(ceilings: Mapping[str, int]) -> str:
    """`gpu.h100-80gb=4,gpu.l4=2`: sorted by dimension. CEL at an API server's door has no JSON, but it can split.

    Raises ClaimError for a dimension that holds one of the two separators.
    """
    for dimension in ceilings:
        if "," in dimension or "=" in dimension:
            raise ClaimError("/metadata/annotations", f"the dimension {dimension!r} holds ',' or '='")
    return ",".join(f"{dimension}={amount}" for dimension, amount in sorted(ceilings.items()))


def with_approval(claim: Mapping[str, Any], token: str, ceilings: Mapping[str, int]) -> dict[str, Any]:
    """The claim with its approval in it, in place of an earlier one."""
    metadata = claim["metadata"]
    annotations = {**metadata["annotations"], APPROVAL: token, CEILINGS: ceilings_text(ceilings)}
    return {**claim, "metadata": {**metadata, "annotations": annotations}}


def approval_of(claim: Mapping[str, Any] | None) -> str | None:
    """The token in a claim's annotations, None where there is none."""
    annotations = ((claim or {}).get("metadata") or {}).get("annotations") or {}
    token = annotations.get(APPROVAL)
    return token if isinstance(token, str) and token else None


def keys_manifest(keys: Mapping[str, str]) -> dict[str, Any]:
    """The ConfigMap that the composition function asks for: key id -> PEM of the public key, as `<key id>.pem`."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": KEYS_NAME, "namespace": KEYS_NAMESPACE},
        "data": {f"{kid}.pem": pem for kid, pem in sorted(keys.items())},
    }


def _amount(facts: ClaimFacts) -> str | None:
    amount: Decimal | None = facts.quote_monthly
    return None if amount is None else format(amount, "f")
