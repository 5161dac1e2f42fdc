"""A request's page, and what people do there: vote, withdraw."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect

from portal.adapters import control_plane
from portal.domain import quota, strict_yaml
from portal.domain.decision import APPLIED, CHANGES, Decision, from_json
from portal.domain.lifecycle import InstancePhase, RequestState, Verb, verbs
from portal.domain.schema import Problem
from portal.models import UNDELIVERED_STATES, AuditEvent, DecisionRecord, Membership, Quota, Request, Stage, Team
from portal.rendering.claim import claim_yaml
from portal.services import approving, loading, rehearsing, withdrawing
from portal.services.access import Actor, own_team_ids, request_for
from portal.services.changing import request_of
from portal.services.errors import Conflict, InvalidInput
from portal.services.inbox import waits_for
from portal.services.locks import team_chain
from portal.web import figures, specs, timeline
from portal.web.doors import page, show, status_of
from portal.web.lists import title_of
from portal.web.paging import page_of
from portal.web.rehearsals import said

MAX_COMMENT = 4_000
MOVING = {RequestState.APPROVED.value, RequestState.DELIVERING.value}  # goes on by itself: the page looks again
DECIDING = [f"request.{verb}" for verb in (Verb.APPROVE, Verb.REJECT, Verb.DENY, Verb.WITHDRAW, Verb.EXPIRE)]


@dataclass(frozen=True)
class Refused:
    """A vote that wasn't counted, said on the request's page. `field`: what is wrong with the comment."""

    title: str
    message: str
    comment: str
    field: str = ""


@dataclass(frozen=True)
class QuotaLink:
    """The form that asks for a quota in which a denied request would fit."""

    team: str
    dimension: str
    limit: int

    @property
    def url(self) -> str:
        query = {"team": self.team, "dimension": self.dimension, "limit": self.limit}
        return f"/quotas/raise/?{urlencode(query)}"


@page("GET")
def request(request: HttpRequest, acting: Actor, request_id: uuid.UUID) -> HttpResponse:
    found = request_for(acting, request_id)
    events = _events(found)
    mark = _mark(found, events)
    if request.headers.get("HX-Request") and request.GET.get("seen") == mark:
        return HttpResponse(status=204)  # htmx changes nothing
    return _page(request, acting, found)


@page("GET", "POST")
def vote(request: HttpRequest, acting: Actor, request_id: uuid.UUID) -> HttpResponseBase:
    """Approve or reject what the page showed: the decision's id comes with the form. A vote that comes too late, or
    says too little, is answered with the request as it is now, and the comment isn't lost."""
    if request.method != "POST":
        return redirect("request", request_id=request_id)  # who reloads, or signs in again, on a refused vote
    answer = request.POST.get("answer", "")
    if answer not in ("approve", "reject"):
        raise InvalidInput([Problem("answer", "not-one-of", f"“{answer[:40]}” is neither approve nor reject")])
    comment = request.POST.get("comment", "").replace("\r\n", "\n").strip()
    seen = request.POST.get("decision", "")
    if not (seen.isascii() and seen.isdigit() and len(seen) < 19):
        raise InvalidInput([Problem("decision", "missing-field", "the form must say which decision was shown")])
    word = "approval" if answer == "approve" else "rejection"
    try:
        _check_comment(comment)
        approving.vote(request_id, cast(approving.Answer, answer), comment, acting=acting, seen_decision=int(seen))
    except (Conflict, InvalidInput) as error:
        found = request_for(acting, request_id)
        refused = _refused(found, word, comment, error)
        return _page(request, acting, found, refused, status_of(error))
    messages.info(request, f"Your {word} was recorded.")  # what follows, the page shows
    return redirect("request", request_id=request_id)


def _check_comment(comment: str) -> None:
    if len(comment) > MAX_COMMENT or "\x00" in comment:
        told = f"a comment has at most {MAX_COMMENT} characters, this one {len(comment)}, and no U+0000"
        raise InvalidInput([Problem("/comment", "too-long", told)])


