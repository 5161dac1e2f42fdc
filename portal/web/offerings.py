"""What can be requested, and the form that requests it, with a preview. A refused form keeps every typed value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.domain.offerings import Offering
from portal.models import Document, Request
from portal.services import loading
from portal.services.access import Actor, request_for
from portal.web import drafts
from portal.web.doors import page, show
from portal.web.fields import Field
from portal.web.forms import DraftForm, create_form
from portal.web.paging import identifier


@dataclass(frozen=True)
class SpecRow:
    """One field of an offering, for its reference table."""

    place: str
    field: Field


@page("GET")
def offerings(request: HttpRequest, acting: Actor) -> HttpResponse:
    rows = loading.active_documents(Document.Kind.OFFERING)
    return show(request, acting, "offerings", {"offerings": [loading.offering(row.document) for row in rows]})


@page("GET")
def offering(request: HttpRequest, acting: Actor, name: str) -> HttpResponse:
    found, document = loading.active_offering(name)
    form = create_form(acting, found, document)
    spec = next(field for field in form.fields if field.pointer == "/spec")
    rows = [SpecRow(each.pointer[6:].replace("/", "."), each) for each in spec.walk() if each.widget != "group"]
    return show(request, acting, "offering", {"offering": found, "rows": rows})


@page("GET", "POST")
def create(request: HttpRequest, acting: Actor, name: str) -> HttpResponseBase:
    """The form; with POST the request itself, or its preview for those without JavaScript."""
    found, document = loading.active_offering(name)
    form = create_form(acting, found, document, _source(request, acting, name))
    context = _context(found, form)
    context["prefilled"] = "from" in request.GET
    if request.method != "POST":
        return show(request, acting, "create", context)
    form.take(request.POST)
    if request.POST.get("action") == "preview":
        context["preview"] = drafts.preview(form, acting, place_errors=True)
        context["rehearsal"] = drafts.rehearsal(form, acting)
        return show(request, acting, "create", context)
    sent = drafts.submit(form, acting)
    if sent.request is None:
        return show(request, acting, "create", context, sent.status)
    messages.info(request, sent.message)
    return redirect("request", request_id=sent.request.pk)


@page("POST")
def preview(request: HttpRequest, acting: Actor, name: str) -> HttpResponse:
    """The preview panel alone, for a form that is being filled in. Writes nothing."""
    found, document = loading.active_offering(name)
    form = create_form(acting, found, document)
    form.take(request.POST)
    context = {"preview": drafts.preview(form, acting), "live": True}
    return show(request, acting, "preview", {**context, "rehearsal_url": f"/offerings/{name}/rehearsal/"})


@page("POST")
def rehearsal(request: HttpRequest, acting: Actor, name: str) -> HttpResponse:
    """What the control plane says of what is typed, alone: it may take longer, and nothing waits for it."""
    found, document = loading.active_offering(name)
    form = create_form(acting, found, document)
    form.take(request.POST)
    return show(request, acting, "_rehearsal", {"rehearsal": drafts.rehearsal(form, acting)})


def _source(request: HttpRequest, acting: Actor, name: str) -> Request | None:
    wanted = identifier(request, "from")
    if wanted is None or request.method == "POST":
        return None
    source = request_for(acting, wanted)
    return source if source.kind == "Create" and source.offering == name else None


def _context(found: Offering, form: DraftForm) -> dict[str, Any]:
    address = f"/offerings/{found.name}/"
    return {
        "offering": found,
        "form": form,
        "preview_url": f"{address}preview/",
        "action_url": f"{address}request/",
    }
