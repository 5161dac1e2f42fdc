"""Instances in the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.schemas import examples
from portal.api.schemas.common import (
    AnyObject,
    AnyObjectOrNull,
    AnyValue,
    Endpoint,
    amount,
    boolean,
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
from portal.domain.decision import APPLIED
from portal.domain.lifecycle import InstancePhase, RequestState

TAG = "instances"
SUMMARY = dict(
    id=uuid(),
    name=text(),
    team=slug(),
    environment=slug(),
    offering=text(),
    offeringDigest=text(),
    phase=text(choices=[phase.value for phase in InstancePhase]),
    message=text(help_text="Why it is in this phase"),
    since=time(help_text="Of this phase"),
    condition=text(null=True, help_text="Which condition of the claim says so; null: none does"),
    conditionSince=time(null=True, help_text="When that condition changed last, by its own word"),
    advice=text(help_text="Who must do what; empty: nobody anything"),
    typicalSeconds=shape(
        "TypicalSeconds",
        median=serializers.FloatField(help_text="Half of them took at most that long"),
        p95=serializers.FloatField(help_text="95 of 100 took at most that long"),
        count=number(help_text="How many of the last 100 there are"),
    )(allow_null=True, help_text="What this phase took of this offering; null: too few to tell, or it doesn't end"),
    spec=AnyObject(),
    endpoint=Endpoint(),
    monthly=shape("Monthly", amount=amount(), currency=text())(allow_null=True),
    controlPlane=text(help_text="Says so when it is simulated"),
    observedAt=time(null=True),
    createdAt=time(),
    links=shape("InstanceLinks", **{"self": url()}, page=url())(),
)
Composed = shape(
    "Composed",
    apiVersion=text(),
    kind=text(),
    namespace=text(),
    name=text(),
    ready=serializers.BooleanField(allow_null=True, help_text="null: it does not say"),
    message=text(),
)
Event = shape(
    "ExplainingEvent",
    type=text(help_text="Normal or Warning"),
    reason=text(),
    message=text(),
    about=text(help_text="Kind and name of the object that it is about"),
    count=number(),
    lastSeen=time(null=True),
)
DriftedField = shape(
    "DriftedField",
    field=text(help_text="JSON pointer into the claim"),
    approved=AnyValue(help_text="null: it was not set"),
    live=AnyValue(help_text="null: it is not set any more"),
    manager=text(help_text="Who set it; empty: nobody says so"),
    at=time(null=True),
    metered=serializers.BooleanField(help_text="Quota or price depend on it"),
)
InstanceSummary = shape("InstanceSummary", **SUMMARY)
Instance = shape(
    "Instance",
    **SUMMARY,
    status=AnyObject(),
    claim=AnyObjectOrNull(),
    claimYaml=text(null=True),
    composed=Composed(many=True),
    events=Event(many=True, help_text="The Events that explain, newest first, also those that have expired since"),
    drift=DriftedField(many=True, help_text="What others than the portal have set to another value than was approved"),
)
LIST = operation(
    "listInstances",
    "List instances",
    TAG,
    page_of(InstanceSummary),
    [page_example("instances", examples.INSTANCE_SUMMARY, "instances")],
)
READ = operation(
    "readInstance",
    "Read an instance",
    TAG,
    Instance,
    [
        example("instance", examples.INSTANCE),
        problem_example(404, "not-found", "There is no instance '…' that you can see."),
    ],
    errors=(404,),
)
Revision = shape(
    "Revision",
    number=number(help_text="Counted from the creation, 1"),
    request=uuid(),
    kind=text(choices=list(APPLIED)),
    state=text(
        choices=[state.value for state in RequestState], help_text="Superseded or Failed: it never became ready"
    ),
    current=boolean(help_text="What the claim says now"),
    spec=AnyObject(),
    offeringDigest=text(),
    compositionRevision=text(),
    requester=text(),
    reason=text(),
    monthly=shape("MonthlyQuote", amount=amount(), currency=text())(allow_null=True),
    appliedAt=time(),
    generation=number(null=True, help_text="Of the claim, as it was applied"),
    links=shape("RevisionLinks", request=url())(),
)
REVISIONS = operation(
    "listRevisions",
    "What an instance was asked to be, newest first. To have one again, submit a Change with its spec",
    TAG,
    page_of(Revision),
    [
        page_example("revisions", examples.REVISION, f"instances/{examples.INSTANCE_ID}/revisions"),
        problem_example(404, "not-found", "There is no instance '…' that you can see."),
    ],
    errors=(404,),
)
