"""What an instance's `observed` holds: the claim as it was seen last, what was made of it, and what must be remembered
of what was seen before.

    status, spec, generation, resourceVersion, deletionRequestedAt, finalizers    of the claim, as reported
    condition, since, advice, typical                                             what was made of it
    memory {generation, generationSince, specGeneration, specSince, served, settled}
    events [{type, reason, message, about, count, lastSeen}], explained {at, phase, message}

In charge of: these shapes. Not in charge of: judging them (domain.claim_status), or writing the row (observing).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from portal.domain.claim_status import Assessment, Past
from portal.domain.conditions import time_of
from portal.domain.lifecycle import InstancePhase
from portal.models import Instance
from portal.ports import ComposedObject, Explanation, ObservedClaim
from portal.rendering.claim import without_machinery
from portal.services import durations

SETTLED = {InstancePhase.READY, InstancePhase.SUSPENDED}
MAX_EVENTS = 20
Memory = dict[str, Any]


def remembered(observed: dict[str, Any], claim: ObservedClaim, now: dt.datetime) -> Memory:
    """What is remembered from here on, now that the claim was seen like this."""
    before: Memory = observed.get("memory") or {}
    memory = dict(before)
    if before.get("generation") != claim.generation:
        memory |= {"generation": claim.generation, "generationSince": now.isoformat()}
    if "specGeneration" not in before or observed.get("spec") != without_machinery(claim.spec):
        memory |= {"specGeneration": claim.generation, "specSince": now.isoformat()}
    return memory


def past_of(memory: Memory, *, was_ready: bool, deletion_is_ours: bool) -> Past:
    """The memory as the rules want it."""
    return Past(
        was_ready=was_ready,
        was_suspended=memory.get("settled") == InstancePhase.SUSPENDED,
        generation_since=time_of(memory.get("generationSince")),
        spec_generation=memory.get("specGeneration"),
        spec_since=time_of(memory.get("specSince")),
        served=memory.get("served"),
        deletion_is_ours=deletion_is_ours,
    )


def observed_of(instance: Instance, claim: ObservedClaim, memory: Memory, assessment: Assessment) -> dict[str, Any]:
    """All of it, for an instance whose row is still as it was before."""
    if assessment.phase in SETTLED:
        memory = memory | {"served": claim.generation, "settled": assessment.phase.value}
    asked = claim.deletion_requested_at
    before = instance.observed
    kept = {name: before[name] for name in ("events", "explained") if name in before}
    return {
        "status": claim.status,
        "spec": without_machinery(claim.spec),
        "generation": claim.generation,
        "resourceVersion": claim.resource_version,
        "deletionRequestedAt": asked.isoformat() if asked else None,
        "finalizers": list(claim.finalizers),
        "condition": assessment.condition,
        "since": assessment.since.isoformat() if assessment.since else None,
        "advice": assessment.advice,
        "typical": _typical(instance, assessment.phase),
        "memory": memory,
        **kept,
    }


def composed_of(each: ComposedObject) -> dict[str, Any]:
    """One composed object, as it is kept."""
    return {
        "apiVersion": each.api_version,
        "kind": each.kind,
        "namespace": each.namespace,
        "name": each.name,
        "ready": each.ready,
        "message": each.message,
        "manifest": dict(each.manifest),
    }


def events_of(before: Sequence[dict[str, Any]], explanations: Sequence[Explanation]) -> list[dict[str, Any]]:
    """The newest events, each once, newest first. What has expired on the control plane stays until newer take its
    place; warnings come before all else that was seen at the same time."""
    found = {(each["about"], each["reason"], each["message"]): each for each in before}
    for each in explanations:
        found[each.about, each.reason, each.message] = {
            "type": each.type,
            "reason": each.reason,
            "message": each.message,
            "about": each.about,
            "count": each.count,
            "lastSeen": each.last_seen.isoformat() if each.last_seen else None,
        }
    newest = sorted(found.values(), key=lambda event: (event["lastSeen"] or "", event["type"] == "Warning"))
    return newest[::-1][:MAX_EVENTS]


def _typical(instance: Instance, phase: InstancePhase) -> dict[str, Any] | None:
    """The typical time of the phase that begins, or as it was told when it began."""
    if instance.phase == phase.value and "typical" in instance.observed:
        kept: dict[str, Any] | None = instance.observed["typical"]
        return kept
    found = durations.typical(instance.offering, phase)
    return asdict(found) if found else None
