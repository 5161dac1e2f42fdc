"""Lists that one goes through: requests, instances, prices, the audit log. Paged and filtered; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from portal.domain.draft import BODIES
from portal.domain.lifecycle import InstancePhase, RequestState
from portal.models import ActiveDocument, Document, Price, Request
from portal.services.access import Actor, visible_audit, visible_instances, visible_requests, visible_teams
from portal.services.inbox import WaitsFor, waits_for_each
from portal.web import figures, timeline
from portal.web.doors import page, show
from portal.web.paging import choice, identifier, page_of, text

KINDS = list(BODIES)
STATES = [state.value for state in RequestState]
PHASES = [phase.value for phase in InstancePhase]


@dataclass(frozen=True)
class RequestRow:
    request: Request
    title: str
    waits: WaitsFor | None


def title_of(request: Request) -> str:
    """What a request is about, in a few words."""
    if request.kind == "Quota":
        return f"Quota {request.spec.get('dimension')} → {request.spec.get('limit')}"
    return f"{request.kind} {request.name}"


def request_rows(requests: list[Request]) -> list[RequestRow]:
    waits = waits_for_each(requests)
    return [RequestRow(request, title_of(request), waits.get(request.pk)) for request in requests]


@page("GET")
def requests(request: HttpRequest, acting: Actor) -> HttpResponse:
    filters = {
        "state": choice(request, "state", STATES),
        "kind": choice(request, "kind", KINDS),
        "team__slug": text(request, "team"),
        "requester__username": text(request, "requester"),
    }
    rows = visible_requests(acting).filter(**_set(filters)).select_related("team", "environment", "requester")
    found = page_of(request, rows.order_by("-created_at", "-id"))
    context = {"page": found, "rows": request_rows(found.rows), "states": STATES, "kinds": KINDS}
    return show(request, acting, "requests", {**context, "teams": _teams(acting)})


@page("GET")
def instances(request: HttpRequest, acting: Actor) -> HttpResponse:
    filters = {
        "phase": choice(request, "phase", PHASES),
        "offering": text(request, "offering"),
        "team__slug": text(request, "team"),
    }
    rows = visible_instances(acting).filter(**_set(filters)).select_related("team", "environment")
    if not filters["phase"]:
        rows = rows.exclude(phase=InstancePhase.GONE.value)
    found = page_of(request, rows.order_by("-created_at", "-id"))
    return show(request, acting, "instances", {"page": found, "phases": PHASES, "teams": _teams(acting)})


@page("GET")
def prices(request: HttpRequest, acting: Actor) -> HttpResponse:
    active = ActiveDocument.objects.filter(kind=Document.Kind.PRICES).values("document")
    filters = {"sku__startswith": text(request, "sku"), "region": text(request, "region")}
    rows = Price.objects.filter(document__in=active, **_set(filters))
    found = page_of(request, rows.order_by("sku", "region", "-effective_from"), 50)
    rows_shown = [(row, figures.plain(row.price) if row.price is not None else "") for row in found.rows]
    return show(request, acting, "prices", {"page": found, "rows": rows_shown})


@page("GET")
def audit(request: HttpRequest, acting: Actor) -> HttpResponse:
    filters: dict[str, Any] = {
        "verb": text(request, "verb"),
        "team__slug": text(request, "team"),
        "actor__username": text(request, "actor"),
        "request": identifier(request, "request"),
        "instance": identifier(request, "instance"),
    }
    rows = visible_audit(acting).filter(**_set(filters)).select_related("request", "instance")
    found = page_of(request, rows.order_by("-id"), 50)
    context = {"page": found, "moments": timeline.moments(found.rows), "verbs": sorted(timeline.SENTENCES)}
    context["teams"] = _teams(acting)
    return show(request, acting, "audit", context)


def _set(filters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in filters.items() if value}


def _teams(acting: Actor) -> list[str]:
    return list(visible_teams(acting).order_by("slug").values_list("slug", flat=True)[:1000])
