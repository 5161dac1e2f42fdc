"""Requests in the OpenAPI document."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from portal.api.parsing import KEY_HEADER, MAX_COMMENT
from portal.api.request_shapes import RECEIPT
from portal.api.schemas import examples
from portal.api.schemas.common import (
    AnyObject,
    AnyObjectOrNull,
    AnyValue,
    Labels,
    Reason,
    amount,
    asked,
    boolean,
    day,
    example,
    number,
    operation,
    page_example,
    page_of,
    problem_example,
    shape,
    slug,
    text,
    time,
    url,
    uuid,
)
from portal.api.schemas.governed import AuditEventPage
from portal.domain.draft import BODIES
from portal.domain.lifecycle import RequestState

OUTCOMES = ["Allowed", "NeedsApproval", "Denied"]
TAG = "requests"

Usage = shape("Usage", team=slug(), dimension=text(), before=number(), after=number(), limit=number(null=True))
CostLine = shape(
    "CostLine",
    sku=text(),
    quantity=number(),
    unit=text(),
    unitPrice=amount(null=True),
    region=text(),
    monthly=amount(null=True, help_text="null: needs review, see problem; never free"),
    source=text(),
    problem=text(null=True),
)
Quote = shape(
    "Quote",
    currency=text(),
    monthly=amount(null=True, help_text="A ceiling, in the dearest eligible region. null: needs review"),
    region=text(null=True),
    validUntil=day(),
    lines=CostLine(many=True),
)
BudgetLine = shape(
    "BudgetLine", team=slug(), currency=text(), before=amount(), after=amount(), soft=amount(), hard=amount()
)
Decision = shape(
    "Decision",
    id=number(help_text="Send it with a vote, so that the vote counts only for what was seen"),
    moment=text(choices=["submission", "approval", "delivery"]),
    outcome=text(choices=OUTCOMES),
    reasons=Reason(many=True),
    usage=Usage(many=True),
    quote=Quote(allow_null=True),
    budgets=BudgetLine(many=True),
    decidedAt=time(),
)
CastVote = shape("CastVote", voter=text(), answer=text(choices=["approve", "reject"]), comment=text(), castAt=time())
Stage = shape(
    "Stage",
    code=text(),
    group=text(),
    quorum=number(),
    approvals=number(),
    message=text(),
    dueAt=time(),
    round=number(help_text="A delivery that asks again opens the next round"),
    votes=CastVote(many=True),
)
Cost = shape(
    "Cost",
    currency=text(),
    before=amount(null=True, help_text="What it counted for per month; null: nothing, or unknown"),
    after=amount(null=True, help_text="null: needs review; never free"),
    delta=amount(null=True),
)
Difference = shape(
    "Difference",
    pointer=text(help_text="/spec/…, /compositionRevision or /offering"),
    old=AnyValue(help_text="null: it is not there"),
    new=AnyValue(help_text="null: it is not there"),
)
ControlPlane = shape(
    "ControlPlaneSays",
    accepted=boolean(null=True, help_text="null: it was not asked; message says why"),
    code=text(),
    message=text(),
    claim=text(null=True, help_text="YAML, with the control plane's own defaults"),
    difference=Difference(many=True, help_text="From what is live there now"),
)
Request = shape(
    "Request",
    id=uuid(),
    kind=text(choices=list(BODIES)),
    state=text(choices=[state.value for state in RequestState]),
    team=slug(),
    environment=slug(null=True),
    offering=text(null=True),
    instance=uuid(null=True),
    name=text(),
    spec=AnyObject(),
    old=AnyObjectOrNull(),
    difference=Difference(many=True, help_text="Of a change, as votes see it; equal quantities are no difference"),
    labels=Labels(),
    reason=text(),
    requester=text(),
    madeFor=text(null=True),
    decision=Decision(allow_null=True),
    stages=Stage(many=True),
    waitsFor=shape("WaitsFor", group=text(), missing=number())(allow_null=True),
    quote=shape("Ceiling", monthly=amount(null=True), currency=text(), validUntil=day(null=True))(allow_null=True),
    cost=Cost(allow_null=True),
    failure=shape("Failure", code=text(), message=text())(allow_null=True),
    appliedAt=time(null=True),
    generation=number(null=True, help_text="Of the claim, as it was applied"),
    createdAt=time(),
    changedAt=time(),
    links=shape("RequestLinks", **{"self": url()}, page=url(), instance=url(null=True))(),
)
# Closed, so that an answer is one of the two.
WRITTEN = {
    "oneOf": [
        {"$ref": "#/components/schemas/Request"},
        {
            "type": "object",
            "title": "RequestReceipt",
            "description": "All that a token without the scope `read` is told",
            "additionalProperties": False,
            "required": ["id", "state", "links"],
            "properties": {
                "id": {"type": "string", "format": "uuid"},
                "state": {"type": "string", "enum": [state.value for state in RequestState]},
                "links": {"$ref": "#/components/schemas/RequestLinks"},
            },
        },
    ]
}
_RECEIPT = example("receipt", {name: examples.REQUEST[name] for name in RECEIPT})
Demand = shape("Demand", code=text(), group=text(), quorum=number(), timeoutHours=number(), message=text())
Preview = shape(
    "Preview",
    outcome=text(choices=OUTCOMES),
    reasons=Reason(many=True),
    stages=Demand(many=True),
    usage=Usage(many=True),
    quote=Quote(allow_null=True),
    budgets=BudgetLine(many=True),
    cost=Cost(allow_null=True),
    difference=Difference(many=True),
    spec=AnyObject(),
    controlPlane=ControlPlane(allow_null=True),
    claim=text(null=True, help_text="YAML; ids and the pinned revision are stand-ins"),
)
# The bodies that are checked are the bodies that are described.
_DRAFT = {"application/json": {"oneOf": list(BODIES.values())}}
_VOTE: dict[str, Any] = {
    "application/json": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "comment": {"type": "string", "maxLength": MAX_COMMENT},
            "decision": {
                "type": ["integer", "null"],
                "description": "The decision that was seen; another by now is 409",
            },
        },
    }
}
_NONE = {"application/json": {"type": "object", "additionalProperties": False}}
_INVALID = problem_example(400, "invalid-input", examples.INVALID["message"], errors=[examples.INVALID])
_GONE = problem_example(404, "not-found", "There is no request '…' that you can see.")
_KEY = OpenApiParameter(
    KEY_HEADER,
    str,
    OpenApiParameter.HEADER,
    description="The same key and body answer the same request; with another body: 409. Or as member idempotencyKey",
)

LIST = operation(
    "listRequests", "List requests", TAG, page_of(Request), [page_example("requests", examples.REQUEST, "requests")]
)
SUBMIT = operation(
    "submitRequest",
    "Submit a request. A denial by policy is stored too, in state Denied",
    TAG,
    WRITTEN,
    [
        asked("Create", examples.CREATE),
        asked("Change", examples.CHANGE),
        asked("Suspend", examples.SUSPEND),
        asked("Resume", examples.RESUME),
        asked("Delete", examples.DELETE),
        asked("Quota", examples.QUOTA),
        example("created", examples.REQUEST, 201),
        example("replayed", examples.REQUEST),
        _RECEIPT,
        _INVALID,
        problem_example(409, "idempotency-key-reused", "The key 'chat-1' was used for another body."),
    ],
    errors=(404, 409),
    created=True,
    request=_DRAFT,
)
HEADERS = [_KEY]
PREVIEW = operation(
    "previewRequest",
    "What submitting this now would bring. Nothing is written",
    TAG,
    Preview,
    [
        asked("Create", examples.CREATE),
        asked("Change", examples.CHANGE),
        example("preview", examples.PREVIEW),
        _INVALID,
    ],
    errors=(404, 409),
    request=_DRAFT,
)
READ = operation(
    "readRequest", "Read a request", TAG, Request, [example("request", examples.REQUEST), _GONE], errors=(404,)
)
REHEARSAL = operation(
    "rehearseRequest",
    "What the control plane says of a request that is not delivered yet. Nothing is written there",
    TAG,
    shape("Rehearsal", controlPlane=ControlPlane(allow_null=True)),
    [example("rehearsal", {"controlPlane": examples.PREVIEW["controlPlane"]}), _GONE],
    errors=(404, 409),
)
TIMELINE = operation(
    "readTimeline",
    "The audit events of a request, oldest first",
    TAG,
    AuditEventPage,
    [page_example("timeline", examples.EVENT, f"requests/{examples.REQUEST['id']}/timeline"), _GONE],
    errors=(404,),
)
_OWN = problem_example(
    403, "own-request", "you can't vote on this request, because you asked for it; somebody else has to"
)


def _voting(operation_id: str, summary: str, comment: str) -> dict[str, Any]:
    return operation(
        operation_id,
        summary,
        TAG,
        WRITTEN,
        [
            asked("vote", {"comment": comment, "decision": 42}),
            example("request", examples.REQUEST),
            _RECEIPT,
            _OWN,
            _GONE,
        ],
        errors=(404, 409),
        request=_VOTE,
    )


APPROVE = _voting("approveRequest", "Vote for a request. Nobody votes on their own", "Fits the plan.")
REJECT = _voting(
    "rejectRequest",
    "Vote against a request, which ends it; the comment, which says why, is needed. Nobody votes on their own",
    "Two GPUs would do; ask for those.",
)
WITHDRAW = operation(
    "withdrawRequest",
    "Take a request back before it is delivered",
    TAG,
    WRITTEN,
    [asked("nothing", {}), example("request", examples.REQUEST), _RECEIPT, _GONE],
    errors=(404, 409),
    request=_NONE,
)
