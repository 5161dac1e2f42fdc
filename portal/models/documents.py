"""MEMORY of what governs (offerings, policy bundles, prices, directory rules), by digest and never changed.

An Instance and a Decision name a digest, so that an edited or retired file never breaks what lives (README, Decisions).
Not in charge of: reading files (services.loading) or meaning (domain).
"""

from __future__ import annotations

from django.db import models


class Document(models.Model):
    """One text (or pair of texts) that governed at some time. The digest is the sha256 that its parser computes."""

    class Kind(models.TextChoices):
        OFFERING = "offering"
        BUNDLE = "bundle"
        PRICES = "prices"
        DIRECTORY = "directory"

    digest = models.CharField(max_length=64, primary_key=True)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=100)
    texts = models.JSONField()  # file name -> text
    stored_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.digest[:12]}"


class ActiveDocument(models.Model):
    """Which document of a kind and name governs now."""

    kind = models.CharField(max_length=10, choices=Document.Kind.choices)
    name = models.CharField(max_length=100)
    document = models.ForeignKey(Document, on_delete=models.PROTECT)
    activated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["kind", "name"]
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="one_active_document_per_name")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class Price(models.Model):
    """One row of a price list. `price` null: it needs review, and `problem` says why."""

    document = models.ForeignKey(Document, on_delete=models.PROTECT, related_name="prices")
    sku = models.CharField(max_length=100)
    unit = models.CharField(max_length=20)
    price = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    currency = models.CharField(max_length=3)
    region = models.CharField(max_length=63)
    effective_from = models.DateField()
    source = models.CharField(max_length=500)
    as_of = models.DateField()
    problem = models.CharField(max_length=500, null=True)

    class Meta:
        ordering = ["sku", "region", "-effective_from"]
        constraints = [
            models.UniqueConstraint(
                fields=["document", "sku", "region", "effective_from"], name="one_price_per_sku_region_day"
            ),
            models.CheckConstraint(condition=models.Q(price__isnull=True) | models.Q(price__gt=0), name="never_free"),
        ]

    def __str__(self) -> str:
        return f"{self.sku} {self.region}"
