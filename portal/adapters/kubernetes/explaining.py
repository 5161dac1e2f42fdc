"""Events: what the core and the provider say about a claim and what was composed for it, beside conditions.

Events expire (an hour by default) and may be missing: none is no news. Not in charge of: conditions (domain).
"""

from __future__ import annotations

import datetime as dt
from itertools import islice
from typing import Any

from portal.adapters.kubernetes import paths
from portal.adapters.kubernetes.claims import time_of
from portal.adapters.kubernetes.client import Client
from portal.adapters.kubernetes.paging import pages
from portal.adapters.kubernetes.refusals import Action
from portal.ports import Explanation, ObservedClaim

MOST = 20
_MOST_PAGES = 10  # of 500 Events of one namespace; newer ones may be beyond, in a namespace that has so many
_OLD = dt.datetime.min.replace(tzinfo=dt.UTC)


def explanations(client: Client, claim: ObservedClaim) -> tuple[Explanation, ...]:
    """See ports.Observe."""
    namespace = claim.ref.namespace
    action = Action(client.plane, "list", "Events", namespace)
    about = {(claim.ref.kind, claim.ref.name)} | {(each.kind, each.name) for each in claim.composed}
    found = [
        _explanation(event)
        for page in islice(pages(client, action, paths.of_kind("v1", "events", namespace), {}), _MOST_PAGES)
        for event in page.get("items") or ()
        if _is_about(event, about, claim)
    ]
    found.sort(key=lambda each: each.last_seen or _OLD, reverse=True)
    return tuple(found[:MOST])


def _is_about(event: dict[str, Any], about: set[tuple[str, str]], claim: ObservedClaim) -> bool:
    """By kind and name; an earlier claim of that name had another uid."""
    involved = event.get("involvedObject") or {}
    kind, name = str(involved.get("kind")), str(involved.get("name"))
    if (kind, name) == (claim.ref.kind, claim.ref.name):
        return involved.get("uid") in (None, "", claim.uid)
    return (kind, name) in about


def _explanation(event: dict[str, Any]) -> Explanation:
    involved = event.get("involvedObject") or {}
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    made = event["metadata"].get("creationTimestamp")
    return Explanation(
        type=str(event.get("type") or "Normal"),
        reason=str(event.get("reason") or ""),
        message=str(event.get("message") or ""),
        about=f"{involved.get('kind', '')} {involved.get('name', '')}".strip(),
        count=int(series.get("count") or event.get("count") or 1),
        last_seen=next((at for at in map(time_of, (*times, made)) if at), None),
    )
