"""Events: what the core says about an object beside its conditions. The same words again only raise a count."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable

from django.db.models import F

from portal.adapters.embedded.functions import Result
from portal.adapters.embedded.store import Writer, port_errors
from portal.models.embedded import EmbeddedEvent, EmbeddedObject
from portal.ports import Explanation, ObservedClaim

MAX_PER_OBJECT = 50
_MOST_EXPLANATIONS = 20


def record(writer: Writer, row: EmbeddedObject, results: Iterable[Result]) -> None:
    """Keep a pipeline's results; what is fatal or a warning is a Warning."""
    for result in results:
        _say(writer, row, "Normal" if result.severity == "Normal" else "Warning", result.reason, result.message)


def warn(writer: Writer, row: EmbeddedObject, reason: str, message: str) -> None:
    """Keep one Warning."""
    _say(writer, row, "Warning", reason, message)


def explanations(claim: ObservedClaim) -> tuple[Explanation, ...]:
    """See ports.Observe."""
    about = {uuid.UUID(claim.uid): f"{claim.ref.kind} {claim.ref.name}"}
    with port_errors():
        for row in EmbeddedObject.objects.filter(owner__uid=claim.uid):
            about[row.uid] = f"{row.kind} {row.name}"
        rows = list(EmbeddedEvent.objects.filter(object_uid__in=about).order_by("-last_at", "-id")[:_MOST_EXPLANATIONS])
    return tuple(
        Explanation(row.severity, row.reason, row.message, about[row.object_uid], row.count, row.last_at)
        for row in rows
    )


def forget_old(writer: Writer) -> None:
    """Drop what was last said more than a day ago (a cluster keeps Events for an hour)."""
    EmbeddedEvent.objects.filter(last_at__lt=writer.now - dt.timedelta(days=1)).delete()


def _say(writer: Writer, row: EmbeddedObject, severity: str, reason: str, message: str) -> None:
    mine = EmbeddedEvent.objects.filter(object_uid=row.uid)
    again = mine.filter(severity=severity, reason=reason, message=message)
    if again.update(count=F("count") + 1, last_at=writer.now):
        return
    EmbeddedEvent.objects.create(
        object_uid=row.uid,
        severity=severity,
        reason=reason,
        message=message,
        first_at=writer.now,
        last_at=writer.now,
    )
    old = mine.order_by("-last_at", "-id").values_list("pk", flat=True)[MAX_PER_OBJECT:]
    EmbeddedEvent.objects.filter(pk__in=list(old)).delete()
