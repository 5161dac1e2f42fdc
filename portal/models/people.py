"""MEMORY of people: teams, who is in them, and the tokens that machines present.

Not in charge of: what anyone may do (services.access decides), or signing in.
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.validators import RegexValidator
from django.db import models

from portal.domain.draft import SLUG

is_slug = RegexValidator(
    SLUG, "Use a-z, 0-9 and '-', at most 63 characters, and neither begin nor end with '-'.", "slug"
)


class Team(models.Model):
    """A team, or a parent group of teams. Quotas and budgets of every group on the way up apply."""

    slug = models.CharField(max_length=63, unique=True, validators=[is_slug])
    title = models.CharField(max_length=200)
    parent = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="children")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(parent=models.F("id")), name="team_is_not_its_own_parent"),
            models.CheckConstraint(
                condition=models.Q(slug__regex=SLUG),
                name="team_slug_is_a_slug",
                violation_error_message="This is no slug: its namespaces would have no valid names.",
            ),
        ]

    def __str__(self) -> str:
        return self.slug


class Membership(models.Model):
    """One person's role in one team."""

    class Role(models.TextChoices):
        MEMBER = "member"
        OWNER = "owner"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    from_directory = models.BooleanField(default=False)  # given by the directory, which alone takes it away again

    class Meta:
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["team", "user"], name="one_role_per_team")]

    def __str__(self) -> str:
        return f"{self.user} {self.role} of {self.team}"


class ApiToken(models.Model):
    """A bearer token. Only its hash is kept; `prefix` finds it and is safe to show."""

    prefix = models.CharField(max_length=12, unique=True)
    secret_hash = models.CharField(max_length=64)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=100)
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.prefix} ({self.name})"
