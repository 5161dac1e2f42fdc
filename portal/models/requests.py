"""MEMORY of the workflow: Instances, Requests, Decisions, Stages, Votes.

Not in charge of: which change is legal (domain.lifecycle) or making one (services). Nothing here overrides save().
"""

from __future__ import annotations

import uuid

from django.contrib.auth.models import User
from django.db import models

from portal.domain.decision import CHANGES
from portal.domain.lifecycle import OPEN, InstancePhase, RequestState
from portal.models.documents import Document
from portal.models.people import Team
from portal.models.places import Environment

OPEN_STATES = sorted(state.value for state in OPEN)
UNDELIVERED_STATES = [state for state in OPEN_STATES if state != RequestState.DELIVERING]


class Instance(models.Model):
    """One long-lived thing that a team owns. `spec` is what was last approved for it; the rest is what was observed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=63)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="instances")
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="instances")
    offering = models.CharField(max_length=100)
    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="+")
    namespace = models.CharField(max_length=63)
    spec = models.JSONField()
    claim = models.JSONField(null=True)  # what was rendered and is delivered; null until the first attempt
    claim_uid = models.CharField(max_length=64, blank=True, default="")
    phase = models.CharField(
        max_length=20, choices=[(p.value, p.value) for p in InstancePhase], default=InstancePhase.PENDING.value
    )
    message = models.TextField(blank=True, default="")
    since = models.DateTimeField()  # of this phase
    observed = models.JSONField(default=dict)  # see services.sightings
    composed = models.JSONField(default=list)
    # What others have set: [{field, manager, at, approved, live, metered}]; empty is none.
    drift = models.JSONField(default=list)
    observed_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["environment", "namespace", "offering", "name"],
                condition=~models.Q(phase=InstancePhase.GONE.value),
                name="one_living_instance_per_name",
            ),
        ]
        indexes = [models.Index(fields=["team", "phase"]), models.Index(fields=["-created_at", "-id"])]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Request(models.Model):
    """One proposal. Its spec never changes after submission."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=20)
    state = models.CharField(max_length=20, choices=[(s.value, s.value) for s in RequestState])
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="requests")
    environment = models.ForeignKey(Environment, null=True, on_delete=models.PROTECT, related_name="requests")
    instance = models.ForeignKey(Instance, null=True, on_delete=models.PROTECT, related_name="requests")
    offering = models.CharField(max_length=100, blank=True, default="")
    document = models.ForeignKey(Document, null=True, on_delete=models.PROTECT, related_name="+")
    composition_revision = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=63, blank=True, default="")
    spec = models.JSONField()
    old = models.JSONField(null=True)
    difference = models.JSONField(default=list)  # [{pointer, old, new}]: what a change changes, as votes see it
    labels = models.JSONField(default=dict)
    reason = models.TextField(blank=True, default="")
    requester = models.ForeignKey(User, on_delete=models.PROTECT, related_name="requests")
    made_for = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="requests_made_for")
    idempotency_key = models.CharField(max_length=200, null=True)
    body_digest = models.CharField(max_length=64)
    quote_monthly = models.DecimalField(max_digits=18, decimal_places=2, null=True)
    quote_currency = models.CharField(max_length=3, blank=True, default="")
    quote_valid_until = models.DateField(null=True)
    failure_code = models.CharField(max_length=63, blank=True, default="")
    failure_message = models.TextField(blank=True, default="")
    # What the instance was when this was first delivered, {spec, claim, document}: it is that again if this is refused.
    replaces = models.JSONField(null=True)
    applied_at = models.DateTimeField(null=True)  # since then it is a revision of its instance
    generation = models.BigIntegerField(null=True)  # of the claim as it was then
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["requester", "idempotency_key"], name="one_request_per_idempotency_key"),
            models.UniqueConstraint(
                fields=["instance", "kind"],
                condition=models.Q(state__in=OPEN_STATES) & ~models.Q(kind__in=CHANGES),
                name="one_open_request_per_instance_and_kind",
            ),
            # A change may be asked for while another one is being delivered: that may be what mends it.
            models.UniqueConstraint(
                fields=["instance"],
                condition=models.Q(state__in=UNDELIVERED_STATES, kind__in=CHANGES),
                name="one_open_change_per_instance",
            ),
            models.UniqueConstraint(
                fields=["instance"],
                condition=models.Q(state=RequestState.DELIVERING.value, kind__in=CHANGES),
                name="one_delivering_change_per_instance",
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "-id"]),
            models.Index(fields=["team", "-created_at"]),
            models.Index(fields=["state"]),
            models.Index(fields=["instance", "applied_at"]),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {str(self.id)[:8]}"


class DecisionRecord(models.Model):
    """A decision as it was made, with all that it was made from."""

    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="decisions")
    moment = models.CharField(max_length=20)  # submission, approval, delivery
    outcome = models.CharField(max_length=20)
    inputs = models.JSONField()
    inputs_digest = models.CharField(max_length=64)
    result = models.JSONField()
    decided_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.outcome} at {self.moment}"


class Stage(models.Model):
    """One step of an approval, as demanded by the decision: editing a policy later does not change it."""

    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="stages")
    round = models.PositiveIntegerField(default=1)  # a delivery that asks again opens the next round
    position = models.PositiveIntegerField()
    code = models.CharField(max_length=63)
    group = models.CharField(max_length=150)
    quorum = models.PositiveIntegerField()
    message = models.TextField()
    due_at = models.DateTimeField()

    class Meta:
        ordering = ["request_id", "round", "position"]
        constraints = [
            models.UniqueConstraint(fields=["request", "round", "position"], name="one_stage_per_position"),
        ]

    def __str__(self) -> str:
        return f"{self.code} ({self.group})"


class Vote(models.Model):
    """One person's answer. `decision` is what they saw."""

    stage = models.ForeignKey(Stage, on_delete=models.PROTECT, related_name="votes")
    voter = models.ForeignKey(User, on_delete=models.PROTECT, related_name="votes")
    answer = models.CharField(max_length=10, choices=[("approve", "approve"), ("reject", "reject")])
    comment = models.TextField(blank=True, default="")
    decision = models.ForeignKey(DecisionRecord, on_delete=models.PROTECT, related_name="votes")
    cast_at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["stage", "voter"], name="one_vote_per_person_and_stage")]

    def __str__(self) -> str:
        return f"{self.voter} {self.answer}"
