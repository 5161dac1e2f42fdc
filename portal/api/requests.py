"""Endpoints of requests: submit, preview, list, read, vote, withdraw, timeline.

In charge of: turning bodies into calls of one service and its results into answers. Not in charge of: any decision.
"""

from __future__ import annotations

import uuid
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.adapters import control_plane
from portal.api import audit, filters, pagination, parsing, request_shapes
from portal.api import decision_shapes as shapes
from portal.api.door import Door
from portal.api.schemas import requests as described
from portal.domain.decision import to_json
from portal.domain.draft import BODIES, Draft, parse_draft
from portal.domain.lifecycle import RequestState
from portal.models import UNDELIVERED_STATES, Request
from portal.rendering.claim import claim_yaml
from portal.services import access, approving, inbox, rehearsing, submitting, withdrawing
from portal.services.errors import Conflict, InvalidInput
from portal.services.sketching import sketch_claim

WAITING_FOR = filters.choice("waitingFor", "waitingFor", ["me"], "me: only requests that wait for my vote")
FILTERS = (
    filters.choice("state", "state", RequestState, "Only requests in this state"),
    filters.choice("kind", "kind", BODIES, "Only requests of this kind"),
    filters.slug("team", "team__slug", "Only requests of this team"),
    filters.slug("environment", "environment__slug", "Only requests for this environment"),
    filters.slug("offering", "offering", "Only requests for this offering"),
    filters.text("requester", "requester__username", "Only requests of this person"),
    WAITING_FOR,
)


class _Writing(Door):
    """What one wrote comes back, and as much of it as one may read."""

    def shown(self, request: Request) -> dict[str, Any]:
        rows = list(Request.objects.filter(pk=request.pk).values(*request_shapes.FIELDS))
        whole = request_shapes.requests(rows)[0]
        return whole if self.actor.has("read") else {name: whole[name] for name in request_shapes.RECEIPT}


class RequestList(_Writing):
    """All requests that one may see, newest first; and where new ones are submitted."""

    @extend_schema(**described.LIST, parameters=filters.described(FILTERS, paged=True))
    def get(self, request: HttpRequest) -> Response:
        found = pagination.read_filters(request, FILTERS)
        mine = found.pop(WAITING_FOR.lookup, None)
        rows = inbox.answerable(self.actor) if mine else access.visible_requests(self.actor)
        page = pagination.page(request, rows.filter(**found).values(*request_shapes.FIELDS), pagination.NEWEST_FIRST)
        return Response(page.of(request_shapes.requests(page.rows)))

    @extend_schema(**described.SUBMIT, parameters=described.HEADERS)
    def post(self, request: HttpRequest) -> Response:
        submitted = submitting.submit(_draft(request), acting=self.actor)
        answer = self.shown(submitted.request)
        status = 201 if submitted.created else 200
        return Response(answer, status=status, headers={"Location": answer["links"]["self"]})


class RequestPreview(Door):
    """What a submission would bring, by the same code. Nothing is written."""

    @extend_schema(**described.PREVIEW)
    def post(self, request: HttpRequest) -> Response:
        preview = submitting.preview(_draft(request), acting=self.actor)
        result = to_json(preview.decision)
        claim = sketch_claim(preview)
        committed = preview.inputs.committed
        return Response(
            {
                "outcome": preview.decision.outcome,
                "reasons": shapes.reasons(result),
                "stages": shapes.demands(result),
                "usage": shapes.usage(result),
                "quote": shapes.quote(result),
                "budgets": shapes.budgets(result),
                "cost": shapes.cost(result, shapes.money(committed), preview.proposal.kind),
                "difference": shapes.differences(preview.proposal.difference),
                "spec": preview.proposal.spec,
                "claim": claim_yaml(claim) if claim is not None else None,
                "controlPlane": shapes.control_plane(rehearsing.rehearse(preview, control_plane)),
            }
        )


class RequestRehearsal(Door):
    """What the control plane says of a request before it is delivered: its defaults, its rules, what differs from what
    runs. Nothing is written there either."""

    @extend_schema(**described.REHEARSAL)
    def get(self, request: HttpRequest, request_id: uuid.UUID) -> Response:
        filters.read(request, ())
        found = access.request_for(self.actor, request_id)
        if found.state not in UNDELIVERED_STATES:
            raise Conflict("not-waiting", f"The request is {found.state}: there is nothing to try out any more.")
        said = rehearsing.rehearse_request(found, control_plane)
        return Response({"controlPlane": shapes.control_plane(said)})


class RequestDetail(Door):
    @extend_schema(**described.READ)
    def get(self, request: HttpRequest, request_id: uuid.UUID) -> Response:
        filters.read(request, ())
        row = access.request_values(self.actor, request_id, request_shapes.FIELDS)
        return Response(request_shapes.requests([row])[0])


class RequestTimeline(Door):
    """The audit events of one request, oldest first."""

    @extend_schema(**described.TIMELINE, parameters=filters.described((), paged=True))
    def get(self, request: HttpRequest, request_id: uuid.UUID) -> Response:
        pagination.read_filters(request, ())
        found = access.request_for(self.actor, request_id)
        rows = access.visible_audit(self.actor).filter(request=found.pk)
        return Response(audit.events(request, rows, pagination.BY_NUMBER))


class RequestApprove(_Writing):
    answer: approving.Answer = "approve"

    @extend_schema(**described.APPROVE)
    def post(self, request: HttpRequest, request_id: uuid.UUID) -> Response:
        comment, seen = parsing.vote_body(request.data)
        voted = approving.vote(request_id, self.answer, comment, acting=self.actor, seen_decision=seen)
        return Response(self.shown(voted))


class RequestReject(RequestApprove):
    answer: approving.Answer = "reject"

    @extend_schema(**described.REJECT)
    def post(self, request: HttpRequest, request_id: uuid.UUID) -> Response:
        return super().post(request, request_id)


class RequestWithdraw(_Writing):
    @extend_schema(**described.WITHDRAW)
    def post(self, request: HttpRequest, request_id: uuid.UUID) -> Response:
        parsing.object_of(request.data, set())
        return Response(self.shown(withdrawing.withdraw(request_id, acting=self.actor)))


def _draft(request: HttpRequest) -> Draft:
    draft = parse_draft(parsing.with_header_key(request.data, request.headers.get(parsing.KEY_HEADER)))
    if isinstance(draft, list):
        raise InvalidInput(draft)
    return draft
