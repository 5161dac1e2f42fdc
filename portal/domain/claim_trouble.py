"""What is not well with a claim, rule by rule: each returns what it found, or None when it is not that.

In charge of: what stands between a claim and being looked at as it is (paused, failing, not looked at, refused). Not in
charge of: a claim that is merely not ready, or healthy (claim_status, which also says in which order the rules speak).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from portal.domain import advice
from portal.domain.claim_look import Assessment, Look
from portal.domain.conditions import Condition, of_manifest
from portal.domain.conditions import behind as conditions_behind
from portal.domain.lifecycle import InstancePhase
from portal.domain.spans import span

_P = InstancePhase
SILENT_AFTER = 120.0  # seconds: so long the core waits for a function before it says that it waits in vain
_WOULD = "would be refused"  # how the composition function begins where approvals are only warned of


def paused(look: Look) -> Assessment | None:
    synced = look.synced
    if synced is None or synced.reason != "ReconcilePaused":
        return None
    message = (
        "reconciling is paused, so its status is not kept up: take the annotation crossplane.io/paused off the claim"
    )
    if look.serves and look.served is not None:
        message = f"serving generation {look.served}; {message}"
    phase = _P.DEGRADED if look.serves else _P.UNKNOWN
    return Assessment(phase, message, "Synced", synced.since, look.served, advice.PAUSED)


def failing(look: Look) -> Assessment | None:
    synced = look.synced
    if synced is None or synced.status != "False":
        return None
    cause = synced.text() + look.told + look.unready
    if "Unsynced resources" in synced.message:
        cause += "; the cause is in the claim's Events"
    todo, began = advice.about(cause), synced.since or look.claim.created_at
    phase = _P.DEGRADED
    if look.serves and look.served is not None and look.served < look.generation:
        message = f"serving generation {look.served}; update failing: {cause}"
    elif look.serves:
        message = f"Ready, but not in sync: {cause}"
    elif look.past.was_ready:
        message = f"not ready, and not in sync: {cause}"
    elif look.older(began, look.stuck_after):
        phase, message = _P.STUCK, f"stuck: never ready, failing for {span(look.now - began)}: {cause}"
    else:
        phase, message = _P.PROVISIONING, f"not ready yet; failing, and tried again: {cause}"
    return Assessment(phase, message, "Synced", synced.since, look.served, todo)


def behind(look: Look) -> Assessment | None:
    """A claim of v1 whose composite resource fails: the claim itself says Synced, and at most that it waits."""
    reference = look.claim.spec.get("resourceRef")
    if not isinstance(reference, Mapping):
        return None
    for each in look.claim.composed:
        if (each.kind, each.name) == (reference.get("kind"), reference.get("name")):
            metadata = each.manifest.get("metadata")
            generation = metadata.get("generation") if isinstance(metadata, Mapping) else None
            known = generation if isinstance(generation, int) and not isinstance(generation, bool) else 0
            inner = msgspec.structs.replace(look, found=of_manifest(each.manifest), generation=known)
            found = paused(inner) or failing(inner)
            if found is not None:
                return msgspec.structs.replace(found, message=f"{each.kind} {each.name}: {found.message}")
    return None


def unseen(look: Look) -> Assessment | None:
    """Nobody has looked at the claim yet: it has neither condition."""
    if look.ready is not None or look.synced is not None:
        return None
    waited, message = look.now - look.claim.created_at, "the control plane hasn't looked at the claim yet"
    if waited.total_seconds() < SILENT_AFTER:
        return Assessment(_P.PENDING, message, advice=advice.EXPECTED)
    phase = _P.STUCK if waited.total_seconds() >= look.stuck_after else _P.PENDING
    return Assessment(phase, f"{message}, for {span(waited)}", advice=advice.SILENT)


def unclear(look: Look) -> Assessment | None:
    for name, condition, allowed in (("Synced", look.synced, ("True",)), ("Ready", look.ready, ("True", "False"))):
        if condition is None and name == "Ready":
            continue
        if condition is None or condition.status not in allowed:
            said = f"is {condition.status or 'without a status'}: {condition.text()}" if condition else "is absent"
            since = condition.since if condition else None
            return Assessment(_P.UNKNOWN, f"condition {name} {said}", name, since, advice=advice.about(said))
    return None


def silent(look: Look) -> Assessment | None:
    """The claim was changed, and nothing that the control plane says is about that yet: the first minutes of a
    function, or a core, that is down look like this and like nothing else."""
    seen = [c.observed_generation for c in (look.synced, look.ready) if c and c.observed_generation is not None]
    if not seen or max(seen) >= look.generation or not look.older(look.past.generation_since, SILENT_AFTER):
        return None
    waited = span(look.now - look.past.generation_since) if look.past.generation_since else ""
    message = f"the control plane has not looked at generation {look.generation} for {waited}"
    served = look.served if look.served is not None else max(seen)
    message = f"serving generation {served}; {message}" if look.serves else f"not ready; {message}"
    phase = _P.UPDATING if look.past.was_ready else _P.PROVISIONING
    return Assessment(phase, message, "Synced", look.past.generation_since, served, advice.SILENT)


def refused(look: Look) -> Assessment | None:
    """The composition function keeps what runs as it is: its approval doesn't cover the claim, or nowhere is room."""
    reasons = _refusals(look)
    if not reasons:
        return None
    first = reasons[0]
    text = f"{first.type} is False: {first.text()}"
    began, served = first.since or look.claim.created_at, None
    if look.is_suspended:
        phase, message = _P.SUSPENDED, f"suspended, as was approved; not changed: {text}"
    elif look.past.was_ready or look.serves:
        served = look.past.served if look.past.served is not None else look.served
        what = f"generation {served}" if served is not None and served < look.generation else "what was approved before"
        phase, message = _P.DEGRADED, f"serving {what}; not changed: {text}"
    elif look.older(began, look.stuck_after):
        phase, message = _P.STUCK, f"stuck: refused for {span(look.now - began)}, nothing was made: {text}"
    else:
        phase, message = _P.PROVISIONING, f"refused, nothing was made: {text}"
    return Assessment(phase, message, first.type, first.since, served, advice.about(text))


def _refusals(look: Look) -> list[Condition]:
    """The conditions that say so, of the claim as it is now."""
    synced, past = look.synced, look.past
    if synced is not None and synced.observed_generation is not None and synced.observed_generation < look.generation:
        return []  # that is about the claim as it was before
    found = conditions_behind(look.found)
    approval = [c for c in found if c.type == "Approved" and not c.message.startswith(_WOULD)]
    if look.is_suspended and look.suspend:
        approval = []  # stopping needs no approval, and that is all that it asks for
    as_it_was = past.served is not None and past.spec_generation is not None and past.served >= past.spec_generation
    if look.serves and as_it_was:
        approval = [
            c for c in approval if c.reason != "ApprovalExpired"
        ]  # what runs is kept, and nothing else is asked
    return approval + [c for c in found if c.reason == "HeldBack" and c.message]
