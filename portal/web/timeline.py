"""Audit events as sentences: who did what, when, and the words they added."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from portal.models import AuditEvent

Data = dict[str, Any]


@dataclass(frozen=True)
class Moment:
    """One step, as it is shown. `said`: what a person wrote with it."""

    at: dt.datetime
    who: str
    person: bool
    sentence: str
    said: str
    event: AuditEvent


def moments(events: Iterable[AuditEvent]) -> list[Moment]:
    return [_moment(event) for event in events]


def _moment(event: AuditEvent) -> Moment:
    say = SENTENCES.get(event.verb)
    data = event.data if isinstance(event.data, dict) else {}
    return Moment(
        at=event.at,
        who=event.actor.username if event.actor else (event.system or "portal"),
        person=event.actor is not None,
        sentence=say(data) if say else event.verb.replace(".", " ").replace("_", " "),
        said=str(data.get("comment") or ""),
        event=event,
    )


def _codes(data: Data) -> str:
    codes = data.get("codes") or []
    return f" ({', '.join(map(str, codes))})" if codes else ""


def _deny(data: Data) -> str:
    if data.get("from") == "Draft":
        return f"asked; the policies denied it{_codes(data)}"
    return "the policies deny it by now"


def _vote(data: Data) -> str:
    answer = "approved" if data.get("answer") == "approve" else "rejected"
    return f"{answer} in stage {data.get('stage')}"


def _phase(data: Data) -> str:
    message = str(data.get("message") or "")
    return f"now {data.get('to')}" + (f": {message}" if message else "")


def _ask_again(data: Data) -> str:
    changed = "; ".join(map(str, data.get("changed") or []))
    return "asked again, since something changed" + (f": {changed}" if changed else "")


def _quota(data: Data) -> str:
    before = data.get("before")
    was = "there was none" if before is None else f"it was {before}"
    return f"quota {data.get('dimension')} of {data.get('team')} set to {data.get('limit')}; {was}"


SENTENCES: dict[str, Callable[[Data], str]] = {
    "request.ask": lambda data: f"asked; it needs approval{_codes(data)}",
    "request.allow": lambda data: "asked; the policies allowed it at once",
    "request.deny": _deny,
    "request.approve": lambda data: "approved: every stage has its votes",
    "request.reject": lambda data: f"rejected in stage {data.get('stage')}",
    "request.withdraw": lambda data: "withdrawn",
    "request.expire": lambda data: "expired: not enough votes in time",
    "request.ask_again": _ask_again,
    "request.deliver": lambda data: "delivery began; what was approved is frozen",
    "request.finish": lambda data: "done: observed as it was asked",
    "request.fail": lambda data: f"failed: {data.get('message') or data.get('code') or 'no reason given'}",
    "vote.cast": _vote,
    "claim.apply": lambda data: f"claim {data.get('namespace')}/{data.get('name')} applied",
    "claim.delete": lambda data: "deletion of the claim was asked for",
    "instance.create": lambda data: f"instance {data.get('name')} recorded",
    "instance.phase": _phase,
    "catalog.publish": lambda data: (
        "taken out of the catalog" if data.get("removed") else "catalog entry brought up to date"
    ),
    "quota.set": _quota,
}
