"""The approver's inbox: what waits for one's groups, oldest first, with the facts to decide by."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse

from portal.models import Request
from portal.services import approving
from portal.services import inbox as waiting
from portal.services.access import Actor
from portal.web import figures, specs
from portal.web.doors import page, show
from portal.web.lists import title_of
from portal.web.paging import page_of
from portal.web.requests import differences_of, spec_of


@dataclass(frozen=True)
class Item:
    """One request as an approver weighs it. `decision` is the id that a vote binds to."""

    request: Request
    title: str
    waits: waiting.WaitsFor | None
    figures: figures.Figures
    decision: int
    rows: list[tuple[str, str, str]]  # place, old, new
    why_not: str


@page("GET")
def inbox(request: HttpRequest, acting: Actor) -> HttpResponse:
    rows = waiting.for_groups(acting)
    if request.GET.get("show") != "all":
        rows = waiting.answerable(acting)
    rows = rows.select_related("team", "environment", "requester", "made_for", "instance", "document")
    found = page_of(request, rows, 10)
    items = [_item(each, acting) for each in found.rows]
    context = {"page": found, "items": items, "showing_all": request.GET.get("show") == "all"}
    context["own_count"] = waiting.own(acting).count() if acting.groups() else 0
    return show(request, acting, "inbox", {**context, "groups": acting.groups()})


def _item(found: Request, acting: Actor) -> Item:
    record = found.decisions.latest("id")
    why = approving.why_not(found, acting)
    return Item(
        request=found,
        title=title_of(found),
        waits=waiting.waits_for(found),
        figures=figures.of_record(record),
        decision=record.pk,
        rows=differences_of(found, spec_of(found)) or specs.differences(None, spec_of(found)),
        why_not=why.message if why else "",
    )
