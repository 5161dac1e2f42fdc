"""The revisions of an instance: what it was asked to be, one after the other, as far as its control plane has had it.

In charge of: which requests are revisions, their order and numbers. Not in charge of: showing them (api, web), or
asking for one again (a Change whose spec starts from it). Reads only.
"""

from __future__ import annotations

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from portal.domain.decision import APPLIED
from portal.models import Instance, Request
from portal.services.changing import request_of


def revisions(instance: Instance) -> QuerySet[Request]:
    """The applied requests of an instance with their `number`, newest first."""
    counted = Window(RowNumber(), order_by=[F("applied_at").asc(), F("created_at").asc()])
    rows = Request.objects.filter(instance=instance, kind__in=APPLIED, applied_at__isnull=False)
    return rows.annotate(number=counted).order_by("-applied_at", "-created_at")


def is_current(request: Request, instance: Instance) -> bool:
    """Whether this is the one that the instance's claim was rendered for."""
    return request_of(instance.claim) == request.pk