def _refused(found: Request, word: str, comment: str, error: Conflict | InvalidInput) -> Refused:
    title = f"Your {word} was not counted"
    if isinstance(error, InvalidInput):
        return Refused(title, error.message, comment, error.problems[0].message)
    moment = _decided_by(found)
    if found.state == RequestState.WAITING or moment is None:
        return Refused(title, error.message, comment)
    return Refused(title, f"It is decided: {moment.who} {moment.sentence}.", comment)


def _page(
    request: HttpRequest, acting: Actor, found: Request, refused: Refused | None = None, status: int = 200
) -> HttpResponse:
    events = _events(found)
    shown = page_of(request, events.order_by("-id"), 50)
    context = {
        "request_": found,
        "title": title_of(found),
        "waits": waits_for(found),
        "done": _done(found),
        "decided": _decided_by(found),
        "refused": refused,
        "moving": found.state in MOVING,
        "seen": _mark(found, events),
        "events": shown,
        "moments": timeline.story(shown.rows),
        **_decided(found),
        **_content(found),
        **_actions(found, acting),
    }
    return show(request, acting, "request", context, status)


@page("GET")
def rehearsal(request: HttpRequest, acting: Actor, request_id: uuid.UUID) -> HttpResponse:
    """What the control plane says of a request that waits: asked for by the page itself, or by a click."""
    found = request_for(acting, request_id)
    waits = found.state in UNDELIVERED_STATES
    asked = said(rehearsing.rehearse_request(found, control_plane)) if waits else None
    template = "_rehearsal" if request.headers.get("HX-Request") else "rehearsal"
    return show(request, acting, template, {"request_": found, "title": title_of(found), "rehearsal": asked})


@page("POST")
def withdraw(request: HttpRequest, acting: Actor, request_id: uuid.UUID) -> HttpResponseBase:
    withdrawing.withdraw(request_id, acting=acting)
    messages.info(request, "The request was withdrawn. What it held is free again.")
    return redirect("request", request_id=request_id)


def _events(found: Request) -> QuerySet[AuditEvent]:
    """Its own steps, and what was observed of its instance while it was open."""
    mine = Q(request=found)
    if found.instance is not None:
        until = {} if found.state in MOVING else {"at__lte": found.changed_at}
        mine |= Q(request=None, instance=found.instance, at__gte=found.created_at, **until)
    return AuditEvent.objects.filter(mine).select_related("actor")


def _mark(found: Request, events: QuerySet[AuditEvent]) -> str:
    last = events.order_by("-id").first()
    return f"{found.state}-{last.pk if last else 0}"


def _decided_by(found: Request) -> timeline.Moment | None:
    """Who decided it, and how; None while it is open or if the policies allowed it at once."""
    events = AuditEvent.objects.filter(request=found, verb__in=DECIDING).select_related("actor").order_by("-id")[:1]
    return next(iter(timeline.moments(events)), None)


def _done(found: Request) -> str:
    """What a request that is done has brought about."""
    if found.kind != "Quota":
        seen = {"Delete": "gone", "Suspend": "suspended"}.get(found.kind, "ready as asked")
        return f"Done: it was seen to be {seen}."
    asked = found.spec.get("limit")
    row = Quota.objects.filter(team=found.team, dimension=found.spec.get("dimension")).first()
    if row is None or row.limit == asked:
        return f"Done: the quota is {asked} now."
    return f"Done: the quota was set to {asked}. Since then it was changed, to {row.limit}."


def _decided(found: Request) -> dict[str, Any]:
    records: list[DecisionRecord] = list(found.decisions.order_by("id"))
    record = records[-1] if records else None
    return {
        "record": record,
        "figures": figures.of_record(record) if record else None,
        "earlier": [(each, figures.of_record(each)) for each in records[:-1]],
    }


