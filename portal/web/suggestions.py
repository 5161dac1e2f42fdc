"""What a free text of a form may hold, learnt from what is priced: classes, sizes and regions that the platform knows.

An offering's governance file says how a spec leads to a price (`"gpu." + spec.accelerator.class`) and to regions
(`spec.regions`). Read backwards, the active price list names the values that have a price. Only suggestions: a form
still takes any other value that its schema takes.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from portal.domain import strict_yaml
from portal.domain.pricing import EVERYWHERE
from portal.models import ActiveDocument, Document, Price
from portal.services.loading import GOVERNANCE
from portal.web.fields import Choice, Field
from portal.web.figures import plain

MOST = 60  # suggestions of one field
_KEY = re.compile(r'\s*"([^"\\]+)"\s*\+\s*spec\.([A-Za-z0-9_.]+)\s*')
_PATH = re.compile(r"\s*spec\.([A-Za-z0-9_.]+)\s*")


def suggest(spec: Field, document: Document) -> None:
    """Add suggestions to the texts, and boxes to the lists of texts, that decide price and place."""
    governance: dict[str, Any] = strict_yaml.parse(document.texts[GOVERNANCE])["spec"]
    fields = {each.pointer: each for each in spec.walk()}
    active = ActiveDocument.objects.filter(kind=Document.Kind.PRICES).values("document")
    prices = Price.objects.filter(document__in=active)
    for line in governance.get("prices") or []:
        match = _KEY.fullmatch(str(line.get("sku", "")))
        field = fields.get(_pointer(match[2])) if match else None
        if match and field and field.widget == "text":
            field.suggestions = _priced(list(prices.filter(sku__startswith=match[1])[:1000]), match[1])
    match = _PATH.fullmatch(str(governance.get("regions") or ""))
    field = fields.get(_pointer(match[1])) if match else None
    if field and field.widget == "lines":
        regions = prices.exclude(region=EVERYWHERE).order_by("region").values_list("region", flat=True).distinct()
        _into_boxes(field, list(regions[:MOST]))


def _priced(rows: list[Price], prefix: str) -> list[Choice]:
    """One suggestion per sku, with the dearest price: that is what is quoted when no region is chosen."""
    dearest: dict[str, Price] = {}
    for row in rows:
        best = dearest.get(row.sku)
        if best is None or (row.price or Decimal(0)) > (best.price or Decimal(0)):
            dearest[row.sku] = row
    return [
        Choice(sku.removeprefix(prefix), _label(sku.removeprefix(prefix), row))
        for sku, row in sorted(dearest.items())[:MOST]
    ]


def _label(name: str, row: Price) -> str:
    if row.price is None:
        return f"{name}: price needs review"
    return f"{name}: up to {plain(row.price)} {row.currency} per {row.unit}"


def _into_boxes(field: Field, known: list[str]) -> None:
    if not known:
        return
    chosen = [line for line in field.value.split("\n") if line]
    field.widget = "checks"
    field.choices = [Choice(name, name) for name in dict.fromkeys([*known, *chosen])]
    field.value = chosen
    field.hint = ""


def _pointer(path: str) -> str:
    return "/spec/" + path.replace(".", "/")
