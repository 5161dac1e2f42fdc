"""What is worth knowing of a decision beside the rules' own words: why nobody was asked, that the offering has moved.

In charge of: these sentences. Not in charge of: deciding (governance).
"""

from __future__ import annotations

from collections.abc import Iterable

from portal.domain import budget, quota
from portal.domain.decision import Inputs, Quote, Reason, UsageLine


def within(inputs: Inputs, usage: Iterable[UsageLine], quote: Quote | None) -> Reason:
    """Why nobody had to be asked, with the figures."""
    if inputs.request.kind == "Delete":
        return Reason("within-policy", "note", "no policy speaks against the deletion")
    parts = [
        f"{line.team} will hold {line.after} of {line.limit} {line.dimension}"
        for line in quota.tightest(usage).values()
        if line.limit is not None or line.after
    ]
    if quote is not None and quote.monthly is not None:
        was = inputs.committed
        instead = "" if was is None else f" instead of {budget.money(was, quote.currency)}"
        parts.append(f"it costs up to {budget.money(quote.monthly, quote.currency)} a month{instead}")
    told = f": {'; '.join(parts)}" if parts else ""
    return Reason("within-policy", "note", f"within quota, budget and policies{told}")


def moved(inputs: Inputs) -> list[Reason]:
    """A change goes on with the offering as it is now: whoever votes should know that it isn't the one of before."""
    if inputs.offering_was is None or inputs.offering_digest is None or inputs.offering_was == inputs.offering_digest:
        return []
    message = (
        f"the offering {inputs.offering} has changed since this was last approved; from here on it follows version "
        f"{inputs.offering_digest[:12]} instead of {inputs.offering_was[:12]}"
    )
    return [Reason("offering-moved", "note", message)]
