"""An instance's page: what was observed of it, what it is made of, what it costs; and asking for its deletion."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.adapters import control_plane
from portal.domain import strict_yaml
from portal.domain.decision import CHANGES
from portal.domain.lifecycle import InstancePhase
from portal.models import OPEN_STATES, AuditEvent, Instance
from portal.rendering.claim import claim_yaml
from portal.services import loading
from portal.services.access import Actor, instance_for, own_team_ids, visible_requests
from portal.services.instances import endpoint_of, monthly_of
from portal.web import drafts, figures, specs, status, timeline
from portal.web.changes import may_change, switch_of
from portal.web.doors import page, show
from portal.web.drift import may_govern
from portal.web.forms import delete_form
from portal.web.lists import request_rows
from portal.web.paging import page_of

SETTLED = {InstancePhase.READY.value, InstancePhase.GONE.value, InstancePhase.SUSPENDED.value}


@page("GET")
def instance(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponse:
    found = instance_for(acting, instance_id)
    audited = AuditEvent.objects.filter(instance=found).select_related("actor")
    last = audited.order_by("-id").first()
    mark = status.mark(found, last.pk if last else 0)
    if request.headers.get("HX-Request") and request.GET.get("seen") == mark:
        return HttpResponse(status=204)
    shown = page_of(request, audited.order_by("-id"), 25, "events")
    related = visible_requests(acting).filter(instance=found).select_related("team", "environment", "requester")
    asked = page_of(request, related.order_by("-created_at", "-id"), 10, "requests")
    context = {
        "instance": found,
        "seen": mark,
        "moving": found.phase not in SETTLED,
        "events": shown,
        "moments": timeline.story(shown.rows),
        "requests": asked,
        "rows": request_rows(asked.rows),
        **_observed(found),
        "may_delete": _may_delete(found, acting),
        "may_change": may_change(found, acting),
        "open_changes": list(related.filter(kind__in=CHANGES, state__in=OPEN_STATES).order_by("created_at")[:5]),
        "switch": switch_of(found, loading.offering(found.document)),
        "may_govern": may_govern(found, acting),
    }
    return show(request, acting, "instance", context)


@page("GET", "POST")
def delete(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponseBase:
    """Asks back first; the deletion is a request like any other."""
    found = instance_for(acting, instance_id)
    form = delete_form(str(found.pk))
    context = {"instance": found, "form": form, "preview": drafts.preview(form, acting)}
    if request.method != "POST":
        return show(request, acting, "delete", context)
    form.take(request.POST)
    sent = drafts.submit(form, acting)
    if sent.request is None:
        return show(request, acting, "delete", context, sent.status)
    messages.info(request, sent.message)
    return redirect("request", request_id=sent.request.pk)


def _observed(found: Instance) -> dict[str, Any]:
    commitment = monthly_of(found)
    offering = loading.offering(found.document)
    composed = [{**each, "yaml": strict_yaml.dump(each.get("manifest") or {})} for each in found.composed]
    reported = found.observed.get("status") or {}
    return {
        "offering": offering,
        "endpoint": endpoint_of(found),
        "composed": composed,
        "conditions": _conditions(reported),
        "status_yaml": strict_yaml.dump({key: value for key, value in reported.items() if key != "conditions"}),
        **status.shown(found),
        "claim_yaml": claim_yaml(found.claim) if found.claim else "",
        "leaves": specs.leaves(specs.in_order(found.spec, offering.spec_schema)),
        "monthly": f"{figures.money(commitment.monthly)} {commitment.currency}" if commitment else "",
        "control_plane": control_plane(found.environment.control_plane).label,
    }


def _conditions(status: dict[str, Any]) -> list[dict[str, Any]]:
    rows = status.get("conditions")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _may_delete(found: Instance, acting: Actor) -> bool:
    """Whether the button is shown; services decide. What was never delivered is withdrawn instead."""
    going = {InstancePhase.GONE.value, InstancePhase.DELETING.value}
    mine = acting.is_admin or found.team_id in own_team_ids(acting)
    return mine and found.claim is not None and found.phase not in going
