"""Teams: their quotas and budgets, who holds what, and the form that asks for another ceiling."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.models import Membership, Quota, Reservation, Team
from portal.services import holding
from portal.services.access import Actor, descendants, own_team_ids, visible_budgets, visible_quotas, visible_teams
from portal.services.errors import NotFound
from portal.services.locks import team_chain
from portal.web import drafts, figures
from portal.web.doors import page, show
from portal.web.forms import DraftForm, quota_form
from portal.web.paging import page_of, text


@page("GET")
def teams(request: HttpRequest, acting: Actor) -> HttpResponse:
    found = page_of(request, visible_teams(acting).order_by("slug"), 20)
    quotas: dict[int, list[figures.Bar]] = {}
    for quota in visible_quotas(acting).filter(team__in=found.rows).order_by("dimension"):
        quotas.setdefault(quota.team_id, []).append(figures.quota_bar(quota))
    budgets = {row.team_id: figures.budget_bar(row) for row in visible_budgets(acting).filter(team__in=found.rows)}
    own = own_team_ids(acting)
    rows = [
        (team, quotas.get(team.pk, []), budgets.get(team.pk), acting.is_admin or team.pk in own) for team in found.rows
    ]
    return show(request, acting, "teams", {"page": found, "rows": rows})


@page("GET")
def team(request: HttpRequest, acting: Actor, slug: str) -> HttpResponse:
    found = visible_teams(acting).filter(slug=slug).first()
    if found is None:
        raise NotFound("team", slug)
    budget = visible_budgets(acting).filter(team=found).first()
    held = Reservation.objects.filter(team__in=descendants({found.pk}), state__in=holding.HELD)
    held = (
        holding.largest_rows(held)
        .select_related("team", "request__requester", "instance")
        .order_by("dimension", "-amount", "id")
    )
    context: dict[str, Any] = {
        "team": found,
        "above": team_chain(found)[:-1],
        "below": list(visible_teams(acting).filter(parent=found).order_by("slug")[:200]),
        "quotas": [figures.quota_bar(row) for row in visible_quotas(acting).filter(team=found).order_by("dimension")],
        "budget": figures.budget_bar(budget) if budget else None,
        "holdings": page_of(request, held, 25) if _sees_holdings(acting, found) else None,
        "members": page_of(request, _members(found), 25, "members") if _sees_holdings(acting, found) else None,
        "may_ask": acting.is_admin or found.pk in own_team_ids(acting),
    }
    return show(request, acting, "team", context)


@page("GET", "POST")
def raise_quota(request: HttpRequest, acting: Actor) -> HttpResponseBase:
    """The form for another ceiling; with POST the request itself, or its preview."""
    form = _quota_form(request, acting)
    context: dict[str, Any] = {"form": form, "preview_url": "/quotas/raise/preview/", "action_url": "/quotas/raise/"}
    context["prefilled"] = "limit" in request.GET
    if request.method != "POST":
        return show(request, acting, "quota", context)
    form.take(request.POST)
    if request.POST.get("action") == "preview":
        context["preview"] = drafts.preview(form, acting, place_errors=True)
        return show(request, acting, "quota", context)
    sent = drafts.submit(form, acting)
    if sent.request is None:
        return show(request, acting, "quota", context, sent.status)
    messages.info(request, sent.message)
    return redirect("request", request_id=sent.request.pk)


@page("POST")
def quota_preview(request: HttpRequest, acting: Actor) -> HttpResponse:
    form = _quota_form(request, acting)
    form.take(request.POST)
    return show(request, acting, "preview", {"preview": drafts.preview(form, acting), "live": True})


def _quota_form(request: HttpRequest, acting: Actor) -> DraftForm:
    dimensions = Quota.objects.order_by("dimension").values_list("dimension", flat=True).distinct()
    team, dimension = text(request, "team"), text(request, "dimension")
    return quota_form(acting, list(dimensions[:200]), team, dimension, text(request, "limit"))


def _members(team: Team) -> Any:
    return Membership.objects.filter(team=team).select_related("user").order_by("-role", "user__username")


def _sees_holdings(acting: Actor, team: Team) -> bool:
    """Groups above one's own team are seen for their ceilings; what other teams hold of them is theirs to know."""
    return acting.sees_all or team.pk in own_team_ids(acting)
