"""Instances in the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.schemas import examples
from portal.api.schemas.common import (
    AnyObject,
    AnyObjectOrNull,
    Endpoint,
    amount,
    example,
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
from portal.domain.lifecycle import InstancePhase

TAG = "instances"
SUMMARY = dict(
    id=uuid(),
    name=text(),
    team=slug(),
    environment=slug(),
    offering=text(),
    offeringDigest=text(),
    phase=text(choices=[phase.value for phase in InstancePhase]),
    message=text(help_text="Why it is in this phase, and what to do"),
    since=time(),
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
InstanceSummary = shape("InstanceSummary", **SUMMARY)
Instance = shape(
    "Instance",
    **SUMMARY,
    status=AnyObject(),
    claim=AnyObjectOrNull(),
    claimYaml=text(null=True),
    composed=Composed(many=True),
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
