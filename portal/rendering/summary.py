"""What came of a request in three sentences, for those who show it as it is: Backstage's templates, notifications.

In charge of: the words. Not in charge of: what was decided (domain.governance) or who may vote (services).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from portal.domain.lifecycle import RequestState

_DECISIONS = {
    "Allowed": "Allowed at once: quota, budget and policies say yes.",
    "NeedsApproval": "People have to approve it.",
    "Denied": "Denied by the policies.",
}
_NEXT = {
    RequestState.APPROVED: "Nobody is waited for: the portal delivers it.",
    RequestState.DELIVERING: "Nobody is waited for: it is being delivered.",
    RequestState.DONE: "Nobody is waited for: it is done.",
    RequestState.DENIED: "Nothing was done. Ask for something else, or for more quota.",
    RequestState.REJECTED: "Nothing was done: somebody rejected it.",
    RequestState.WITHDRAWN: "Nothing was done: it was withdrawn.",
    RequestState.EXPIRED: "Nothing was done: nobody answered in time. Ask again.",
    RequestState.SUPERSEDED: "Another request took its place.",
    RequestState.FAILED: "It failed; what it holds is shown in the portal.",
}


def summary(
    *,
    outcome: str | None,
    reasons: Sequence[Mapping[str, Any]],
    quote: Mapping[str, Any] | None,
    state: str | None = None,
    waits_for: Mapping[str, Any] | None = None,
    stages: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """`decision`, `price`, `next`, each a sentence, and `reasons`, a sentence each.

    `quote` and `reasons` as the API shows them; `state` None is a preview, whose `stages` say who would be asked.
    """
    return {
        "decision": _DECISIONS.get(outcome or "", "Not decided yet."),
        "price": _price(quote),
        "next": _next(state, waits_for, stages, outcome),
        "reasons": [str(reason["message"]) for reason in reasons],
    }


def _price(quote: Mapping[str, Any] | None) -> str:
    if quote is None:
        return "It costs nothing more."
    if quote.get("monthly") is None:
        return "Its price is not known, and is reviewed."
    until = f"; the price holds until {quote['validUntil']}" if quote.get("validUntil") else ""
    return f"It costs up to {quote['monthly']} {quote['currency']} a month{until}."


def _next(
    state: str | None, waits_for: Mapping[str, Any] | None, stages: Sequence[Mapping[str, Any]], outcome: str | None
) -> str:
    if waits_for is not None:
        missing = waits_for["missing"]
        return f"It waits for {missing} {'person' if missing == 1 else 'people'} of {waits_for['group']}."
    if state is not None:
        return _NEXT.get(RequestState(state), f"It is {state}.")
    if outcome == "NeedsApproval":
        asked = ", then ".join(f"{stage['quorum']} of {stage['group']}" for stage in stages)
        return f"It would wait for {asked}."
    return "It would be delivered at once." if outcome == "Allowed" else "Nothing would be done."