def _content(found: Request) -> dict[str, Any]:
    instance = found.instance
    spec = spec_of(found)
    # Only a claim that was rendered for it: before, and once others came after it, the instance's is another.
    own = instance is not None and (request_of(instance.claim) == found.pk or found.kind == "Delete")
    return {
        "differences": differences_of(found, spec),
        "leaves": specs.leaves(spec),
        "spec_yaml": strict_yaml.dump(spec),
        "claim_yaml": claim_yaml(instance.claim) if own and instance is not None and instance.claim else "",
        "may_rehearse": found.state == RequestState.WAITING and found.kind in APPLIED,
    }


def differences_of(found: Request, spec: Any) -> list[tuple[str, str, str]]:
    """What it changes: as it was asked, which is what votes bind to."""
    if found.kind in CHANGES:
        return specs.changes(found.difference)
    return [] if found.kind == "Delete" or found.old is None else specs.differences(found.old, spec)


def spec_of(found: Request) -> Any:
    """What was asked, in the order of its offering's schema."""
    if found.document is None:
        return found.spec
    return specs.in_order(found.spec, loading.offering(found.document).spec_schema)


def _actions(found: Request, acting: Actor) -> dict[str, Any]:
    waiting = found.state == RequestState.WAITING
    asked = waiting and any(stage.group in acting.groups() for stage in approving.current_stages(found))
    why = approving.why_not(found, acting) if waiting else None
    return {
        "rounds": _rounds(found),
        "may_vote": waiting and why is None,
        "why_not": why.message if why is not None and (asked or why.code == "own-request") else "",
        "may_withdraw": Verb.WITHDRAW in verbs(RequestState(found.state)) and _may_withdraw(found, acting),
        "ask_again_url": _ask_again_url(found),
        "raise_links": _raise_links(found, acting),
    }


def _raise_links(found: Request, acting: Actor) -> list[QuotaLink]:
    """For each quota that denied it, if it is a team's that this person may ask for."""
    record = found.decisions.order_by("id").last()
    if found.state != RequestState.DENIED or record is None:
        return []
    lines = [line for line in from_json(Decision, record.result).usage if not quota.fits(line)]
    mine = Team.objects.filter(slug__in=[line.team for line in lines])
    if not acting.is_admin:
        mine = mine.filter(pk__in=own_team_ids(acting))
    slugs = set(mine.values_list("slug", flat=True))
    return [QuotaLink(line.team, line.dimension, line.after) for line in lines if line.team in slugs]


def _may_withdraw(found: Request, acting: Actor) -> bool:
    """Whether the button is shown; services.withdrawing decides."""
    if acting.user.pk in {found.requester_id, found.made_for_id}:
        return True
    owner = Membership.objects.filter(user=acting.user, role=Membership.Role.OWNER)
    return owner.filter(team__in=team_chain(found.team)).exists()


def _ask_again_url(found: Request) -> str:
    ended = {
        RequestState.DENIED,
        RequestState.REJECTED,
        RequestState.WITHDRAWN,
        RequestState.EXPIRED,
        RequestState.FAILED,
    }
    if found.state not in ended:
        return ""
    if found.kind == "Create":
        return f"/offerings/{found.offering}/request/?from={found.pk}"
    if found.kind == "Quota":
        return f"/quotas/raise/?team={found.team.slug}&dimension={found.spec.get('dimension')}"
    if found.kind in CHANGES and found.instance is not None and found.instance.phase != InstancePhase.GONE:
        address = f"/instances/{found.instance.pk}/{found.kind.lower()}/"
        return f"{address}?from={found.pk}" if found.kind == "Change" else address
    return ""


def _rounds(found: Request) -> list[tuple[int, list[tuple[Stage, int]]]]:
    """(round, [(stage, approvals)]), the last round first."""
    stages = list(found.stages.prefetch_related("votes__voter"))
    numbers = sorted({stage.round for stage in stages}, reverse=True)
    return [
        (number, [(stage, approving.approvals(stage)) for stage in stages if stage.round == number])
        for number in numbers
    ]
