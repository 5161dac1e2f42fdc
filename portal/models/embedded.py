"""MEMORY of the embedded control plane: what a cluster's API server would keep in etcd. Not the portal's own memory.

Only adapters.embedded reads and writes these tables; no service does (README, Decisions). An object is kept as the
parts of a Kubernetes manifest; `resource_version` comes from one sequence, whose row is locked by whoever writes, so
that numbers become visible in their order and a watcher never misses one.
"""

from __future__ import annotations

import uuid

from django.db import models


class EmbeddedSequence(models.Model):
    """One row. Its lock makes writers go one after the other; `floor` is the newest change that was forgotten."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    value = models.BigIntegerField(default=0)
    floor = models.BigIntegerField(default=0)

    class Meta:
        db_table = "embedded_sequence"

    def __str__(self) -> str:
        return str(self.value)


class EmbeddedObject(models.Model):
    """One object of the control plane. `body` is the manifest without apiVersion, kind, metadata and status.

    `owner` is the controlling owner: the composite that this object was composed for.
    """

    group = models.CharField(max_length=253, blank=True)
    version = models.CharField(max_length=63)
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=63, blank=True)  # empty: cluster scope
    name = models.CharField(max_length=253)
    uid = models.UUIDField(default=uuid.uuid4, unique=True)
    generation = models.BigIntegerField(default=1)
    resource_version = models.BigIntegerField()
    manager = models.CharField(max_length=128)  # the field manager that made it
    set_by = models.JSONField(
        default=dict
    )  # fields of the spec that others than the portal set: {pointer: [who, when]}
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)
    finalizers = models.JSONField(default=list)
    owner = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="composed")
    created_at = models.DateTimeField()
    deletion_requested_at = models.DateTimeField(null=True)
    body = models.JSONField(default=dict)
    status = models.JSONField(default=dict)

    class Meta:
        db_table = "embedded_object"
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["group", "kind", "namespace", "name"], name="embedded_object_one_per_name")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class EmbeddedCompositionRevision(models.Model):
    """A Composition's spec at one time. Never changed; the newest has the highest number."""

    name = models.CharField(max_length=253, unique=True)
    composition = models.CharField(max_length=253)
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    spec = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "embedded_composition_revision"
        ordering = ["composition", "number"]
        constraints = [
            models.UniqueConstraint(fields=["composition", "digest"], name="embedded_revision_one_per_content"),
            models.UniqueConstraint(fields=["composition", "number"], name="embedded_revision_one_per_number"),
        ]

    def __str__(self) -> str:
        return self.name


class EmbeddedChange(models.Model):
    """One entry of the log that watches read: an object as it was at that resource version. Bounded; see the floor."""

    resource_version = models.BigIntegerField(primary_key=True)
    group = models.CharField(max_length=253, blank=True)
    kind = models.CharField(max_length=63)
    uid = models.UUIDField()
    gone = models.BooleanField(default=False)
    manifest = models.JSONField()
    created_at = models.DateTimeField()  # of the object

    class Meta:
        db_table = "embedded_change"
        ordering = ["resource_version"]
        indexes = [models.Index(fields=["group", "kind", "resource_version"], name="embedded_change_by_kind")]

    def __str__(self) -> str:
        return f"{self.resource_version} {self.kind} {self.uid}"


class EmbeddedEvent(models.Model):
    """What the core said about an object, as Kubernetes Events do: the same words again only raise the count."""

    object_uid = models.UUIDField()
    severity = models.CharField(max_length=10)  # Normal or Warning
    reason = models.CharField(max_length=128)
    message = models.TextField()
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        db_table = "embedded_event"
        ordering = ["id"]
        indexes = [models.Index(fields=["object_uid"], name="embedded_event_by_object")]

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


class EmbeddedWork(models.Model):
    """What is to be done for an object, and when. `dirty` grows with every cause, so that none is lost meanwhile."""

    object = models.ForeignKey(EmbeddedObject, on_delete=models.CASCADE, related_name="work")
    role = models.CharField(max_length=10)  # reconcile or simulate
    due_at = models.DateTimeField(null=True)
    dirty = models.BigIntegerField(default=1)
    attempts = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "embedded_work"
        constraints = [models.UniqueConstraint(fields=["object", "role"], name="embedded_work_one_per_role")]
        indexes = [models.Index(fields=["role", "due_at"], name="embedded_work_due")]

    def __str__(self) -> str:
        return f"{self.role} {self.object}"
