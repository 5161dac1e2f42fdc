"""Changing an instance: the form with its preview, suspending and resuming, and the revisions to go back to.

In charge of: pages. Not in charge of: what a change may be (services.drafting_change), or an instance's own page.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.domain.decision import APPLIED
from portal.domain.lifecycle import InstancePhase
from portal.domain.offerings import Offering
from portal.models import Document, Instance, Request
from portal.services.access import Actor, instance_for, own_team_ids
from portal.services.drafting_change import following
from portal.services.errors import Conflict
from portal.services.revisions import is_current, revisions
from portal.web import drafts, figures, specs
from portal.web.doors import page, show
from portal.web.forms import DraftForm, change_form, switch_form
from portal.web.paging import identifier, page_of


@dataclass(frozen=True)
class Revision:
    """One row of the revisions. `changed`: what it changed; of a creation, nothing."""

    request: Request
    number: int
    current: bool
    price: str
    changed: list[tuple[str, str, str]]


@page("GET", "POST")
def change(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponseBase:
    """The form; with POST the request itself, or its preview for those without JavaScript."""
    found = instance_for(acting, instance_id)
    source = _source(request, found)
    form, context = _form(found, source)
    if request.method != "POST":
        context["prefilled"] = source is not None
        return show(request, acting, "change", context)
    form.take(request.POST)
    if request.POST.get("action") == "preview":
        context["preview"] = drafts.preview(form, acting, place_errors=True)
        context["rehearsal"] = drafts.rehearsal(form, acting)
        return show(request, acting, "change", context)
    return _send(request, acting, form, "change", context)


@page("POST")
def preview(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponse:
    """The preview panel alone, for a form that is being filled in. Writes nothing."""
    form, context = _form(instance_for(acting, instance_id), None)
    form.take(request.POST)
    return show(request, acting, "preview", {**context, "preview": drafts.preview(form, acting), "live": True})


@page("POST")
def rehearsal(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponse:
    """What the control plane says of what is typed, alone: it may take longer, and nothing waits for it."""
    form, _ = _form(instance_for(acting, instance_id), None)
    form.take(request.POST)
    return show(request, acting, "_rehearsal", {"rehearsal": drafts.rehearsal(form, acting)})


@page("GET", "POST")
def suspend(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponseBase:
    return _switch(request, acting, instance_id, "Suspend")


@page("GET", "POST")
def resume(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponseBase:
    return _switch(request, acting, instance_id, "Resume")


@page("GET")
def history(request: HttpRequest, acting: Actor, instance_id: uuid.UUID) -> HttpResponse:
    """What it was asked to be, newest first."""
    found = instance_for(acting, instance_id)
    shown = page_of(request, revisions(found).select_related("requester"), 20)
    rows = [_revision(each, found) for each in shown.rows]
    context = {"instance": found, "page": shown, "rows": rows, "may_change": may_change(found, acting)}
    return show(request, acting, "revisions", context)


def may_change(found: Instance, acting: Actor) -> bool:
    """Whether the buttons are shown; services decide."""
    going = {InstancePhase.GONE.value, InstancePhase.DELETING.value}
    mine = acting.is_admin or found.team_id in own_team_ids(acting)
    return mine and bool(found.claim_uid) and found.phase not in going


def switch_of(found: Instance, offering: Offering) -> str:
    """What its page offers: to suspend it, or to resume it; empty where neither can be."""
    if offering.suspend is None:
        return ""
    return "Resume" if offering.suspended(found.spec) else "Suspend"


def _switch(request: HttpRequest, acting: Actor, instance_id: uuid.UUID, kind: str) -> HttpResponseBase:
    """Asks back first; it is a request like any other."""
    found = instance_for(acting, instance_id)
    form = switch_form(kind, str(found.pk))
    context = {"instance": found, "form": form, "kind": kind, "preview": drafts.preview(form, acting)}
    if request.method != "POST":
        return show(request, acting, "switch", context)
    form.take(request.POST)
    return _send(request, acting, form, "switch", context)


def _send(
    request: HttpRequest, acting: Actor, form: DraftForm, template: str, context: dict[str, Any]
) -> HttpResponseBase:
    sent = drafts.submit(form, acting)
    if sent.request is None:
        return show(request, acting, template, context, sent.status)
    messages.info(request, sent.message)
    return redirect("request", request_id=sent.request.pk)


def _form(found: Instance, source: Request | None) -> tuple[DraftForm, dict[str, Any]]:
    offering, document = _offering(found)
    form = change_form(offering, document, found, source)
    address = f"/instances/{found.pk}/change/"
    context = {
        "instance": found,
        "offering": offering,
        "form": form,
        "source": source,
        "action_url": address,
        "preview_url": f"{address}preview/",
        "rehearsal_url": f"{address}rehearsal/",
    }
    return form, context


def _offering(found: Instance) -> tuple[Offering, Document]:
    """The one whose fields are asked for: that which the instance would follow if nothing else is changed."""
    return following(found, found.spec)


def _source(request: HttpRequest, found: Instance) -> Request | None:
    """The request of this instance whose spec the form starts from."""
    wanted = identifier(request, "from")
    if wanted is None or request.method == "POST":
        return None
    source = found.requests.filter(pk=wanted, kind__in=APPLIED).first()
    if source is None:
        raise Conflict("no-such-revision", f"{found.name} has no request {wanted} to start from.")
    return source


def _revision(row: Request, found: Instance) -> Revision:
    price = "" if row.quote_monthly is None else f"{figures.money(row.quote_monthly)} {row.quote_currency}"
    number: int = row.number  # type: ignore[attr-defined]  # an annotation
    return Revision(row, number, is_current(row, found), price, specs.changes(row.difference))
