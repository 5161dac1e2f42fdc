"""A claim's conditions, read honestly: which phase its Instance is in, what to tell people, and who must do what.

In charge of: turning one observed claim into a phase with a message and advice. Not in charge of: fetching claims
(adapters), storing what was seen (services), the words of advice (advice) and of deletions (claim_deletion). Healthy
means Ready and Synced are True, both for the claim's present generation, and nobody asked for its deletion; everything
else says which of these failed, with the last message.

How Crossplane's core behaves (each seen on a real v2.2 core, 2026-12), and which rule below reads it:

    first failure before any success    Ready is absent, Synced is False                            failing
    a failure after it was healthy      Synced is False; Ready stays True, observedGeneration older  failing
    paused, then edited                 Synced has reason ReconcilePaused; Ready stays as it was     paused
    function down                       nothing changes for 2 min, then DeadlineExceeded             silent, failing
    custom conditions                   usually without observedGeneration                           refused, serving
    invalid composed resource           Synced: "Unsynced resources: x"; the cause is in an Event    failing
    claim of an XRD of v1               Synced True, Ready False/Waiting; the cause is on the XR     behind, not_ready
    a new XR                            its generation goes 1, 3, 4 by the core's own writes         serving
    function misses the capability      Synced False: missing required capabilities                  failing
    an XRD without a Composition        Synced is False                                              failing
    too many changes                    Responsive is False; status is late                          serving
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from portal.domain import advice, claim_deletion, claim_trouble
from portal.domain.claim_look import Assessment, Claim, Look, Past
from portal.domain.conditions import conditions
from portal.domain.lifecycle import InstancePhase
from portal.domain.spans import span

__all__ = ["Assessment", "Claim", "Past", "assess"]

_P = InstancePhase


def assess(claim: Claim | None, now: dt.datetime, stuck_after: float, past: Past | None = None) -> Assessment:
    """The phase of the Instance behind a claim; None is a claim that is gone. What has failed or been on its way out
    for `stuck_after` seconds is Stuck."""
    if claim is None:
        return Assessment(_P.GONE, "the claim is gone")
    past = past or Past()
    if claim.deletion_requested_at is not None:
        return _deleting(claim, claim.deletion_requested_at, now, stuck_after, past)
    look = Look(claim, conditions(claim.status), claim.generation, now, stuck_after, past)
    for rule in _RULES:
        found = rule(look)
        if found is not None:
            return found
    return _serving(look)


def _deleting(claim: Claim, asked: dt.datetime, now: dt.datetime, stuck_after: float, past: Past) -> Assessment:
    """Whatever its conditions say: Ready stays True for as long as a finalizer holds it (case 7)."""
    ours = past.deletion_is_ours
    stuck = (now - asked).total_seconds() >= stuck_after
    message = ("stuck: " if stuck else "") + claim_deletion.told(asked, claim.finalizers, claim.composed, now, ours)
    todo = claim_deletion.to_do(claim.composed, stuck, ours)
    return Assessment(_P.STUCK if stuck else _P.DELETING, message, "deletionTimestamp", asked, advice=todo)


def _not_ready(look: Look) -> Assessment | None:
    ready = look.ready
    if ready is None:
        said = look.told + look.unready
        todo = advice.about(said, advice.EXPECTED)
        return Assessment(_P.PROVISIONING, f"not ready yet{said}", "Ready", advice=todo)
    if ready.status != "False":
        return None
    text = ready.text() + look.told + look.unready
    todo = advice.about(text, advice.EXPECTED)
    if ready.reason == "Waiting" and not ready.message:
        text += f"; the cause is on {look.composite}"
        todo = advice.about(text, advice.V1_SILENT)
    if not look.past.was_ready:
        return Assessment(_P.PROVISIONING, f"not ready yet: {text}", "Ready", ready.since, look.served, todo)
    phase, message = _not_ready_again(look, text)
    if phase is _P.DEGRADED and todo == advice.EXPECTED:
        todo = advice.UNKNOWN
    return Assessment(phase, message, "Ready", ready.since, look.served, todo)


def _not_ready_again(look: Look, text: str) -> tuple[InstancePhase, str]:
    """Not ready, after it was: on its way to another spec, or broken."""
    past = look.past
    if look.served is not None and look.served < look.generation:
        return _P.UPDATING, f"not ready while {look.doing}: {text}"
    if past.spec_generation is None and look.suspend and not look.is_suspended:
        return _P.UPDATING, f"not ready while suspending: {text}"  # seen for the first time
    if past.spec_generation is None or past.served is None or past.served >= past.spec_generation:
        return _P.DEGRADED, f"no longer ready: {text}"
    if not look.older(past.spec_since, look.stuck_after):
        return _P.UPDATING, f"not ready while {look.doing} to generation {look.generation}: {text}"
    waited = span(look.now - past.spec_since) if past.spec_since else ""
    return _P.DEGRADED, f"not ready after {waited} of {look.doing} to generation {look.generation}: {text}"


def _serving(look: Look) -> Assessment:
    """Ready and Synced are True; a core that sets observedGeneration must mean the present one by both."""
    served, past = look.served, look.past
    for condition in (look.synced, look.ready):
        seen = condition.observed_generation if condition else None
        if condition is None or seen is None or seen >= look.generation:
            continue
        shown = served if served is not None else seen
        if past.was_ready and not (past.spec_generation is not None and shown >= past.spec_generation):
            phase, message = _P.UPDATING, f"serving generation {shown}; {look.doing} to {look.generation}"
        else:  # nobody changed the spec: the core notes its own references in the claim
            phase = _P.UPDATING if past.was_ready else _P.PROVISIONING
            message = f"ready as of generation {shown}; the control plane itself made it {look.generation}"
        return Assessment(
            phase, message + look.told, condition.type, condition.since, served, advice.about(look.told, "")
        )
    return _settled(look)


def _settled(look: Look) -> Assessment:
    """Healthy by all that the standard conditions say: it runs, or it is suspended as it was asked."""
    wanted, told, since = look.suspend, look.found.get("Suspended"), look.ready.since if look.ready else None
    said = look.told
    todo = advice.CIRCUIT if "WatchCircuitOpen" in said else advice.about(said, "")
    suspended = look.is_suspended
    if wanted and (suspended or told is None):
        more = f": {told.message}" if told is not None and told.message else ": nothing runs, data is kept"
        when = told.since if told is not None else since
        return Assessment(_P.SUSPENDED, f"suspended{more}{said}", "Suspended", when, look.served, todo)
    if told is not None and wanted != suspended:
        message = f"{look.doing}: {told.text()}{said}"
        return Assessment(_P.UPDATING, message, "Suspended", told.since, look.served, todo or advice.EXPECTED)
    return Assessment(_P.READY, f"ready{said}", "Ready", since, look.served, todo)


_RULES: tuple[Callable[[Look], Assessment | None], ...] = (
    claim_trouble.paused,
    claim_trouble.failing,
    claim_trouble.behind,
    claim_trouble.unseen,
    claim_trouble.unclear,
    claim_trouble.silent,
    claim_trouble.refused,
    _not_ready,
)
