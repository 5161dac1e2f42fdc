"""MEMORY of what is held: quotas and budgets with their counters, and the rows behind each counter.

Written by services.holding alone, under the locks of services.locks. The database itself refuses an overshoot.
"""

from __future__ import annotations

from django.db import models

from portal.models.people import Team
from portal.models.requests import Instance, Request


class Quota(models.Model):
    """A ceiling on a dimension for a team or group. Counters include every team below it."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="quotas")
    dimension = models.CharField(max_length=100)
    limit = models.BigIntegerField()
    reserved = models.BigIntegerField(default=0)
    used = models.BigIntegerField(default=0)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["team", "dimension"], name="one_quota_per_team_and_dimension"),
            models.CheckConstraint(
                condition=models.Q(limit__gte=models.F("reserved") + models.F("used")), name="quota_never_overshoots"
            ),
            models.CheckConstraint(
                condition=models.Q(reserved__gte=0) & models.Q(used__gte=0), name="quota_never_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team} {self.dimension}"


class Budget(models.Model):
    """Money per month for a team or group. `committed` is the sum of quotes of it and every team below."""

    team = models.OneToOneField(Team, on_delete=models.PROTECT, related_name="budget")
    currency = models.CharField(max_length=3)
    soft = models.DecimalField(max_digits=18, decimal_places=2)
    hard = models.DecimalField(max_digits=18, decimal_places=2)
    committed = models.DecimalField(max_digits=18, decimal_places=2, default=0)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(condition=models.Q(soft__lte=models.F("hard")), name="soft_line_below_hard_line"),
            models.CheckConstraint(condition=models.Q(committed__gte=0), name="commitment_never_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.team} {self.hard} {self.currency}"


class Reservation(models.Model):
    """What one Request holds of one dimension for one Instance until the claim is gone."""

    class State(models.TextChoices):
        RESERVED = "reserved"  # the request is open
        USED = "used"  # the claim exists
        RELEASED = "released"

    request = models.ForeignKey(Request, on_delete=models.PROTECT, related_name="reservations")
    instance = models.ForeignKey(Instance, on_delete=models.PROTECT, related_name="reservations")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="reservations")
    dimension = models.CharField(max_length=100)
    amount = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.RESERVED)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["request", "dimension"], name="one_reservation_per_request_and_dimension"),
            models.CheckConstraint(condition=models.Q(amount__gte=0), name="reservation_never_negative"),
        ]
        indexes = [models.Index(fields=["team", "dimension", "state"])]

    def __str__(self) -> str:
        return f"{self.amount} {self.dimension} {self.state}"


class Commitment(models.Model):
    """The quote of one Request, counted against budgets until the claim is gone."""

    request = models.OneToOneField(Request, on_delete=models.PROTECT, related_name="commitment")
    instance = models.ForeignKey(Instance, on_delete=models.PROTECT, related_name="commitments")
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="commitments")
    currency = models.CharField(max_length=3)
    monthly = models.DecimalField(max_digits=18, decimal_places=2)
    released = models.BooleanField(default=False)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["team", "released"])]

    def __str__(self) -> str:
        return f"{self.monthly} {self.currency}"
