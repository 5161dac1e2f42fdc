"""MEMORY of where things run: environments, and what is known of their control planes.

Not in charge of: talking to a control plane (adapters), or the fleet behind it (the composition function).
"""

from __future__ import annotations

from django.db import models


class Environment(models.Model):
    """A control plane, a rule for namespaces, and labels that policies refer to. Rows, not an enum in code."""

    slug = models.CharField(max_length=63, unique=True)
    title = models.CharField(max_length=200)
    control_plane = models.CharField(max_length=63)
    namespace_rule = models.CharField(max_length=200, default="{team}-{environment}")
    creates_namespaces = models.BooleanField(default=True)
    labels = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ["slug"]

    def __str__(self) -> str:
        return self.slug


class CompositionRevision(models.Model):
    """The newest revision of a Composition that the mirror saw: what a submission is approved with."""

    control_plane = models.CharField(max_length=63)
    composition = models.CharField(max_length=253)
    revision = models.CharField(max_length=253)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["control_plane", "composition"], name="one_newest_revision"),
        ]

    def __str__(self) -> str:
        return self.revision


class Pause(models.Model):
    """A control plane that nothing is delivered to, and nothing published of, until somebody says so: what it holds is
    not what the portal remembers (a restored database)."""

    control_plane = models.CharField(max_length=63, unique=True)
    reason = models.TextField()
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.control_plane} paused"


class PhaseDuration(models.Model):
    """How long one instance was in one phase: the history that a typical time comes from."""

    offering = models.CharField(max_length=100)
    phase = models.CharField(max_length=20)
    seconds = models.FloatField()
    ended_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["offering", "phase", "-ended_at"])]

    def __str__(self) -> str:
        return f"{self.offering} {self.phase} {self.seconds:.0f} s"
