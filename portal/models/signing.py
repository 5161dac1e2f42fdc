"""MEMORY of the keys that approvals are signed with.

Not in charge of: making, rotating or using them (services.signing).
"""

from __future__ import annotations

from django.db import models


class SigningKey(models.Model):
    """One key pair. It signs from `active_from` on until a newer one does (null: it is not published everywhere yet);
    its public half is published until `retired_at`, so that what it has signed stays valid for that long."""

    kid = models.CharField(max_length=64, primary_key=True)
    algorithm = models.CharField(max_length=10)
    public_pem = models.TextField()
    private_sealed = models.TextField()  # encrypted with a key derived from SECRET_KEY
    created_at = models.DateTimeField()
    active_from = models.DateTimeField(null=True)
    published = models.JSONField(default=dict)  # control plane -> since when it has the public half
    retired_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-active_from", "kid"]

    def __str__(self) -> str:
        return self.kid
