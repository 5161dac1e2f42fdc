"""What a name was perhaps meant to be: what has neither price nor quota, beside the names that have one.

In charge of: sentences for people who look at a decision. Not in charge of: deciding; an unknown name is no error.
"""

from __future__ import annotations

import difflib

from portal.domain.decision import Decision
from portal.models import ActiveDocument, Document, Price, Quota

MOST = 12  # names shown


def unknown_names(decision: Decision) -> list[str]:
    """A sentence for each sku or dimension that nobody has heard of, with those that are known. Asks the database only
    when there is something without a price or a quota."""
    lines = decision.quote.lines if decision.quote else ()
    names = {line.sku for line in lines if not line.unit}
    names |= {line.dimension for line in decision.usage if line.limit is None}
    if not names:
        return []
    known = _known()
    return [sentence for name in sorted(names - known) if (sentence := _sentence(name, known))]


def _known() -> set[str]:
    active = ActiveDocument.objects.filter(kind=Document.Kind.PRICES).values("document")
    priced = Price.objects.filter(document__in=active).values_list("sku", flat=True).distinct()[:1000]
    limited = Quota.objects.values_list("dimension", flat=True).distinct()[:1000]
    return {*priced, *limited}


def _sentence(name: str, known: set[str]) -> str:
    family = name.split(".")[0] + "."
    alike = sorted(each for each in known if each.startswith(family)) or sorted(known)
    if not alike:
        return ""
    close = difflib.get_close_matches(name, alike, n=1)
    meant = f"Did you mean {close[0]}? " if close else ""
    more = f" and {len(alike) - MOST} more" if len(alike) > MOST else ""
    return f"{name} has neither a price nor a quota. {meant}Known here: {', '.join(alike[:MOST])}{more}."
