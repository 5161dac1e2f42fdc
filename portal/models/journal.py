"""MEMORY of what happened and what is still to be done: the audit log, the outbox, and the catalog feed.

The audit log is append-only: triggers in the database refuse UPDATE, DELETE and TRUNCATE (see the migration, which does
the same for decisions, votes and documents).
"""

from __future__ import annotations

import uuid

from django.contrib.auth.models import User
from django.db import models

from portal.models.people import Team
from portal.models.places import Environment
from portal.models.requests import Instance, Request


class AuditEvent(models.Model):
    """One step that somebody took, or that the portal took by itself (`actor` null, `system` names the part)."""

    at = models.DateTimeField()
    verb = models.CharField(max_length=63)
    actor = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="audit_events")
    system = models.CharField(max_length=63, blank=True, default="")
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="+")
    request = models.ForeignKey(Request, null=True, on_delete=models.PROTECT, related_name="audit_events")
    instance = models.ForeignKey(Instance, null=True, on_delete=models.PROTECT, related_name="audit_events")
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["verb"]),
            models.Index(fields=["request", "id"]),
            models.Index(fields=["verb", "at"]),
        ]

    def __str__(self) -> str:
        return f"{self.verb} {self.at}"


class OutboxRow(models.Model):
    """One effect to bring about outside. Rows of a lane are done one after the other, oldest first, urgent before."""

    lane = models.CharField(max_length=200)
    topic = models.CharField(max_length=63)
    payload = models.JSONField()
    urgent = models.BooleanField(default=False)  # a deletion overtakes a failing apply
    created_at = models.DateTimeField(auto_now_add=True)
    due_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    leased_until = models.DateTimeField(null=True)
    lease = models.UUIDField(null=True)
    done_at = models.DateTimeField(null=True)
    outcome = models.CharField(max_length=20, blank=True, default="")  # done, failed, cancelled
    last_error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["lane", "id"], condition=models.Q(done_at=None), name="outbox_open_lanes"),
            models.Index(fields=["due_at"], condition=models.Q(done_at=None), name="outbox_open_due"),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.lane}"


class FeedHead(models.Model):
    """One row. Locked by whoever publishes, so that sequence numbers become visible in their order."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    sequence = models.BigIntegerField(default=0)
    oldest = models.BigIntegerField(default=0)  # changes up to here were forgotten: an older cursor must start anew
    feed = models.UUIDField(default=uuid.uuid4)  # this database's: a cursor of another one is none here


class FeedEntity(models.Model):
    """A catalog entity as last published; `entity` null says that it was removed. Its ref stays with what it is about,
    until that is gone and another thing of the same name comes."""

    class Part(models.TextChoices):
        """What of an instance it is; `system` is shared by all of a team in an environment, and is of these two."""

        MAIN = "main"
        API = "api"
        SYSTEM = "system"

    ref = models.CharField(max_length=255, unique=True)
    part = models.CharField(max_length=10, choices=Part.choices, default="main", db_default="main")
    instance = models.ForeignKey(Instance, null=True, on_delete=models.PROTECT, related_name="feed_entities")
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="+")
    environment = models.ForeignKey(Environment, null=True, on_delete=models.PROTECT, related_name="+")
    entity = models.JSONField(null=True)
    sequence = models.BigIntegerField(unique=True)
    published_at = models.DateTimeField()

    class Meta:
        ordering = ["sequence"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(part="system", instance__isnull=True, team__isnull=False, environment__isnull=False)
                | models.Q(part__in=["main", "api"], instance__isnull=False),
                name="feed_entity_is_of_something",
            ),
            models.UniqueConstraint(
                fields=["team", "environment"], condition=models.Q(part="system"), name="one_system_per_team_and_place"
            ),
        ]

    def __str__(self) -> str:
        return self.ref
