"""MEMORY of who people are elsewhere: the person behind a reference such as user:default/ada, and what the directory
says of them.

Not in charge of: reading the directory (adapters.backstage), or what groups mean here (services.identities).
"""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import models


class Identity(models.Model):
    """A person or a plugin of Backstage, and the account here that acts for it.

    `person_id` is what stays with a person when a name doesn't; "" until they are first seen. A name that was given to
    somebody else is a new row with another account; the old one has ended. `approver_groups` are those that the
    directory gave: nothing else is taken away again.
    """

    issuer = models.CharField(max_length=200)
    ref = models.CharField(max_length=255)
    person_id = models.CharField(max_length=255, blank=True, default="")
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="identities")
    groups = models.JSONField(default=list)  # references, parents included
    approver_groups = models.JSONField(default=list)
    groups_read_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["issuer", "ref"], condition=models.Q(ended_at=None), name="one_account_per_reference"
            )
        ]

    def __str__(self) -> str:
        return self.ref
