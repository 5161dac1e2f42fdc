"""What a control plane says of a claim that isn't delivered yet, as a page shows it.

Not in charge of: asking it (services.rehearsing).
"""

from __future__ import annotations

from dataclasses import dataclass

from portal.rendering.claim import claim_yaml
from portal.services.rehearsing import Rehearsal
from portal.web import specs


@dataclass(frozen=True)
class Said:
    """`accepted` None: it was not asked, and `message` says why. `rows`: (place, live, new) of what differs."""

    accepted: bool | None
    code: str
    message: str
    claim: str
    rows: list[tuple[str, str, str]]


def said(found: Rehearsal | None) -> Said | None:
    """None: there is no claim to ask about."""
    if found is None:
        return None
    claim = "" if found.claim is None else claim_yaml(found.claim)
    return Said(found.accepted, found.code, found.message, claim, specs.changes(found.difference))
