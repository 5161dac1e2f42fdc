"""A claim's conditions, read honestly: which phase its Instance is in, and what to tell people.

In charge of: turning one observed claim into a phase with a message. Not in charge of: fetching claims (adapters), or
storing what was seen (services). Healthy means Ready and Synced are True, both for the claim's present
generation, and nobody asked for its deletion; everything else says which of these failed, with the last message.

How Crossplane's core behaves (each seen on a real v2.2 core, 2026-12):

    first failure before any success    Ready is absent, Synced is False
    a failure after it was healthy      Synced is False; Ready stays True, with an older observedGeneration
    paused                              Synced has reason ReconcilePaused; Ready stays as it was
    invalid composed resource           Synced says "Unsynced resources: x"; the cause is only in an Event
    claim of an XRD of v1               Synced is True, Ready is False with reason Waiting; the cause is only on the XR
    too many changes                    Responsive is False; status is late
    custom conditions                   usually without observedGeneration
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from portal.domain.lifecycle import InstancePhase

_P = InstancePhase
_STANDARD = frozenset({"Ready", "Synced"})


class Composed(Protocol):
    """What is read of a composed object."""

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def ready(self) -> bool | None: ...
    @property
    def message(self) -> str: ...


class Claim(Protocol):
    """What is read of a claim; ports.ObservedClaim has all of it."""

    @property
    def generation(self) -> int: ...
    @property
    def created_at(self) -> dt.datetime: ...
    @property
    def deletion_requested_at(self) -> dt.datetime | None: ...
    @property
    def finalizers(self) -> Sequence[str]: ...
    @property
    def status(self) -> Mapping[str, Any]: ...
    @property
    def composed(self) -> Sequence[Composed]: ...


class Assessment(msgspec.Struct, frozen=True):
    """What is known. `condition` is the one that decided, `since` when it last changed (None: it doesn't say), and
    `observed_generation` the generation that is served."""

    phase: InstancePhase
    message: str
    condition: str | None = None
    since: dt.datetime | None = None
    observed_generation: int | None = None


class Condition(msgspec.Struct, frozen=True):
    """One condition as it came: any part of it may be missing (case 8)."""

    type: str
    status: str
    reason: str
    message: str
    since: dt.datetime | None
    observed_generation: int | None

    def text(self) -> str:
        """Reason and message, whichever there are."""
        return ": ".join(part for part in (self.reason, self.message) if part) or "no reason given"


def assess(claim: Claim | None, now: dt.datetime, stuck_after: float, was_ready: bool = False) -> Assessment:
    """The phase of the Instance behind a claim; None is a claim that is gone.

    `was_ready` says that it was Ready before: then a Ready that is False is Degraded, and else Provisioning. What has
    failed or been on its way out for `stuck_after` seconds is Stuck.
    """
    if claim is None:
        return Assessment(_P.GONE, "the claim is gone")
    if claim.deletion_requested_at is not None:
        return _deleting(claim, claim.deletion_requested_at, now, stuck_after)
    found = conditions(claim.status)
    ready, synced = found.get("Ready"), found.get("Synced")
    if synced is not None and synced.reason == "ReconcilePaused":
        return _paused(ready, synced)
    if synced is not None and synced.status == "False":
        return _failing(claim, ready, synced, now, stuck_after, was_ready)
    if ready is None and synced is None:
        return Assessment(_P.PENDING, "the control plane hasn't looked at the claim yet")
    if synced is None or synced.status != "True":
        return _unknown("Synced", synced)
    if ready is not None and ready.status not in ("True", "False"):
        return _unknown("Ready", ready)
    if ready is None or ready.status == "False":
        return _not_ready(claim, ready, found, was_ready)
    return _serving(claim, ready, synced, found)


def conditions(status: Mapping[str, Any]) -> dict[str, Condition]:
    """The conditions by type; whatever isn't one is left out, and a type that is there twice counts as it came last."""
    listed = status.get("conditions")
    made = [_condition(item) for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return {condition.type: condition for condition in made if condition.type}


def _condition(item: Mapping[str, Any]) -> Condition:
    return Condition(
        type=_text(item.get("type")),
        status=_text(item.get("status")),
        reason=_text(item.get("reason")),
        message=_text(item.get("message")),
        since=_time(item.get("lastTransitionTime")),
        observed_generation=_whole(item.get("observedGeneration")),
    )


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    """2.0 is 2: numbers may have passed through a float on their way (case 11)."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _time(value: object) -> dt.datetime | None:
    try:
        time = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return time.replace(tzinfo=dt.UTC) if time and time.tzinfo is None else time


def _deleting(claim: Claim, asked: dt.datetime, now: dt.datetime, stuck_after: float) -> Assessment:
    """Whatever its conditions say: Ready stays True for as long as a finalizer holds it (case 7)."""
    held = ", ".join(claim.finalizers)
    left = ", ".join(f"{c.kind} {c.name}" for c in claim.composed[:5])
    message = f"deleting for {_span(now - asked)}"
    message += f"; waiting for finalizer {held}" if held else "; no finalizer holds it"
    message += f"; still there: {left}" if left else ""
    if (now - asked).total_seconds() < stuck_after:
        return Assessment(_P.DELETING, message, "deletionTimestamp", asked)
    message = (
        f"stuck: {message}. See why whoever set that finalizer doesn't remove it; quota is held until the claim is gone"
    )
    return Assessment(_P.STUCK, message, "deletionTimestamp", asked)


def _paused(ready: Condition | None, synced: Condition) -> Assessment:
    serving = ready is not None and ready.status == "True"
    message = (
        "reconciling is paused, so its status is not kept up: take the annotation crossplane.io/paused off the claim"
    )
    if serving and ready is not None and ready.observed_generation is not None:
        message = f"serving generation {ready.observed_generation}; {message}"
    phase = _P.DEGRADED if serving else _P.UNKNOWN
    return Assessment(phase, message, "Synced", synced.since, ready.observed_generation if ready else None)


def _failing(
    claim: Claim,
    ready: Condition | None,
    synced: Condition,
    now: dt.datetime,
    stuck_after: float,
    was_ready: bool,
) -> Assessment:
    cause = synced.text() + _unready(claim)
    if "Unsynced resources" in synced.message:
        cause += "; the cause is in the claim's Events"
    if ready is not None and ready.status == "True":
        served = ready.observed_generation
        if served is not None and served < claim.generation:
            message = f"serving generation {served}; update failing: {cause}"
        else:
            message = f"Ready, but not in sync: {cause}"
        return Assessment(_P.DEGRADED, message, "Synced", synced.since, served)
    if was_ready:
        return Assessment(_P.DEGRADED, f"not ready, and not in sync: {cause}", "Synced", synced.since)
    began = synced.since or claim.created_at
    if (now - began).total_seconds() >= stuck_after:
        return Assessment(_P.STUCK, f"stuck: never ready, failing for {_span(now - began)}: {cause}", "Synced", began)
    return Assessment(_P.PROVISIONING, f"not ready yet; failing, and tried again: {cause}", "Synced", synced.since)


def _unknown(name: str, condition: Condition | None) -> Assessment:
    said = f"is {condition.status or 'without a status'}: {condition.text()}" if condition else "is absent"
    return Assessment(_P.UNKNOWN, f"condition {name} {said}", name, condition.since if condition else None)


def _not_ready(claim: Claim, ready: Condition | None, found: Mapping[str, Condition], was_ready: bool) -> Assessment:
    if ready is None:
        return Assessment(_P.PROVISIONING, f"not ready yet{_custom(found)}{_unready(claim)}", "Ready", None)
    served = ready.observed_generation
    text = ready.text() + _custom(found) + _unready(claim)
    if ready.reason == "Waiting" and not ready.message:
        text += "; the cause is on the composite resource behind the claim"
    if not was_ready:
        return Assessment(_P.PROVISIONING, f"not ready yet: {text}", "Ready", ready.since, served)
    if served is not None and served < claim.generation:
        return Assessment(_P.UPDATING, f"not ready while updating: {text}", "Ready", ready.since, served)
    return Assessment(_P.DEGRADED, f"no longer ready: {text}", "Ready", ready.since, served)


def _serving(claim: Claim, ready: Condition, synced: Condition, found: Mapping[str, Condition]) -> Assessment:
    """Ready and Synced are True; a core that sets observedGeneration must mean the present one by both."""
    served = ready.observed_generation
    for condition in (synced, ready):
        seen = condition.observed_generation
        if seen is not None and seen < claim.generation:
            message = f"serving generation {served if served is not None else seen}; updating to {claim.generation}"
            return Assessment(_P.UPDATING, message + _custom(found), condition.type, condition.since, served)
    return Assessment(_P.READY, f"ready{_custom(found)}", "Ready", ready.since, served)


def _custom(found: Mapping[str, Condition]) -> str:
    """What the composition's own conditions, or Responsive, say is not well."""
    bad = [c for c in found.values() if c.type not in _STANDARD and c.status == "False"]
    return "".join(f"; {c.type} is False: {c.text()}" for c in bad[:3])


def _unready(claim: Claim) -> str:
    waiting = [c for c in claim.composed if c.ready is False]
    return "".join(f"; {c.kind} {c.name} is not ready{f': {c.message}' if c.message else ''}" for c in waiting[:3])


def _span(span: dt.timedelta) -> str:
    """In tens of seconds at first: a message that changed at every look would be written and published each time."""
    seconds = max(0, int(span.total_seconds()))
    if seconds < 10:
        return "less than 10 s"
    if seconds < 120:
        return f"{seconds // 10 * 10} s"
    minutes = seconds // 60
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
